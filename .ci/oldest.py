"""Print the oldest versions that pyproject.toml allows, as constraints for pip.

``numpy>=1.26`` becomes ``numpy==1.26.*``: the first minor version, with the repairs it got. Names
of extras to take into account are the arguments; the dependencies of the package always are.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def oldest(requirement):
    """Return the constraint for a requirement; None for one of the project's own extras."""
    if requirement.startswith("widemargin["):
        return None
    found = re.fullmatch(r"([\w.-]+)>=(\d+)(?:\.(\d+))?", requirement)
    if found is None:
        sys.exit(f"{PROJECT.name}: {requirement!r} is not of the form name>=major.minor")
    name, major, minor = found.groups()
    return f"{name}=={major}.{minor or 0}.*"


def requirements(project, extra):
    """Return the requirements of an extra, those of the extras that it names included."""
    for requirement in project["optional-dependencies"][extra]:
        yield requirement
        for inner in re.findall(r"^widemargin\[([\w,]+)\]$", requirement):
            for name in inner.split(","):
                yield from requirements(project, name)


def main(extras):
    """Print the constraints of the package and some of its extras."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    named = list(project["dependencies"])
    for extra in extras:
        named += requirements(project, extra)
    print(*sorted({line for line in map(oldest, named) if line is not None}), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])

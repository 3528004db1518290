"""Print what the package and some of its extras require, one line each, for pip.

``requirements.py test`` prints the requirements; ``requirements.py --oldest test`` the oldest
versions that they allow, as constraints: ``numpy>=1.26`` becomes ``numpy==1.26.*``, the first minor
version with the repairs it got.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def oldest(requirement):
    """Return the constraint for a requirement."""
    found = re.fullmatch(r"([\w.-]+)>=(\d+)(?:\.(\d+))?", requirement)
    if found is None:
        sys.exit(f"{PROJECT.name}: {requirement!r} is not of the form name>=major.minor")
    name, major, minor = found.groups()
    return f"{name}=={major}.{minor or 0}.*"


def requirements(project, extra):
    """Yield the requirements of an extra, with those of the project's extras that it names."""
    for requirement in project["optional-dependencies"][extra]:
        inner = re.fullmatch(r"widemargin\[([\w,]+)\]", requirement)
        if inner is None:
            yield requirement
        else:
            for name in inner[1].split(","):
                yield from requirements(project, name)


def main(arguments):
    """Print requirements or constraints of the package and the named extras."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    named = set(project["dependencies"])
    for extra in arguments:
        if extra != "--oldest":
            named.update(requirements(project, extra))
    shown = map(oldest, named) if "--oldest" in arguments else named
    print(*sorted(shown), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])

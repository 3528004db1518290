"""The ``widemargin`` command.

A command is a module here that has a click command by the name of ``command``; the module's own
name is that of the command. Dropping a file in is all that it takes to add one. Modules whose names
begin with an underscore are what commands share.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]

_NEEDED = ("click", "rich")


def main() -> None:
    """Run the command of this process's arguments, and end the process with its exit code."""
    missing = [package for package in _NEEDED if find_spec(package) is None]
    if missing:
        sys.exit(
            f"The widemargin command needs {' and '.join(missing)}: "
            'pip install "widemargin[cli]" gets what is missing.'
        )
    try:
        from widemargin.cli._group import commands

        commands.main(prog_name="widemargin")
    except KeyboardInterrupt:  # before click was there to tell of it
        sys.exit(130)

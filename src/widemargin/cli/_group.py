"""All commands, found by the names of their files; and how a command that fails ends.

========= =======================================================
exit code
========= =======================================================
0         done
1         a mistake in what was given: files, columns, parameters
2         a mistake in how the command was written
130       stopped by Ctrl-C
========= =======================================================
"""

from __future__ import annotations

import os
import pkgutil
import re
import warnings
from importlib import import_module
from typing import Any

import click

from widemargin import __version__, cli

_INTERRUPTED = 130
_SHOWS_TRACEBACK = "WIDEMARGIN_TRACEBACK"
# What the library and those that it calls raise for input that cannot be used.
_MISTAKES = (ValueError, TypeError, OSError, ImportError, MemoryError)


class Mistake(click.ClickException):
    """What a user can mend: told in a line on standard error, without a traceback."""

    exit_code = 1


class Commands(click.Group):
    """Every module of this package that has no underscore before its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(
            module.name for module in pkgutil.iter_modules(cli.__path__) if module.name[0] != "_"
        )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none by this name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = import_module(f"{cli.__name__}.{cmd_name}").command
        assert isinstance(command, click.Command)
        command.name = cmd_name
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; mistakes and Ctrl-C end it in a line, and with their exit codes."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, click.Abort) as stopped:
            click.echo("Stopped by Ctrl-C; nothing was written.", err=True)
            raise click.exceptions.Exit(_INTERRUPTED) from stopped
        except BrokenPipeError:  # whoever read our output has seen enough, and click knows that
            raise
        except Exception as error:
            if os.environ.get(_SHOWS_TRACEBACK):
                raise
            raise Mistake(_one_line(error)) from error


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Tell a warning as a line, without the place in the code that it comes from."""
    click.echo(f"Warning: {' '.join(str(message).split())}", err=True)


# Advice of the library names arguments; those who type commands have options.
_OPTIONS = {
    r"\bheader=False": "--no-header",
    r"\b(?:give )?zero_based=True": "--zero-based",
    r"\bon_error='skip'": "--skip-bad-rows",
    r"\b(drop|text)='([^']*)'": r"--\1 '\2'",
    r"\bformat=(?:'(\w+)')?": r"--format \1",
    r"\btarget=": "--target",
}


def _one_line(error: Exception) -> str:
    """Say what went wrong; what nobody foresaw is told to be a fault of ours."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        words = f"{os.fsdecode(error.filename)}: {error.strerror}."
    elif isinstance(error, MemoryError):
        words = f"Memory is not enough. {error}".strip()
    else:
        words = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, _MISTAKES):
        for argument, option in _OPTIONS.items():
            words = re.sub(argument, option, words)
        return words
    return (
        f"widemargin failed, and should have said why: {type(error).__name__}: {words} "
        f"{_SHOWS_TRACEBACK}=1 shows where; please report it."
    )


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  widemargin fit flowers.csv --target species --max-basis 20 -o flowers.model
  widemargin predict flowers.model new.csv -o answers.csv
  widemargin evaluate flowers.model test.csv --target species
  widemargin export flowers.model --format c -o flowers.h
  widemargin COMMAND --help

Exit codes: 0 done, 1 a mistake in what was given, 2 in how the command was written, 130 Ctrl-C.""",
)
@click.version_option(__version__, prog_name="widemargin")
def commands() -> None:
    """Classifiers that predict fast: from a data file to a model and to where it runs."""

"""``widemargin completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(
    epilog="""\b
Examples:
  eval "$(widemargin completion bash)"
  widemargin completion zsh >> ~/.zshrc
  widemargin completion fish > ~/.config/fish/completions/widemargin.fish"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that has SHELL complete commands, options and names of machines."""
    from widemargin.cli._group import commands

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(commands, {}, "widemargin", "_WIDEMARGIN_COMPLETE").source())

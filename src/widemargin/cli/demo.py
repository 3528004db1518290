"""``widemargin demo``: the way from a data file to C, on digits that ship with scikit-learn."""

from __future__ import annotations

import shlex
from io import BytesIO
from pathlib import Path

import click

from widemargin.cli._output import note

_VECTORS = 30


@click.command(epilog="\b\nExample:\n  widemargin demo --folder /tmp/digits")
@click.option("--folder", default="widemargin-demo", show_default=True, help="Where files go.")
@click.pass_context
def command(ctx: click.Context, folder: str) -> None:
    """Run the other commands on handwritten digits, showing each: fit, evaluate, bench, export.

    Takes some seconds, and needs no network.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    _write_digits(place)
    train, test, model = (str(place / name) for name in ("train.csv", "test.csv", "digits.model"))
    for arguments in (
        ["fit", train, "--target", "digit", "--max-basis", str(_VECTORS), "-o", model],
        ["evaluate", model, test],
        ["predict", model, test, "-o", str(place / "answers.csv")],
        ["bench", model, test],
        ["export", model, "--format", "c", "-o", str(place / "digits.h")],
        ["info", model],
    ):
        note(f"\n$ widemargin {shlex.join(arguments)}")
        _run(ctx, arguments)
    note(f"\nAll files are in {place}. The next step: widemargin compare {train} --target digit")


def _run(ctx: click.Context, arguments: list[str]) -> None:
    """Run another command in this process."""
    assert ctx.parent is not None
    group = ctx.parent.command
    assert isinstance(group, click.Group)
    chosen = group.get_command(ctx.parent, arguments[0])
    assert chosen is not None
    with chosen.make_context(arguments[0], arguments[1:], parent=ctx.parent) as inner:
        chosen.invoke(inner)


def _write_digits(place: Path) -> None:
    """Write rows to learn from and rows to be judged by."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from widemargin._system.files import replace_file

    data = load_digits(as_frame=True)
    frame = data.frame.rename(columns={"target": "digit"})
    parts = train_test_split(frame, test_size=0.5, stratify=frame["digit"], random_state=0)
    for name, part in zip(("train.csv", "test.csv"), parts, strict=True):
        written = BytesIO()
        part.to_csv(written, index=False)
        replace_file(place / name, [written.getbuffer()])

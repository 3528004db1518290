"""``widemargin compare`` and ``widemargin card``, run as processes."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("click")
pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from click.testing import CliRunner

from widemargin.cli._group import commands

FEW = ("--only", "10 learned vectors", "--only", "LinearSVC", "--only", "constant")


def run(*arguments, folder):
    command = [sys.executable, "-m", "widemargin.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table whose answer depends on a number and on a text."""
    found = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    lines = ["weight,colour,answer"]
    for _ in range(100):
        weight, colour = rng.normal(), rng.choice(["red", "green"])
        answer = "yes" if (weight > 0) == (colour == "red") else "no"
        lines.append(f"{weight:.4f},{colour},{answer}")
    (found / "rows.csv").write_text("\n".join(lines) + "\n")
    return found


def test_compare_shows_a_table_and_writes_what_a_page_reads(folder):
    done = run(
        "compare", "rows.csv", "--target", "answer", "--minutes", 1, "--splits", 2, *FEW,
        *("-o", "found.json", "--json"), folder=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == json.loads((folder / "found.json").read_text())
    names = [row["name"] for row in found["candidates"]]
    assert names[0] == "10 learned vectors"  # no linear machine can tell this
    assert sorted(names) == ["10 learned vectors", "LinearSVC", "constant"]
    assert (found["data"], found["target"]) == ("rows.csv", "answer")
    assert found["seconds"] < 66
    assert found["recommendation"]


def test_compare_tells_people_what_to_take(folder):
    done = run(
        "compare", "rows.csv", "--target", "answer", "--minutes", 1, "--splits", 2, *FEW[2:],
        folder=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "accuracy, %" in done.stdout
    assert "Take LinearSVC" in done.stdout or "linear model" in done.stdout
    assert "1 columns of texts" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("rows.csv", "--target", "nothing"), 1, "nothing"),
        (("absent.csv",), 1, "There is no absent.csv"),
        (("rows.csv", "--target", "answer", "--only", "SVM"), 1, "'SVC'"),
        (("rows.csv", "--target", "answer", "-o", "no/such.json"), 1, "no folder"),
        (("rows.csv", "--minutes", "0"), 2, "minutes"),
        (("rows.csv", "--metric", "hamming"), 2, "labels right"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments, code, words, folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(commands, ["compare", *arguments])
    assert done.exit_code == code
    assert words in done.output
    assert "Traceback" not in done.output
    assert isinstance(done.exception, SystemExit)


def test_a_card_of_a_model_file(folder):
    done = run(
        "fit", "rows.csv", "--target", "answer", "--max-basis", 10, "-o", "rows.model",
        folder=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = run(
        *("card", "rows.model", "--data", "rows.csv", "--license", "mit", "-o", "README.md"),
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith('---\nlicense: "mit"\n')
    assert "`rows.csv`, 100 rows" in text
    assert "| `colour` | text | 2 different ones |" in text
    assert "the column `answer`" in text
    printed = run("card", "rows.model", "--json", folder=folder)
    assert "model-index" not in json.loads(printed.stdout)["card"]
    wrong = CliRunner().invoke(commands, ["card", str(folder / "rows.csv")])
    assert wrong.exit_code == 1
    assert "rows.csv" in wrong.output

"""Pages without a browser: whole, small, escaped; and what becomes of the file that was there."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from conftest import read_digits
from contract import ESTIMATORS, fitted, problem
from sklearn.datasets import load_iris

import widemargin
from widemargin import KernelClassifier, SparseKernelClassifier
from widemargin.cli._group import commands
from widemargin.kernels import CustomKernel
from widemargin.report import Comparison, Source, report_page, write_report
from widemargin.report.live import image_shape_of
from widemargin.report.markup import Html, script_json, tag
from widemargin.report.svg import Axis, Plot

EMPTY_ELEMENTS = {"meta", "input", "img", "br", "hr", "col"}
LARGEST_PAGE = 1_000_000  # bytes of 60 vectors of 64 features; the most that is allowed is 3 MB


class Balance(HTMLParser):
    """Notes elements that are not closed where they should be, and addresses."""

    def __init__(self):
        super().__init__()
        self.open, self.faults, self.addresses, self.sections = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.addresses += [attributes[name] for name in ("src", "href") if name in attributes]
        if tag == "section":
            self.sections.append(attributes["id"])
        if tag not in EMPTY_ELEMENTS:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def parsed(page):
    found = Balance()
    found.feed(page)
    found.close()
    assert not found.open
    assert not found.faults
    assert all(each.startswith(("data:", "#")) for each in found.addresses)
    return found


def live_data(page):
    text = re.search(r'id="live-data">(.*?)</script>', page, re.S)[1]
    return json.loads(text)


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_estimator_has_a_page(name):
    machine, (X, y) = fitted(name), problem(name)
    page = report_page(machine, X, y)
    found = parsed(page)
    assert {"try", "errors", "speed", "trust", "settings"} <= set(found.sections)
    assert ("vectors" in found.sections) == bool(getattr(machine, "n_basis_", 0))
    assert live_data(page)["nFeatures"] == X.shape[1]


def test_sixty_vectors_of_digits_are_far_below_a_megabyte():
    X, y = read_digits()
    machine = SparseKernelClassifier(60, random_state=0).fit(X[:900], y[:900])
    page = report_page(machine, X[900:], y[900:], image_shape=(8, 8))
    assert len(page.encode()) < LARGEST_PAGE
    assert parsed(page).sections[:2] == ["try", "sizes"]
    assert page.count("data:image/png;base64,") >= 60


def test_sparse_rows(three_classes):
    X, y = three_classes
    rows = sp.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    machine = SparseKernelClassifier(6, random_state=0).fit(rows, y)
    page = report_page(machine, rows, y)
    assert parsed(page)
    assert live_data(page)["fields"][0]["kind"] == "number"


def test_a_kernel_that_is_python_code_does_not_run_in_the_page(three_classes):
    X, y = three_classes
    kernel = CustomKernel(lambda A, B: A @ B.T)
    machine = SparseKernelClassifier(5, kernel=kernel, random_state=0).fit(X, y)
    page = report_page(machine, X, y)
    assert "The machine does not run here" in page
    assert live_data(page) is None


def test_a_machine_that_is_too_large_for_a_page(monkeypatch, three_classes):
    X, y = three_classes
    monkeypatch.setattr("widemargin.report.page._LARGEST_TABLES", 1000)
    page = report_page(KernelClassifier().fit(X, y), X, y)
    assert "too much for a page" in page
    assert len(page) < 100_000


def test_texts_are_escaped_wherever_they_stand():
    hostile = "</script><b onclick='x'>&"
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.rename(columns={X.columns[0]: hostile})
    names = np.array([hostile, "b", "c"])
    machine = SparseKernelClassifier(5, random_state=0).fit(X, names[y])
    source = Source(hostile, hostile, [hostile], [hostile])
    page = report_page(machine, X, names[y], source=source)
    assert parsed(page)
    assert "<b onclick" not in page
    assert live_data(page)["classes"][0] == hostile


def test_markup():
    assert tag("p", "a < b", class_="x", hidden=True, id=None) == (
        '<p class="x" hidden>a &lt; b</p>'
    )
    assert tag("p", Html("<b>1</b>"), 2, None) == "<p><b>1</b>2</p>"
    assert tag("img", alt='"') == '<img alt="&quot;">'
    assert "<" not in script_json({"a": "</script>"})
    assert json.loads(script_json({"a": "</script>\u2028"})) == {"a": "</script>\u2028"}


def test_axes_have_round_numbers():
    assert Axis(0.3, 250, 0, 100, log=True).ticks() == pytest.approx([1, 10, 100])
    assert Axis(0.81, 0.99, 0, 100).ticks() == pytest.approx([0.85, 0.9, 0.95])
    assert Axis(5, 5, 0, 100)(5) == 50
    assert Axis(1, 100, 0, 10, log=True)(10) == pytest.approx(5)


def test_labels_stand_clear_of_one_another():
    plot = Plot("t", (0, 1), (0, 1), x_label="x", y_label="y")
    for number in range(30):
        plot.label(0.5, 0.5, f"label {number}")
    assert 2 <= plot.svg().count("mark-label") < 10


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("names", "shape"),
    [
        ([f"pixel_{i}_{j}" for i in range(8) for j in range(8)], (8, 8)),
        ([f"pixel{i}" for i in range(784)], (28, 28)),
        ([f"{i}x{j}" for i in range(5) for j in range(5)], (5, 5)),
        ([f"f{i}" for i in range(64)], None),
        ([f"pixel{i}" for i in range(50)], None),
        (None, None),
    ],
)
def test_images_are_known_by_the_names_of_their_columns(names, shape):
    assert image_shape_of(names, 64 if names is None else len(names)) == shape


@pytest.mark.every_case
@pytest.mark.parametrize(
    "failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_the_old_page_stays(tmp_path, monkeypatch, three_classes, failure):
    X, y = three_classes
    machine = SparseKernelClassifier(3, random_state=0).fit(X, y)
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")

    def fail(*_):
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(failure)):
        write_report(path, machine, X, y)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def run(*words, cwd):
    command = [sys.executable, "-m", "widemargin.cli", "report", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8")


@pytest.fixture(scope="module")
def flowers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flowers")
    found = load_iris(as_frame=True)
    frame = found.data.assign(species=found.target_names[found.target])
    frame.to_csv(folder / "flowers.csv", index=False)
    return folder


def test_command(flowers):
    words = ("flowers.csv", "--target", "species", "--max-basis", 5, "--minutes", 0)
    done = run(*words, "-o", "flowers.html", "--json", cwd=flowers)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    page = (flowers / "flowers.html").read_text(encoding="utf-8")
    assert found["bytes"] == len(page.encode())
    assert found["rows"] == 38
    assert parsed(page)
    assert "widemargin report flowers.csv --target species --max-basis 5" in page


def test_command_with_a_model_and_a_comparison(flowers):
    frame, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names
    machine = SparseKernelClassifier(5, random_state=0).fit(frame, names[y])
    widemargin.save(machine, flowers / "flowers.model")
    Comparison("accuracy", (), recommendation=("Take what you like.",)).save(flowers / "c.json")
    words = ("flowers.csv", "--target", "species", "--model", "flowers.model")
    done = run(*words, "--comparison", "c.json", "-o", "model.html", cwd=flowers)
    assert done.returncode == 0, done.stderr
    page = (flowers / "model.html").read_text(encoding="utf-8")
    assert "The machine is flowers.model." in page
    assert "Take what you like." in page


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("-o", "nowhere/page.html"), 1, "there is no folder"),
        (("-o", "."), 1, "is a folder. Name a file"),
        (("--image", "8by8"), 2, "'8by8' is not like 28x28"),
        (("--image", "3x3", "--minutes", 0), 1, "3 x 3"),
        (("--target", "colour"), 1, "no column 'colour'"),
        (("--model", "flowers.csv", "--max-basis", 3), 2, "are for fits"),
        (("--comparison", "flowers.csv"), 1, "no JSON file"),
    ],
)
def test_mistakes_are_told_in_a_line(flowers, monkeypatch, words, code, told):
    monkeypatch.chdir(flowers)
    target = () if "--target" in words else ("--target", "species")
    given = ["report", "flowers.csv", *target, *map(str, words)]
    done = CliRunner().invoke(commands, given)
    assert done.exit_code == code
    assert told in done.output
    assert "Traceback" not in done.output


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="signals of other systems")
def test_ctrl_c_leaves_the_old_page(flowers):
    page = flowers / "stopped.html"
    page.write_text("old", encoding="utf-8")
    before = sorted(flowers.iterdir())
    # Who ignores Ctrl-C, as nohup does, hands that on to the programs it starts.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from widemargin.cli import main; main()"
    )
    words = ["report", "flowers.csv", "--target", "species", "-o", "stopped.html"]
    child = subprocess.Popen(
        [sys.executable, "-c", program, *words], cwd=flowers, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stderr.readline().startswith("flowers.csv: 150 rows")
        time.sleep(3)  # into the comparison
        child.send_signal(signal.SIGINT)
        _, told = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode == 130
    assert "Stopped by Ctrl-C" in told
    assert page.read_text(encoding="utf-8") == "old"
    assert sorted(flowers.iterdir()) == before

"""Commands as processes: exit codes, pipes, Ctrl-C, and what is said where a package is missing."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from sklearn.datasets import dump_svmlight_file, load_iris, make_classification

import widemargin


@pytest.fixture
def iris(tmp_path):
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X, y, str(tmp_path / "iris.svm"), zero_based=False)
    return tmp_path


def start(*arguments, **options):
    command = [sys.executable, "-m", "widemargin.cli", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes | options)


def run(*arguments, input=None, **options):
    process = start(*arguments, stdin=subprocess.PIPE, **options)
    out, error = process.communicate(input)
    return process.returncode, out.decode(), error.decode()


def test_from_standard_input_to_answers(iris):
    rows = (iris / "iris.svm").read_bytes()
    code, out, error = run("fit", "-", "--max-basis", 4, "-o", "m", "--json", input=rows, cwd=iris)
    assert code == 0, error
    assert json.loads(out)["vectors"] == 4
    code, out, error = run("predict", "m", "-", input=rows, cwd=iris)
    assert code == 0, error
    assert len(out.split()) == 150
    code, out, error = run("predict", "m", "-", input=b"nonsense,1\n2,3\n", cwd=iris)
    assert code == 1
    assert "Traceback" not in error
    assert error.startswith("Error: ")


def test_the_demo_runs_all_commands(tmp_path):
    code, out, error = run("demo", "--folder", tmp_path)
    assert code == 0, error
    assert "$ widemargin export" in error
    assert "one row, p99" in out
    written = {"answers.csv", "digits.h", "digits.model", "test.csv", "train.csv"}
    assert {each.name for each in tmp_path.iterdir()} == written


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_a_fit_without_a_file(tmp_path):
    X, y = make_classification(
        20_000, 30, n_informative=20, n_classes=5, class_sep=0.3, random_state=0
    )
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    process = start("fit", "rows.svm", "--max-basis", 300, "-o", "m", cwd=tmp_path)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error.decode()
    assert "Traceback" not in error.decode()
    assert [each.name for each in tmp_path.iterdir()] == ["rows.svm"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_told(iris):
    machine = widemargin.SparseKernelClassifier(max_basis=3, random_state=0)
    widemargin.save(machine.fit(*load_iris(return_X_y=True)), iris / "m")
    with open("/dev/full", "wb") as full:
        process = start("predict", "m", "iris.svm", cwd=iris, stdout=full)
        _, error = process.communicate()
    assert process.returncode == 1
    assert "No space left on device" in error.decode()
    assert "Traceback" not in error.decode()


def test_a_missing_package_is_named():
    package = "rich"
    code = (
        "import importlib.util, sys\n"
        "found = importlib.util.find_spec\n"
        f"hidden = lambda name, *rest: None if name == {package!r} else found(name, *rest)\n"
        "import widemargin.cli\n"
        "widemargin.cli.find_spec = hidden\n"
        "widemargin.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert package in done.stderr
    assert 'pip install "widemargin[cli]"' in done.stderr

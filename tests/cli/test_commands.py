"""Commands, in this process: what they print, write and refuse."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris, make_multilabel_classification

import widemargin
from widemargin.cli._group import commands
from widemargin.model_files import read_notes

COLUMNS = "sepal length,sepal width,petal length,petal width,colour,species\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with iris as CSV, with texts and gaps, and as svmlight; and a model of it."""
    place = tmp_path_factory.mktemp("data")
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    rng = np.random.RandomState(0)
    lines = []
    for i in rng.permutation(150):
        values = [str(value) for value in X[i]]
        if rng.rand() < 0.05:
            values[1] = ""
        colour = "red" if rng.rand() < 0.3 + 0.4 * (y[i] == 1) else "blue"
        lines.append(",".join([*values, colour, names[i]]) + "\n")
    (place / "iris.csv").write_text(COLUMNS + "".join(lines))
    rows = "".join(
        f"{y[i]} " + " ".join(f"{j + 1}:{value}" for j, value in enumerate(X[i])) + "\n"
        for i in range(150)
    )
    (place / "iris.svm").write_text(rows)
    arguments = "--target", "species", "--max-basis", 6, "-o", place / "m"
    done = run("fit", place / "iris.csv", *arguments)
    assert done.exit_code == 0, done.output
    return place


def run(*arguments, **options):
    return CliRunner().invoke(commands, [str(each) for each in arguments], **options)


def result(*arguments, **options):
    """Return what a command prints with --json."""
    done = run(*arguments, "--json", **options)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_fit_tells_types_and_writes_a_model(folder, tmp_path):
    model = tmp_path / "out.model"
    arguments = "fit", folder / "iris.csv", "--max-basis", 5, "-o", model
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    assert "The target is the last column, 'species'." in done.stderr
    assert "4 columns of numbers: sepal length" in done.stderr
    assert "colour (2 values)" in done.stderr
    found = result(*arguments)
    assert found["vectors"] == 5
    assert found["classes"] == ["setosa", "versicolor", "virginica"]
    assert found["training_score"] > 0.9
    assert read_notes(model)["target"] == ["species"]
    assert widemargin.load(model)[-1].max_basis == 5


def test_the_same_seed_gives_the_same_machine(folder, tmp_path):
    for name in ("a", "b"):
        run("fit", folder / "iris.svm", "--max-basis", 3, "-o", tmp_path / name)
    assert read_notes(tmp_path / "a") == read_notes(tmp_path / "b")
    X, _ = load_iris(return_X_y=True)
    scores = [widemargin.load(tmp_path / name).decision_function(X) for name in ("a", "b")]
    np.testing.assert_array_equal(*scores)


def test_predict_is_what_the_pipeline_says(folder, tmp_path):
    out = tmp_path / "out.csv"
    found = result("predict", folder / "m", folder / "iris.csv", "-o", out)
    assert found["rows"] == 150
    model = widemargin.load(folder / "m")
    table = widemargin.datasets.read_table(folder / "iris.csv", "species")
    assert out.read_text().split() == ["prediction", *model.predict(table.X)]


def test_predict_of_columns_in_another_order(folder, tmp_path):
    import pandas as pd

    frame = pd.read_csv(folder / "iris.csv")
    mixed = frame[["colour", "petal width", "petal length", "sepal width", "sepal length"]]
    mixed.assign(more=1).to_csv(tmp_path / "mixed.csv", index=False)
    frame.to_parquet(tmp_path / "iris.parquet")
    gaps = frame.assign(colour=frame["colour"].where(frame.index % 3 > 0))
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    gaps.to_parquet(tmp_path / "gaps.parquet")
    answers = [
        run("predict", folder / "m", path).stdout
        for path in (folder / "iris.csv", tmp_path / "mixed.csv", tmp_path / "iris.parquet")
    ]
    assert answers[0].count("\n") == 151
    assert answers[1] == answers[0]
    assert answers[2] == answers[0]
    with_gaps = [
        run("predict", folder / "m", tmp_path / name, "--scores").stdout
        for name in ("gaps.csv", "gaps.parquet")
    ]
    assert with_gaps[0] == with_gaps[1]


def test_predict_with_scores(folder):
    done = run("predict", folder / "m", folder / "iris.csv", "--scores")
    head, first, *_ = done.stdout.splitlines()
    assert head == "prediction,score setosa,score versicolor,score virginica"
    label, *scores = first.split(",")
    assert label == head.split(",")[1 + int(np.argmax(np.array(scores, dtype=float)))][6:]


def test_predict_of_svmlight_is_as_svm_predict_has_it(folder, tmp_path):
    run("fit", folder / "iris.svm", "--max-basis", 4, "-o", tmp_path / "m")
    with (folder / "iris.svm").open("rb") as rows:
        done = run("predict", tmp_path / "m", "-", input=rows.read())
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    _, y = load_iris(return_X_y=True)
    assert len(lines) == 150
    assert np.mean(np.array(lines, dtype=int) == y) > 0.9


def test_texts_that_training_had_not(folder, tmp_path):
    text = (folder / "iris.csv").read_text().replace("red", "pink")
    (tmp_path / "pink.csv").write_text(text)
    done = run("predict", folder / "m", tmp_path / "pink.csv", "-o", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    assert "column 'colour': 'pink' was not in training, as in" in done.stderr
    assert "pink.csv, line " in done.stderr


def test_a_gap_that_training_had_not(folder, tmp_path):
    X, y = load_iris(return_X_y=True)
    lines = [",".join([*map(str, row), f"c{label}"]) for row, label in zip(X, y, strict=True)]
    (tmp_path / "full.csv").write_text("a,b,c,d,y\n" + "\n".join(lines) + "\n")
    run("fit", tmp_path / "full.csv", "--max-basis", 3, "-o", tmp_path / "m")
    (tmp_path / "gap.csv").write_text("a,b,c,d\n1,2,3,4\n1,2,,4\n")
    done = run("predict", tmp_path / "m", tmp_path / "gap.csv", "-o", tmp_path / "out.csv")
    assert done.exit_code == 1
    assert "gap.csv, line 3, column 'c': nothing is there" in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_evaluate_takes_the_target_of_the_model(folder):
    found = result("evaluate", folder / "m", folder / "iris.csv")
    model = widemargin.load(folder / "m")
    table = widemargin.datasets.read_table(folder / "iris.csv", "species")
    assert found["accuracy"] == model.score(table.X, table.y)
    assert np.sum(found["confusion"]) == 150
    assert [each["name"] for each in found["each"]] == ["setosa", "versicolor", "virginica"]
    assert "accuracy" in run("evaluate", folder / "m", folder / "iris.csv").stdout


def test_label_sets(tmp_path):
    X, Y = make_multilabel_classification(n_samples=120, n_classes=3, random_state=0)
    head = [*(f"x{i}" for i in range(X.shape[1])), "sea", "beach", "city"]
    lines = [",".join(map(str, [*row, *labels])) for row, labels in zip(X, Y, strict=True)]
    path = tmp_path / "sets.csv"
    path.write_text("\n".join([",".join(head), *lines]) + "\n")
    arguments = "--target", "sea,beach,city", "--max-basis", 5, "-o", tmp_path / "m"
    assert result("fit", path, *arguments)["labels"] == 3
    found = result("evaluate", tmp_path / "m", path)
    assert found["hamming_loss"] < 0.3
    assert [each["name"] for each in found["each"]] == ["sea", "beach", "city"]
    done = run("predict", tmp_path / "m", path)
    first, *rows = done.stdout.splitlines()
    assert first == "sea,beach,city"
    expected = widemargin.load(tmp_path / "m").predict(
        widemargin.datasets.read_table(path, ["sea", "beach", "city"]).X
    )
    np.testing.assert_array_equal([row.split(",") for row in rows], expected.astype(str))


def test_labels_of_svmlight_in_another_order(tmp_path):
    rng = np.random.RandomState(0)
    X = rng.rand(60, 3)
    labels = [",".join(str(j) for j in range(3) if x[j] > 0.5) for x in X]
    lines = [
        f"{each} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(x))
        for each, x in zip(labels, X, strict=True)
    ]
    (tmp_path / "all.svm").write_text("\n".join(lines) + "\n")
    few = [line for line in lines if "1" not in line.split(" ")[0]]
    (tmp_path / "few.svm").write_text("\n".join(few) + "\n")
    run("fit", tmp_path / "all.svm", "--max-basis", 5, "-o", tmp_path / "m")
    found = result("evaluate", tmp_path / "m", tmp_path / "few.svm")
    assert [each["name"] for each in found["each"]] == ["0", "1", "2"]
    assert found["hamming_loss"] < 0.2


def test_bench_info_and_exports(folder, tmp_path):
    found = result("bench", folder / "m", folder / "iris.csv")
    assert 0 < found["p50_microseconds"] <= found["p99_microseconds"]
    assert found["batch_microseconds_a_row"] > 0
    assert found["bytes"] == (folder / "m").stat().st_size
    info = result("info", folder / "m")
    assert info["columns"]["colour"] == "text"
    assert info["vectors"] == 6
    assert "petal length=number" in run("info", folder / "m").stdout
    for format in ("c", "onnx"):
        path = tmp_path / f"exported.{format}"
        found = result("export", folder / "m", "--format", format, "-o", path)
        assert found["bytes"] == path.stat().st_size
    assert "exported_predict" in (tmp_path / "exported.c").read_text()


def test_tune_tells_what_was_tried(folder, tmp_path):
    arguments = "tune", folder / "iris.csv", "--target", "species", "--max-basis", 3, "--jobs", 1
    given = "--param", "cv=2", "--param", "basis=shared", "--param", "Cs=[1.0,10.0]"
    found = result(*arguments, *given, "--param", "widths=[1.0]", "-o", tmp_path / "m")
    assert found["best_score"] > 0.8
    assert len(found["trials"]) >= 2
    assert result("evaluate", tmp_path / "m", folder / "iris.csv")["accuracy"] > 0.8


def test_machines_and_parameters_by_name(folder, tmp_path):
    arguments = "fit", folder / "iris.svm", "-o", tmp_path / "m", "--machine"
    found = result(*arguments, "kernelclassifier", "--param", "C=10", "--param", "gamma=0.5")
    assert found["machine"] == "KernelClassifier"
    machine = widemargin.load(tmp_path / "m")
    assert (machine.C, machine.gamma) == (10, 0.5)
    basis = 'basis=LearnedBasis(metric="diagonal")'
    run(*arguments, "SparseKernelClassifier", "--param", basis, "--max-basis", 4)
    assert widemargin.load(tmp_path / "m").basis.metric == "diagonal"


@pytest.mark.parametrize("name", ["iris.csv", "iris.svm"])
def test_rows_are_learned_as_they_are_read(folder, tmp_path, name):
    path = folder / name
    if name == "iris.csv":  # streams have no medians
        lines = [line for line in path.read_text().splitlines() if ",," not in line]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
    found = result("fit", path, "--stream", "--passes", 20, "-o", tmp_path / "m")
    assert found["machine"] == "StochasticLinearClassifier"
    assert result("evaluate", tmp_path / "m", path)["accuracy"] > 0.85


def test_files_beyond_memory_are_streamed(folder, tmp_path, monkeypatch):
    from widemargin.cli import _streaming

    monkeypatch.setattr(_streaming, "is_too_large", lambda path: True)
    done = run("fit", folder / "iris.svm", "-o", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert "rows are learned as they are read" in done.stderr
    done = run("fit", folder / "iris.svm", "--machine", "SparseKernelClassifier")
    assert done.exit_code == 1
    assert "needs all rows in memory" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "absent.csv"], ["There is no absent.csv"]),
        (["fit", "iris.csv", "--target", "specie"], ["no column 'specie'", "Is it 'species'?"]),
        (["fit", "iris.csv", "--target", "petal width"], ["column 'petal width'", "quantity"]),
        (["fit", "iris.csv", "--machine", "SVC"], ["no machine 'SVC'"]),
        (["fit", "iris.csv", "--param", "D=1"], ["no parameter 'D'", "max_basis"]),
        (["fit", "m"], ["is a model file, and data are asked for"]),
        (["fit", "iris.csv", "-o", "no/such/folder"], ["there is no folder"]),
        (["fit", "iris.csv", "--drop", "colors"], ["no column 'colors' for drop"]),
        (["fit", "numbers.csv"], ["numbers.csv begins with a line of numbers", "--no-header"]),
        (["fit", "zero.svm"], ["zero.svm, line 1", "--zero-based"]),
        (["fit", "ragged.csv"], ["ragged.csv, line 3", "--skip-bad-rows"]),
        (["predict", "iris.csv", "iris.csv"], ["not a model file", "widemargin fit"]),
        (["predict", "m", "iris.csv", "--probabilities"], ["no probabilities", "loss=logistic"]),
        (["predict", "m", "other.csv"], ["other.csv has no column 'sepal length' for the model"]),
        (["predict", "m", "words.csv"], ["words.csv, line 3, column 'petal width': 'wide' is no"]),
        (["evaluate", "m", "iris.csv", "--target", "none"], ["no column 'none'"]),
        (["export", "iris.csv", "--format", "c"], ["not a model file"]),
        (["datasets", "get", "nothing_like_it"], ["no data set 'nothing_like_it'"]),
    ],
)
def test_a_mistake_is_told_in_a_line(folder, monkeypatch, arguments, words):
    monkeypatch.chdir(folder)
    (folder / "numbers.csv").write_text("1.5,2,0\n3,4,1\n")
    (folder / "zero.svm").write_text("1 0:2\n2 4:5\n")
    (folder / "ragged.csv").write_text("a,y\n1,2\n3,4,5\n")
    (folder / "other.csv").write_text("a,b\n1,2\n")
    (folder / "words.csv").write_text(COLUMNS + "1,2,3,4,red,x\n1,2,3,wide,red,x\n")
    done = run(*arguments)
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit"],
        ["fit", "x", "--max-basis", "0"],
        ["fit", "x", "--param", "C"],
        ["predict", "m", "x", "--json"],
        ["export", "m", "--format", "exe"],
        ["no-command"],
    ],
)
def test_how_a_command_is_written(folder, monkeypatch, arguments):
    monkeypatch.chdir(folder)
    (folder / "x").write_text((folder / "iris.svm").read_text())
    assert run(*arguments).exit_code == 2


def test_what_is_there_stays_where_a_command_fails(folder, tmp_path):
    old = tmp_path / "answers.csv"
    old.write_text("old\n")
    text = (folder / "iris.csv").read_text() + "1,2,3,wide,red,x\n"
    (tmp_path / "bad.csv").write_text(text)
    assert run("predict", folder / "m", tmp_path / "bad.csv", "-o", old).exit_code == 1
    assert old.read_text() == "old\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["answers.csv", "bad.csv"]


def test_ctrl_c_leaves_no_file(folder, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(widemargin.SparseKernelClassifier, "fit", interrupted)
    done = run("fit", folder / "iris.csv", "-o", tmp_path / "m")
    assert done.exit_code == 130
    assert "Stopped by Ctrl-C" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_command_has_help_with_examples():
    names = commands.list_commands(None)
    assert {"fit", "predict", "evaluate", "tune", "bench", "export", "info", "datasets"} <= {*names}
    for name in names:
        done = run(name, "--help")
        assert done.exit_code == 0
        assert "widemargin " + name in done.stdout, name


def test_shells_complete_machines():
    from click.shell_completion import ShellComplete

    completion = ShellComplete(commands, {}, "widemargin", "_WIDEMARGIN_COMPLETE")
    found = completion.get_completions(["fit", "x", "--machine"], "kernelM")
    assert [each.value for each in found] == ["KernelMIRA", "KernelMultiLabelClassifier"]
    assert "_WIDEMARGIN_COMPLETE" in run("completion", "bash").stdout


def test_data_sets_are_listed():
    listed = {each["name"]: each for each in result("datasets")["datasets"]}
    assert listed["letter.scale"]["features"] == 16
    assert "yeast" in run("datasets").stdout


def test_many_texts_are_grouped(tmp_path):
    rng = np.random.RandomState(0)
    town = rng.zipf(1.5, 3000) % 1000
    lines = [
        f"town{t},{x:.3f},{'pq'[int(t < 3)]}" for t, x in zip(town, rng.rand(3000), strict=True)
    ]
    path = tmp_path / "towns.csv"
    path.write_text("town,x,y\n" + "\n".join(lines) + "\n")
    found = result("fit", path, "--max-basis", 4, "-o", tmp_path / "m")
    assert found["training_score"] > 0.99
    out = run("predict", tmp_path / "m", path).stdout.split()[1:]
    assert np.mean(np.array(out) == [line[-1] for line in lines]) > 0.99

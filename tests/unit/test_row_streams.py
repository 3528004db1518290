"""``widemargin.stream``: rows of files come as they are, in any order and from any place."""

import bz2
import gzip
import json
import lzma
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import SGDClassifier

import widemargin
from widemargin import KernelClassifier, KernelMIRA, KernelPerceptron
from widemargin.datasets import StreamError, save_rows
from widemargin.datasets import text as text_module

N_ROWS, N_FEATURES = 400, 12
X = sp.random(N_ROWS, N_FEATURES, 0.4, "csr", dtype=np.float32, random_state=0)
Y = np.arange(N_ROWS) % 3
NAMES = np.array(["ash", "elm", "oak"])


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Let the files of these tests have many pieces."""
    monkeypatch.setattr(text_module, "_PIECE", 3000)


def write_svmlight(folder):
    path = folder / "rows.svm"
    dump_svmlight_file(X, Y, str(path), zero_based=False)
    return path


def write_table(folder, name):
    arrow = pytest.importorskip("pyarrow")
    dense = X.toarray()
    columns = {f"x{j}": dense[:, j] for j in range(N_FEATURES)}
    table = arrow.table(columns | {"tree": NAMES[Y], "counts": np.arange(N_ROWS) % 5 + 1.0})
    path = folder / name
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=150)
    else:
        pytest.importorskip("pyarrow.csv").write_csv(table, path)
    return path


def write_sparse_parquet(folder):
    arrow = pytest.importorskip("pyarrow")
    rows = [X[i] for i in range(N_ROWS)]
    columns = {"indices": [row.indices for row in rows], "values": [row.data for row in rows]}
    path = folder / "sparse.parquet"
    table = arrow.table(columns | {"tree": NAMES[Y]})
    pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=150)
    return path


KINDS = {
    "svmlight": lambda folder, **kw: widemargin.stream(write_svmlight(folder), **kw),
    "csv": lambda folder, **kw: widemargin.stream(
        write_table(folder, "rows.csv"), target="tree", weight="counts", **kw
    ),
    "parquet": lambda folder, **kw: widemargin.stream(
        write_table(folder, "rows.parquet"), target="tree", weight="counts", **kw
    ),
    "sparse parquet": lambda folder, **kw: widemargin.stream(
        write_sparse_parquet(folder), target="tree", n_features=N_FEATURES, **kw
    ),
    "folder": lambda folder, **kw: widemargin.stream(
        save_rows(folder / "rows", [(X[:150], Y[:150]), (X[150:], Y[150:])]), **kw
    ),
    "dense folder": lambda folder, **kw: widemargin.stream(
        save_rows(folder / "rows", [(X.toarray(), NAMES[Y], Y + 1.0)]), **kw
    ),
}

every_kind = pytest.mark.parametrize("kind", KINDS)


def gathered(batches):
    """Return all rows, dense, and all labels, as numbers of classes."""
    rows = [each.toarray() if sp.issparse(each) else each for each, *_ in batches]
    labels = np.concatenate([y for _, y, *_ in batches])
    numbers = np.searchsorted(NAMES, labels) if labels.dtype.kind == "U" else labels
    return np.concatenate(rows), numbers


@pytest.mark.every_case
@every_kind
def test_batches_are_the_rows_of_the_file(kind, tmp_path):
    stream = KINDS[kind](tmp_path, batch_size=90)
    batches = list(stream)
    rows, labels = gathered(batches)
    assert rows.dtype == np.float32
    assert_array_equal(rows, X.toarray())
    assert_array_equal(labels, Y)
    assert [len(batch[1]) for batch in batches] == [90, 90, 90, 90, 40]
    assert (stream.rows_read, stream.passes, stream.skipped) == (N_ROWS, 1, 0)
    assert stream.n_features == N_FEATURES
    assert stream.n_rows in (N_ROWS, None if kind == "csv" else N_ROWS)
    if kind in ("csv", "parquet", "dense folder"):
        weights = np.concatenate([weight for _, _, weight in batches])
        assert_array_equal(weights, np.arange(N_ROWS) % (3 if "folder" in kind else 5) + 1.0)


@pytest.mark.every_case
@every_kind
def test_shuffling_moves_rows_within_windows_and_another_way_in_each_pass(kind, tmp_path):
    stream = KINDS[kind](tmp_path, batch_size=50, shuffle_buffer=140, random_state=0)
    place = {tuple(row): i for i, row in enumerate(X.toarray())}
    assert len(place) > 0.9 * N_ROWS  # rows can be told from one another
    orders = []
    for _ in range(2):
        rows, labels = gathered(list(stream))
        order = np.array([place[tuple(row)] for row in rows])
        assert_array_equal(np.sort(order), np.sort([place[tuple(row)] for row in X.toarray()]))
        assert np.mean(labels == Y[order]) > 0.9
        windows = order // 150  # the buffer, made up to whole batches
        assert_array_equal(windows, np.arange(N_ROWS) // 150)
        orders.append(order)
    assert np.mean(orders[0] == orders[1]) < 0.1
    assert np.mean(orders[0] == np.arange(N_ROWS)) < 0.1
    again = KINDS[kind](tmp_path, batch_size=50, shuffle_buffer=140, random_state=0)
    assert_array_equal(gathered(list(again))[0], X.toarray()[orders[0]])


@pytest.mark.every_case
@pytest.mark.parametrize("buffer", [None, 110])
@every_kind
def test_a_stream_goes_on_from_a_saved_place(kind, buffer, tmp_path):
    def make():
        return KINDS[kind](tmp_path, batch_size=40, shuffle_buffer=buffer, random_state=1)

    stream = make()
    expected = [*stream, *stream]  # two passes
    for stop in (0, 1, 5, 10, 13):
        stream, given = make(), 0
        while given < stop:
            for _ in stream:
                given += 1
                if given == stop:
                    break
        other = make()
        other.seek(json.loads(json.dumps(stream.position())))
        rest = []
        while len(rest) < len(expected) - stop:
            rest += list(other)
        assert len(rest) == len(expected) - stop
        for mine, theirs in zip(rest, expected[stop:], strict=True):
            assert_array_equal(gathered([mine])[0], gathered([theirs])[0])
            assert_array_equal(mine[1], theirs[1])


def compress_zstd(data):
    return pytest.importorskip("pyarrow").compress(data, codec="zstd", asbytes=True)


COMPRESSIONS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": compress_zstd,
}


@pytest.mark.every_case
@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_compressed_files_are_read_and_cut_ones_refused(suffix, tmp_path):
    data = write_svmlight(tmp_path).read_bytes()
    packed = COMPRESSIONS[suffix](data)
    path = tmp_path / "packed"  # its bytes tell, not its name
    path.write_bytes(packed)
    stream = widemargin.stream(path, batch_size=100)
    assert_array_equal(gathered(list(stream))[0], X.toarray())
    next(iter(stream))
    position = stream.position()
    again = widemargin.stream(path, batch_size=100)
    again.seek(position)
    assert_array_equal(gathered(list(again))[0], X.toarray()[100:])
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(StreamError, match=r"packed, about line \d+: .*cut off in the middle"):
        list(widemargin.stream(path, n_features=N_FEATURES))


BAD_LINES = {
    "1 3:0.5 7:": r"'7:' is not an index, a colon and a number",
    "1 3:0.5 7": r"'7' is not an index",
    "oak 3:0.5": r"the label 'oak' is no number",
    "1,2 3:0.5": r"the label '1,2' is no number; .* multilabel=True",
    "1 0:0.5": r"an index 0.* zero_based=True",
    "1 5:1 2:3": r"the index 2 comes after 5",
    "1 13:1": r"it has 13 features, and rows have n_features=12",
    "1 2:nan": r"feature 1 is nan",
    "inf 2:1": r"label is inf",
    "1 99999999999999999999:1": r"features, and rows have n_features=12",
}


@pytest.mark.every_case
@pytest.mark.parametrize("line", BAD_LINES)
def test_a_bad_line_is_named_or_skipped(line, tmp_path):
    path = write_svmlight(tmp_path)
    lines = path.read_text().splitlines()
    lines[321] = line
    path.write_text("\n".join(lines) + "\n")
    found = rf"rows.svm, line 322: .*{BAD_LINES[line]}.*on_error='skip'"
    with pytest.raises(StreamError, match=found):
        list(widemargin.stream(path, n_features=N_FEATURES))
    stream = widemargin.stream(path, n_features=N_FEATURES, on_error="skip", batch_size=64)
    rows, labels = gathered(list(stream))
    kept = np.arange(N_ROWS) != 321
    assert_array_equal(rows, X.toarray()[kept])
    assert_array_equal(labels, Y[kept])
    assert (stream.skipped, stream.rows_read) == (1, N_ROWS - 1)


def test_many_bad_lines_are_skipped_and_counted_from_any_place(tmp_path):
    path = write_svmlight(tmp_path)
    lines = path.read_text().splitlines()
    bad = np.arange(0, N_ROWS, 7)
    for i in bad:
        lines[i] = "what?"
    path.write_text("\n".join(lines) + "\n")

    def make():
        return widemargin.stream(path, n_features=N_FEATURES, on_error="skip", batch_size=50)

    stream, kept = make(), np.setdiff1d(np.arange(N_ROWS), bad)
    assert_array_equal(gathered(list(stream))[1], Y[kept])
    assert stream.skipped == len(bad)
    for _ in stream:
        if stream.rows_read == 200:
            break
    other = make()
    other.seek(stream.position())
    assert_array_equal(gathered(list(other))[1], Y[kept[200:]])
    assert other.skipped == len(bad)


def test_comments_blank_lines_and_other_line_ends_are_no_rows(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"# head\r\n\r\n1 1:1 # one\r\n\n2 2:1\r\n-1 3:2")
    rows, labels = gathered(list(widemargin.stream(path)))
    assert_array_equal(rows, [[1, 0, 0], [0, 1, 0], [0, 0, 2]])
    assert_array_equal(labels, [1, 2, -1])
    path.write_bytes(b"# head\r\n\r\n1 1:1\r\n2 x\r\n")
    with pytest.raises(StreamError, match="line 4"):
        list(widemargin.stream(path, n_features=3))


def test_a_text_that_ends_in_the_middle_of_a_row_is_told_so(tmp_path):
    path = write_svmlight(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b":") + 1])
    with pytest.raises(StreamError, match=f"line {N_ROWS}.*may have been cut off in the middle"):
        list(widemargin.stream(path, n_features=N_FEATURES))


def test_labels_are_those_of_the_classes(tmp_path):
    path = write_svmlight(tmp_path)
    stream = widemargin.stream(path, classes=[2, 1, 0])
    (_, y), *_ = stream
    assert y.dtype.kind == "i"
    assert_array_equal(stream.classes, [0, 1, 2])
    with pytest.raises(StreamError, match=r"line 3: the label 2.0 is not among the classes"):
        list(widemargin.stream(path, classes=[0, 1], n_features=N_FEATURES))
    table = write_table(tmp_path, "rows.parquet")
    stream = widemargin.stream(table, target="tree", classes=["ash", "oak"], features=["x0", "x1"])
    with pytest.raises(StreamError, match=r"row 1, the first being 0: the label elm is not among"):
        list(stream)


def test_sets_of_labels_become_indicators(tmp_path):
    path = tmp_path / "labels.svm"
    path.write_text("0,2 1:1\n 2:1\n1 3:1\n2,1 1:3\n")
    stream = widemargin.stream(path, multilabel=True, batch_size=3)
    batches = list(stream)
    assert_array_equal(stream.classes, [0, 1, 2])
    indicators = sp.vstack([y for _, y in batches]).toarray()
    assert_array_equal(indicators, [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 1, 1]])
    with pytest.raises(StreamError, match=r"line 4: the label 2 is not among|line 1: the label 2"):
        list(widemargin.stream(path, multilabel=True, classes=[0, 1], n_features=3))


def test_the_width_of_a_long_text_is_asked_for(tmp_path, monkeypatch):
    path = write_svmlight(tmp_path)
    monkeypatch.setattr("widemargin.datasets.opening._SCANNED", 5000)
    with pytest.raises(ValueError, match=r"give n_features, or n_features='scan'"):
        widemargin.stream(path)
    stream = widemargin.stream(path, n_features="scan")
    assert (stream.n_features, stream.n_rows) == (N_FEATURES, N_ROWS)
    assert_array_equal(stream.classes, [0, 1, 2])
    assert widemargin.stream(path, n_features=20).n_features == 20


CSV_FAULTS = {
    "1,2": r"it has 2 values, and there are 3 columns",
    "1,a,oak": r"column 'b' is 'a', which is no number",
    "1,,oak": r"column 'b' is missing",
    "1,inf,oak": r"feature 1 is inf",
}


@pytest.mark.every_case
@pytest.mark.parametrize("line", CSV_FAULTS)
def test_a_bad_line_of_csv_is_named_or_skipped(line, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    path.write_text("a,b,tree\n" + "1,2,elm\n3,4,oak\n" * 5 + line + "\n5,6,elm\n")
    with pytest.raises(StreamError, match=f"line 12: {CSV_FAULTS[line]}"):
        list(widemargin.stream(path, target="tree"))
    stream = widemargin.stream(path, target="tree", on_error="skip")
    rows, _ = gathered(list(stream))
    assert rows.shape == (11, 2)
    assert stream.skipped == 1


def test_rows_that_are_not_finite_are_named_or_skipped(tmp_path):
    dense = X.toarray()
    dense[7, 3] = np.nan
    folder = save_rows(tmp_path / "rows", [(dense, Y)])
    with pytest.raises(StreamError, match=r"row 7, the first being 0: feature 3 is nan"):
        list(widemargin.stream(folder))
    stream = widemargin.stream(folder, on_error="skip", batch_size=100)
    assert_array_equal(gathered(list(stream))[1], np.delete(Y, 7))
    assert stream.skipped == 1


def test_files_that_hold_no_rows_are_refused(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("# nothing\n")
    with pytest.raises(StreamError, match="has no rows"):
        widemargin.stream(path)
    with pytest.raises(StreamError, match="has no rows"):
        list(widemargin.stream(path, n_features=3))
    with pytest.raises(FileNotFoundError, match="There is no"):
        widemargin.stream(tmp_path / "none.svm")
    with pytest.raises(ValueError, match="no rows to save"):
        save_rows(tmp_path / "rows", [])
    with pytest.raises(StreamError, match=r"without rows\.json"):
        widemargin.stream(tmp_path / "rows")


def test_what_a_format_has_no_use_for_is_refused(tmp_path):
    path = write_svmlight(tmp_path)
    for useless in ({"target": "tree"}, {"weight": "w"}, {"features": ["a"]}):
        with pytest.raises(ValueError, match="has no meaning for format='svmlight'"):
            widemargin.stream(path, **useless)
    table = write_table(tmp_path, "rows.csv")
    with pytest.raises(ValueError, match="has no meaning for format='csv'"):
        widemargin.stream(table, target="tree", zero_based=True)
    with pytest.raises(ValueError, match=r"give its name as target=. There are 'x0', 'x1'"):
        widemargin.stream(table)
    with pytest.raises(ValueError, match="target='bush' is no column"):
        widemargin.stream(table, target="bush")
    with pytest.raises(ValueError, match="format must be one of"):
        widemargin.stream(path, format="arff")
    with pytest.raises(ValueError, match="n_features"):
        widemargin.stream(path, n_features="auto")
    with pytest.raises(ValueError, match="batch_size must be 1 or more"):
        widemargin.stream(path, batch_size=0)


def test_text_among_the_features_of_a_table_is_refused(tmp_path):
    path = write_table(tmp_path, "rows.parquet")
    with pytest.raises(StreamError, match=r"string in column 'tree'.*features="):
        widemargin.stream(path, target="counts")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StreamError, match="cut off in the middle"):
        widemargin.stream(path, target="tree")


@pytest.mark.parametrize("file", ["indptr", "data", "y"])
def test_files_of_a_folder_that_do_not_belong_together_are_refused(file, tmp_path):
    folder = save_rows(tmp_path / "rows", [(X, Y)])
    values = np.load(folder / f"{file}.npy")
    np.save(folder / f"{file}.npy", values[:-3])
    with pytest.raises(StreamError, match="do not belong together"):
        widemargin.stream(folder)
    whole = (folder / "indices.npy").read_bytes()
    (folder / "indices.npy").write_bytes(whole[:-5])
    with pytest.raises(StreamError, match="ends in the middle"):
        widemargin.stream(folder)


def test_the_files_of_a_folder_can_be_mapped(tmp_path):
    folder = save_rows(tmp_path / "rows", widemargin.stream(write_svmlight(tmp_path)))
    mapped = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "y")]
    assert_array_equal(mapped[0], X.data)
    assert_array_equal(mapped[1], X.indices)
    assert_array_equal(mapped[2], Y)
    with pytest.raises(ValueError, match="A batch has 3 features"):
        save_rows(tmp_path / "rows", [(X, Y), (X[:, :3], Y)])
    with pytest.raises(
        StreamError, match=r"without rows\.json"
    ):  # what failed is no folder of rows
        widemargin.stream(folder)


def test_a_place_of_another_stream_is_refused(tmp_path):
    path = write_svmlight(tmp_path)
    stream = widemargin.stream(path, batch_size=50)
    position = stream.position()
    with pytest.raises(ValueError, match=r"is of a stream with batch_size=50.*batch_size=60"):
        widemargin.stream(path, batch_size=60).seek(position)
    for damaged in ({}, position | {"version": 7}, position | {"taken": -1}, position | {"at": 3}):
        with pytest.raises(ValueError, match="The position"):
            stream.seek(damaged)


def test_of_two_loops_the_later_one_goes_on(tmp_path):
    stream = widemargin.stream(write_svmlight(tmp_path), batch_size=100)
    first = iter(stream)
    next(first)
    assert len(list(stream)) == 4
    with pytest.raises(RuntimeError, match="one place"):
        next(first)


class Recorder:
    """A learner that remembers what it was fed."""

    def __init__(self):
        self.labels, self.told = [], []

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        self.labels.extend(y)
        self.told.append((classes, sample_weight))


def test_feeding_goes_on_where_it_was(tmp_path):
    stream = widemargin.stream(write_svmlight(tmp_path), batch_size=90)
    learner = Recorder()
    stream.feed(learner, max_rows=100)  # ends with a batch
    assert len(learner.labels) == 180
    assert_array_equal(learner.told[0][0], [0, 1, 2])
    assert learner.told[1][0] is None
    stream.feed(learner)
    assert_array_equal(learner.labels, Y)
    stream.feed(learner, callback=lambda machine, stream: stream.rows_read >= 90)
    assert len(learner.labels) == N_ROWS + 90
    stream.feed(learner, passes=2)
    assert_array_equal(learner.labels, np.tile(Y, 3))
    assert stream.passes == 3
    with pytest.raises(TypeError, match="has no partial_fit"):
        stream.feed(object())


def test_feeding_hands_weights_on(tmp_path):
    learner = Recorder()
    KINDS["dense folder"](tmp_path, batch_size=100).feed(learner)
    assert_array_equal(np.concatenate([weight for _, weight in learner.told]), Y + 1.0)
    KINDS["dense folder"](tmp_path, classes=NAMES).feed(SGDClassifier(random_state=0))


MACHINES = {
    "larank": KernelClassifier(C=5, gamma=0.5, budget=60, random_state=0),
    "larank, redundant": KernelClassifier(
        C=5, gamma=0.5, budget=60, budget_policy="redundant", random_state=0
    ),
    "perceptron": KernelPerceptron(gamma=0.5),
    "mira": KernelMIRA(gamma=0.5, budget=50),
}


def stream_of(path):
    return widemargin.stream(path, batch_size=30, shuffle_buffer=100, random_state=4)


@pytest.mark.every_case
@pytest.mark.parametrize("name", MACHINES)
def test_a_training_that_fails_goes_on_to_the_same_machine(name, tmp_path):
    path = write_svmlight(tmp_path)

    def keep(machine, stream):
        if stream.rows_read in (60, 150):
            stream.checkpoint(tmp_path / "kept", machine)
        if stream.rows_read == 180:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream_of(path).feed(clone(MACHINES[name]), passes=2, callback=keep)
    stream = stream_of(path)
    machine = stream.resume(tmp_path / "kept")
    assert stream.rows_read == 150
    stream.feed(machine, passes=2 - stream.passes)
    expected = stream_of(path).feed(clone(MACHINES[name]), passes=2)
    assert_array_equal(machine.decision_function(X), expected.decision_function(X))


def test_a_training_that_was_killed_goes_on_to_the_same_machine(tmp_path):
    """The process is gone: all that is left is a folder."""
    path = write_svmlight(tmp_path)
    script = f"""
import os, sys
import widemargin
assert "widemargin.datasets" not in sys.modules  # readers load when they are asked for
from widemargin import KernelClassifier
stream = widemargin.stream({str(path)!r}, batch_size=30, shuffle_buffer=100, random_state=4)
def keep(machine, stream):
    stream.checkpoint({str(tmp_path / "kept")!r}, machine)
    if stream.rows_read == 330:
        os._exit(9)
stream.feed({MACHINES["larank"]!r}, callback=keep)
"""
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert killed.returncode == 9, killed.stderr
    text_module._PIECE = 1 << 20  # as in the other process; the fixture puts it back
    stream = stream_of(path)
    machine = stream.feed(stream.resume(tmp_path / "kept"))
    expected = stream_of(path).feed(clone(MACHINES["larank"]))
    assert_array_equal(machine.decision_function(X), expected.decision_function(X))


def test_a_folder_without_a_checkpoint_gives_none(tmp_path):
    stream = widemargin.stream(write_svmlight(tmp_path))
    assert stream.resume(tmp_path / "none") is None
    (tmp_path / "place.json").write_text("[")
    with pytest.raises(ValueError, match="is no place of a stream"):
        stream.resume(tmp_path)


def test_progress_tells_rows_and_speed(tmp_path, capsys):
    stream = widemargin.stream(write_svmlight(tmp_path), progress=True)
    list(stream)
    assert "[rows.svm] 400 rows, 100 %, " in capsys.readouterr().err


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    with pytest.raises(ImportError, match=r"pip install widemargin\[stream\]"):
        widemargin.stream(path, target="b")

"""Files of every format as tables, and one line for each thing that can be wrong with one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_iris

import widemargin
from widemargin.datasets import StreamError, pipeline_for, read_table

ARFF = """@relation x
@attribute a numeric
@attribute 'b c' {u,v}
@attribute l1 {0,1}
@attribute l2 {0,1}
@data
1,u,0,1
2,v,1,0
?,u,1,1
"""
SPARSE_ARFF = """@relation x
@attribute a numeric
@attribute l1 {0,1}
@attribute l2 {0,1}
@data
{0 3,1 1}
{0 4, 2 1}
{}
"""
NAMESPACE = "http://mulan.sourceforge.net/labels"
XML = f'<labels xmlns="{NAMESPACE}"><label name="l1"/><label name="l2"></label></labels>'


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_texts_numbers_and_missing_values_of_csv(write):
    table = read_table(write("a.csv", "n,t,flag,y\n1,x,true,p\n,y,false,q\n2.5,,true,p\n"), "y")
    assert table.kinds == {"n": "number", "t": "text", "flag": "text"}
    np.testing.assert_array_equal(table.X["n"], [1, np.nan, 2.5])
    assert table.X["t"].tolist() == ["x", "y", ""]
    assert table.y.tolist() == ["p", "q", "p"]
    assert table.notes == ()


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfa,y\r\n1,p\r\n2,q\r\n",
        b"a;y\n1;p\n2;q",
        b"a\ty\n1\tp\n2\tq\n",
        b"a,y\n1,p\n2,q\n",
    ],
    ids=["BOM and Windows", "semicolons", "tabs", "plain"],
)
def test_dialects_of_csv_are_one_table(write, content):
    table = read_table(write("a.csv", content), "y")
    assert table.X["a"].tolist() == [1, 2]
    assert table.y.tolist() == ["p", "q"]


def test_names_that_are_quoted_may_have_a_comma(write):
    table = read_table(write("a.csv", '"a, b",y\n1,p\n2,q\n'), "y")
    assert list(table.kinds) == ["a, b"]


def test_without_names_columns_have_numbers(write):
    table = read_table(write("a.csv", "1,2,0\n3,4,1\n"), header=False)
    assert list(table.kinds) == ["f0", "f1"]
    assert table.y.tolist() == [0, 1]
    assert table.notes == ("The target is the last column, 'f2'.",)


def test_the_same_table_from_parquet_and_arrow(write, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, ipc, parquet

    path = write("a.csv", "n,t,y\n1,x,p\n,y,q\n2.5,,p\n")
    expected = read_table(path, "y")
    columns = {
        "n": [1, None, 2.5],
        "t": arrow.array(["x", "y", None]).dictionary_encode(),
        "y": ["p", "q", "p"],
    }
    whole = arrow.table(columns)
    parquet.write_table(whole, tmp_path / "a.parquet")
    feather.write_feather(whole, tmp_path / "a.arrow")
    with ipc.new_stream(str(tmp_path / "stream"), whole.schema) as writer:
        writer.write_table(whole)
    for name in ("a.parquet", "a.arrow", "stream"):
        found = read_table(tmp_path / name, "y")
        assert found.X.equals(expected.X), name
        assert found.y.tolist() == expected.y.tolist()


def test_svmlight_of_classes_and_of_label_sets(write):
    table = read_table(write("rows", "3 1:2 4:1\n-1 2:5\n"))
    assert table.y.tolist() == [3, -1]
    np.testing.assert_array_equal(table.X.toarray(), [[2, 0, 0, 1], [0, 5, 0, 0]])
    sets = read_table(write("sets.svm", "1,7 1:2\n 3:4\n7 2:2\n"))
    assert sets.label_names == ("1", "7")
    np.testing.assert_array_equal(sets.y.toarray(), [[1, 1], [0, 0], [0, 1]])
    assert sets.X.shape == (3, 3)


def test_labels_of_arff_are_those_of_xml(write):
    write("y.xml", XML)
    table = read_table(write("y-train.arff", ARFF))
    assert table.label_names == ("l1", "l2")
    assert table.kinds == {"a": "number", "b c": "text"}
    np.testing.assert_array_equal(table.y, [[0, 1], [1, 0], [1, 1]])
    sparse = read_table(write("y-test.arff", SPARSE_ARFF))
    assert sp.issparse(sparse.X)
    np.testing.assert_array_equal(sparse.X.toarray().ravel(), [3, 4, 0])
    np.testing.assert_array_equal(sparse.y.toarray(), [[1, 0], [0, 1], [0, 0]])


def test_labels_of_meka_are_the_first_attributes(write):
    text = "@relation 'x: -C 2'\n@attribute l1 {0,1}\n@attribute l2 {0,1}\n@attribute a numeric\n"
    table = read_table(write("m.arff", text + "@data\n0,1,5\n1,0,6\n"))
    assert table.label_names == ("l1", "l2")
    assert table.X["a"].tolist() == [5, 6]


def test_without_xml_the_last_attribute_is_the_class(write):
    assert read_table(write("x.arff", ARFF)).target == ("l2",)


MANY = "".join(f"t{i},{i % 7},{'pq'[i % 2]}\n" for i in range(1000))
SLIP = "".join(f"{'x' if i == 7 else i},{'pq'[i % 2]}\n" for i in range(100))


@pytest.mark.parametrize(
    ("name", "content", "target", "words"),
    [
        ("a.csv", "1.5,2,3\n4,5,6\n", None, ["a.csv", "line of numbers", "header=False"]),
        ("a.csv", "abc\n1\n2\n", None, ["a.csv, line 1", "one column", "commas"]),
        ("a.csv", "aa,bb\n1,2\n", "bbb", ["no column 'bbb'", "Is it 'bb'?"]),
        ("a.csv", "a,y\n1,3\n2,3\n", "y", ["every row has 3", "another target"]),
        ("a.csv", "a,y\n1,3.5\n2,3\n", "y", ["column 'y'", "3.5 is a quantity"]),
        ("a.csv", "a,y\n1,2\n3,4,5\n", "y", ["line 3", "got 3", "on_error='skip'"]),
        ("a.csv", b"a,y\n\xe9,p\nb,q\n", "y", ["column 'a'", "not UTF-8", "iconv"]),
        ("a.csv", "a,y\n" + SLIP, "y", ["line 9, column 'a'", "'x'", "text='a'", "drop='a'"]),
        ("a.csv", "a,y\ninf,p\n2,q\n", "y", ["line 2, column 'a'", "infinite"]),
        ("a.csv", "a,a\n1,2\n", None, ["several columns by the name of 'a'"]),
        ("a.csv", "", None, ["no rows"]),
        ("a.csv", "a,b\n", None, ["no rows"]),
        ("a.csv", "a,l,m\n1,0,1\n2,7,0\n", ["l", "m"], ["line 3, column 'l'", "0 and 1"]),
        ("a.csv", "a,y\n1,\n2,\n", "y", ["column 'y'", "no row has a value"]),
        ("a.svm", "1 1:2\n2 1:5 1:6\n", None, ["line 2", "index 1 comes after 1"]),
        ("a.svm", "1 1:2\n2 4:5 1:6\n", None, ["line 2", "index 1 comes after 4"]),
        ("a.svm", "1 0:2\n2 4:5\n", None, ["line 1", "zero_based=True"]),
        ("a.svm", "1.5 1:2\n2 4:5\n", None, ["1.5 is a quantity"]),
        ("a.svm", "1 1:2\n2 4:5\n", "y", ["begin with their labels"]),
        ("a.arff", "@relation x\n@attribute a numeric\n@data\nxx\n", None, ["a.arff", "line 4"]),
        ("a.parquet", "PAR1 nonsense", None, ["a.parquet", "cut off"]),
    ],
)
def test_what_is_wrong_is_said_in_a_line(write, name, content, target, words):
    with pytest.raises((StreamError, ValueError)) as caught:
        read_table(write(name, content), target)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_xml_that_names_other_labels(write):
    write("z.xml", XML.replace("l2", "l9"))
    with pytest.raises(StreamError, match=r"z\.xml names the label 'l9', which .*z\.arff has not"):
        read_table(write("z.arff", ARFF))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("d,a,y\n2024-01-01,1,p\n2024-01-02,2,q\n", "Column 'd' is left out: dates"),
        ("d,a,y\n" + MANY, "Column 'd' is left out: 1,000 distinct texts"),
        ("d,a,y\n,1,p\n,2,q\n", "Column 'd' is left out: it is empty"),
        ("d,a,y\n3,1,p\n4,2,\n5,3,q\n", "line 3: column 'y' has no value. Such rows, 1 of 3,"),
    ],
)
def test_what_is_left_out_is_told(write, content, words):
    table = read_table(write("a.csv", content), "y")
    assert any(words in note for note in table.notes)
    assert len(table.X) == len(table.y)


def test_bad_lines_are_left_out_if_asked(write):
    table = read_table(write("a.csv", "a,y\n1,p\n3,4,5\n2,q\n"), "y", on_error="skip")
    assert table.X["a"].tolist() == [1, 2]


def test_columns_of_a_machine_have_its_kinds(write):
    path = write("a.csv", "zip,n,y\n01,1,p\n02,x,q\n")
    assert read_table(path, "y", columns={"zip": "text"}).X["zip"].tolist() == ["01", "02"]
    with pytest.raises(StreamError, match="line 3, column 'n': 'x' is no number"):
        read_table(path, "y", columns={"n": "number"})
    with pytest.raises(ValueError, match="no column 'm' for features of the machine"):
        read_table(path, "y", columns={"m": "number"})


def test_a_model_file_is_no_data(tmp_path):
    X, y = load_iris(return_X_y=True)
    machine = widemargin.SparseKernelClassifier(max_basis=3, random_state=0).fit(X, y)
    widemargin.save(machine, tmp_path / "iris.model")
    with pytest.raises(StreamError, match="is a model file, and data are asked for"):
        read_table(tmp_path / "iris.model")


def test_pipelines_have_the_steps_that_rows_need(write):
    plain = "".join(f"{i % 5},{i % 3},{'pq'[i % 2]}\n" for i in range(40))
    machine = widemargin.SparseKernelClassifier()
    one_unit = read_table(write("a.csv", "a,b,y\n" + plain), "y")
    assert pipeline_for(one_unit.kinds, machine, one_unit.X) is machine
    far = "".join(f"{i % 5},{i % 3},{i % 3 * 1000},{'pq'[i % 2]}\n" for i in range(40))
    missing = read_table(write("b.csv", "a,b,c,y\n,1,2,p\n" + far), "y")
    steps = pipeline_for(missing.kinds, machine, missing.X)[0].transformers[0][1]
    assert [name for name, _ in steps.steps] == ["simpleimputer", "standardscaler"]
    linear = widemargin.StochasticLinearClassifier()
    steps = pipeline_for(one_unit.kinds, linear, one_unit.X)[0].transformers[0][1]
    assert [name for name, _ in steps.steps] == ["standardscaler"]


def test_streams_leave_arff_to_those_who_read_it_whole(write):
    with pytest.raises(ValueError, match="read_table"):
        widemargin.stream(write("x.arff", ARFF))


def test_svmlight_is_what_scikit_learn_writes(tmp_path):
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X, y, str(tmp_path / "iris"), zero_based=False)
    table = read_table(tmp_path / "iris")
    np.testing.assert_array_equal(table.X.toarray(), X)
    np.testing.assert_array_equal(table.y, y)

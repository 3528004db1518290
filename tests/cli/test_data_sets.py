"""Data sets by name: from a folder, the cache, and a fetcher that stands in for OpenML."""

import hashlib
import json
import os
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.utils import Bunch

from widemargin import datasets
from widemargin.datasets import fetching
from widemargin.datasets.sets import known_sets


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.delenv("WIDEMARGIN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "widemargin" / "datasets"


@pytest.fixture
def openml(monkeypatch):
    """Stand in for OpenML; return the list of what was asked of it."""
    asked = []

    def fetch(*, data_id, as_frame, parser, data_home):
        asked.append(data_id)
        X, y = load_iris(return_X_y=True)
        names = np.array(["setosa", "versicolor", "virginica"])
        return Bunch(data=pd.DataFrame(X), target=pd.Series(names[y], dtype="category"))

    monkeypatch.setattr(fetching, "fetch_openml", fetch)
    return asked


def test_a_download_is_kept(no_data, openml):
    first = datasets.load("iris.scale")
    again = datasets.load("iris.scale", dtype="float32")
    assert openml == [61]
    assert first.X_train.shape == (100, 4)
    assert first.X_train.min() == -1
    assert first.X_train.max() == 1
    assert first.target_names == ["setosa", "versicolor", "virginica"]
    assert "drawn" in first.split
    assert "CC BY" in first.licence
    assert "Fisher" in first.citation
    np.testing.assert_allclose(again.X_test, first.X_test, rtol=1e-6)
    assert again.X_test.dtype == np.float32
    np.testing.assert_array_equal(again.y_train, first.y_train)


def test_a_damaged_file_is_found_out(no_data, openml):
    datasets.load("iris.scale")
    (file,) = no_data.glob("multiclass/*_train.svm.bz2")
    (other,) = no_data.glob("multiclass/*_test.svm.bz2")
    file.write_bytes(other.read_bytes())
    with pytest.raises(datasets.StreamError, match="SHA-256"):
        datasets.load("iris.scale")


def test_another_set_under_the_number_is_refused(no_data, openml):
    with pytest.raises(ValueError, match=r"150 rows of 4 features, and wine\.scale has 178 of 13"):
        datasets.load("wine.scale")


def test_without_a_network_the_error_says_which_command(no_data, monkeypatch):
    def fetch(**_):
        raise URLError("no network")

    monkeypatch.setattr(fetching, "fetch_openml", fetch)
    with pytest.raises(OSError, match=r"widemargin datasets get letter\.scale"):
        datasets.load("letter.scale")
    with pytest.raises(OSError, match=r"widemargin datasets get letter\.scale"):
        datasets.load("letter.scale", download=False)
    with pytest.raises(OSError, match="no fetcher"):
        datasets.load("avila")
    with pytest.raises(ValueError, match="Is it vowel"):
        datasets.load("vowell")


def test_sets_of_a_folder(tmp_path, monkeypatch):
    folder = tmp_path / "multilabel"
    folder.mkdir()
    files = []
    for part, text in (("train", "0,2 1:1\n 3:2\n1 2:1\n"), ("test", "2 1:5\n")):
        (folder / f"own_{part}.svm").write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        files.append({"split": part, "file": f"own_{part}.svm", "sha256": digest})
    entry = {"name": "own", "features": 4, "labels": 3, "label_names": list("abc"), "files": files}
    (folder / "index.json").write_text(json.dumps({"datasets": [entry]}))
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    assert "own" in datasets.names()
    found = datasets.load("own")
    np.testing.assert_array_equal(found.y_train.toarray(), [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    assert found.X_test.shape == (1, 4)
    assert found.target_names == ["a", "b", "c"]


@pytest.mark.skipif("WIDEMARGIN_DATA" not in os.environ, reason="needs WIDEMARGIN_DATA")
@pytest.mark.parametrize("name", ["vowel", "emotions", "cal500"])
def test_published_sets_are_as_large_as_they_are_known_to_be(name):
    found, known = datasets.load(name), known_sets()[name]
    n_rows = found.X_train.shape[0] + found.X_test.shape[0]
    assert n_rows == known.train_rows + (known.test_rows or 0)
    assert found.X_train.shape[1] == known.features
    outputs = len(np.unique(found.y_train)) if known.kind == "classes" else found.y_train.shape[1]
    assert outputs == known.outputs

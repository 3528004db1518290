"""Model cards: metadata that YAML and the Hub can read, and sections that say what is so."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_multilabel_classification

import widemargin
from widemargin.datasets import pipeline_for
from widemargin.report import card

SECTIONS = ["Use", "How to load it", "Training data", "Metrics", "Limits", "Sizes"]


@pytest.fixture(scope="module")
def machine():
    X, y = load_iris(return_X_y=True)
    return widemargin.SparseKernelClassifier(5, random_state=0).fit(X[::2], y[::2])


def metadata(text):
    yaml = pytest.importorskip("yaml")
    front = re.match(r"---\n(.*?)\n---\n", text, flags=re.DOTALL)
    return yaml.safe_load(front[1])


def test_a_card_has_metadata_figures_and_all_sections(machine, tmp_path):
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "iris.widemargin"
    widemargin.save(machine, path)
    notes = {"data": "iris.csv", "n_rows": 75, "target": ["species"]}
    text = card(
        machine,
        X[1::2],
        y[1::2],
        name='Irises: "5" vectors',
        license="mit",
        file=path,
        data="test.csv",
        notes=notes,
    )
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == SECTIONS
    found = metadata(text)
    assert (found["license"], found["library_name"]) == ("mit", "widemargin")
    assert found["pipeline_tag"] == "tabular-classification"
    (index,) = found["model-index"]
    assert index["name"] == 'Irises: "5" vectors'
    (result,) = index["results"]
    assert result["dataset"] == {"type": "test-csv", "name": "test.csv"}
    accuracy = next(each["value"] for each in result["metrics"] if each["type"] == "accuracy")
    assert accuracy == pytest.approx(machine.score(X[1::2], y[1::2]))
    assert f"{path.stat().st_size:,} bytes" in text
    assert "`iris.csv`, 75 rows" in text
    assert str(tmp_path) not in text
    assert f"| accuracy | {accuracy:.4f} |" in text


def test_the_hub_takes_it(machine):
    hub = pytest.importorskip("huggingface_hub")
    X, y = load_iris(return_X_y=True)
    found = hub.ModelCard(card(machine, X, y, license="apache-2.0"))
    (first, *_) = found.data.eval_results
    assert first.metric_value == pytest.approx(machine.score(X, y))
    assert found.data.to_dict()["license"] == "apache-2.0"


def test_a_card_of_a_table_shows_its_columns(machine):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a|b": rng.choice(["x", "y"], 40).astype(object), "n": rng.random(40)})
    y = np.where(table["n"] > 0.5, "high", "low")
    small = widemargin.SparseKernelClassifier(5, random_state=0)
    model = pipeline_for({"a|b": "text", "n": "number"}, small).fit(table, y)
    text = card(model)
    assert "| `a\\|b` | text | 2 different ones |" in text
    assert "| `n` | number |  |" in text
    assert "`high`, `low`" in text
    assert "counts as none of the known ones" in text
    assert "model-index" not in metadata(text)
    assert "has not been measured" in text


def test_a_card_of_label_sets():
    X, Y = make_multilabel_classification(60, 4, n_classes=3, random_state=0)
    machine = widemargin.LinearMultiLabelClassifier(C=0.01).fit(X, Y)
    text = card(machine, X, Y, notes={"label_names": ["red", "green", "blue"]})
    assert "which of 3 labels a row has: `red`, `green`, `blue`" in text
    names = {each["name"] for each in metadata(text)["model-index"][0]["results"][0]["metrics"]}
    assert names == {"labels right", "accuracy", "micro F1", "macro F1"}


def test_what_no_card_can_be_made_of_is_refused(machine):
    X, _ = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="both X and y"):
        card(machine, X)
    with pytest.raises(ValueError, match="name of the Hub"):
        card(machine, license="MIT license")
    with pytest.raises(Exception, match="not fitted"):
        card(widemargin.SparseKernelClassifier())

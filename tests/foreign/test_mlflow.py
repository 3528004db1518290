"""MLflow: autologging sees what the user fits and nothing inside it; models come back."""

import os

import numpy as np
import pytest
from conftest import overlapping_classes
from contract import targets, unfitted
from numpy.testing import assert_array_equal
from sklearn import model_selection
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from widemargin import LearnedBasis, SparseKernelClassifier, SparseKernelClassifierCV, compress
from widemargin._registry import ESTIMATORS
from widemargin.model_files import trusted_types

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # before it is imported
mlflow = pytest.importorskip("mlflow")
pytest.importorskip("mlflow.sklearn")

X, Y = overlapping_classes(60, 3)
LEARNED = SparseKernelClassifier(4, basis=LearnedBasis(max_iter=3), random_state=0)
SEARCHING = SparseKernelClassifierCV(cv=2, max_basis=[4], Cs=[1.0], widths=[1.0], random_state=0)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Let MLflow keep all it logs in a folder of the tests."""
    folder = tmp_path_factory.mktemp("mlflow")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'runs.db'}")
    mlflow.create_experiment("tests", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("tests")
    yield
    mlflow.set_tracking_uri(before)


@pytest.fixture
def new_runs(store):
    """Log every fit of scikit-learn's estimators; the function says how many runs came of it."""
    before = len(mlflow.search_runs())
    # Models and data sets take MLflow seconds to write, and change nothing about what is seen.
    mlflow.sklearn.autolog(log_models=False, log_datasets=False, silent=True)
    yield lambda: len(mlflow.search_runs()) - before
    mlflow.sklearn.autolog(disable=True)


def test_a_fit_by_the_user_makes_a_run(new_runs):
    KMeans(2, n_init=1).fit(X)
    assert new_runs() == 1


@pytest.mark.parametrize("machine", [LEARNED, SEARCHING], ids=["learned", "searching"])
def test_a_fit_within_a_fit_makes_no_run(machine, store, request):
    expected = clone(machine).fit(X, Y).decision_function(X)
    new_runs = request.getfixturevalue("new_runs")
    assert_array_equal(clone(machine).fit(X, Y).decision_function(X), expected)
    assert new_runs() == 0


def test_compression_makes_no_run(store, request):
    full = SVC(C=10).fit(X, Y)
    new_runs = request.getfixturevalue("new_runs")
    compress(full, 4, X, Y, random_state=0, verbose=False)
    assert new_runs() == 0


def test_a_pipeline_makes_one_run_with_the_parameters_of_the_machine(new_runs):
    machine = make_pipeline(StandardScaler(), clone(LEARNED)).fit(X, Y)
    assert new_runs() == 1
    logged = mlflow.last_active_run().data
    assert logged.params["sparsekernelclassifier__basis"] == "LearnedBasis(max_iter=3)"
    assert logged.params["sparsekernelclassifier__basis__max_iter"] == "3"
    assert logged.metrics["training_accuracy_score"] == pytest.approx(machine.score(X, Y))


def test_logging_that_is_off_stays_off(new_runs):
    # MLflow switches it off for all of cross-validation; a fit inside must not switch it on.
    model_selection.cross_val_score(make_pipeline(StandardScaler(), clone(LEARNED)), X, Y, cv=2)
    assert new_runs() == 0


def logged(machine):
    """Log a machine as docs/model_files.md says, and load it."""
    with mlflow.start_run():
        info = mlflow.sklearn.log_model(
            machine,
            name="machine",
            skops_trusted_types=trusted_types(),
            pip_requirements=[],  # else MLflow takes half a minute to find them out
        )
    return info.model_uri


@pytest.mark.parametrize("name", ESTIMATORS)
def test_logged_models_come_back(name, store):
    quick = {"cv": 2, "max_basis": [4], "Cs": [1.0], "widths": [1.0]} if name.endswith("CV") else {}
    make = unfitted(name, **quick)
    machine = clone(make).fit(X, targets(name, Y, np.arange(3)))
    address = logged(machine)
    loaded = mlflow.sklearn.load_model(address)
    assert type(loaded) is type(machine)
    assert_array_equal(loaded.decision_function(X), machine.decision_function(X))
    assert_array_equal(mlflow.pyfunc.load_model(address).predict(X), machine.predict(X))


def test_a_logged_pipeline_comes_back(store):
    machine = make_pipeline(StandardScaler(), clone(LEARNED)).fit(X, Y)
    loaded = mlflow.sklearn.load_model(logged(machine))
    assert_array_equal(loaded.decision_function(X), machine.decision_function(X))

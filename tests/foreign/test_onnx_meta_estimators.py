"""Machines inside scikit-learn's meta-estimators, through skl2onnx: ONNX answers as Python does."""

import numpy as np
import pytest
import sklearn
from conftest import overlapping_classes
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

import widemargin.export  # noqa: F401  # registers the estimators
from widemargin import (
    KernelClassifier,
    KernelMIRA,
    KernelPerceptron,
    LearnedBasis,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
)

pytestmark = [pytest.mark.combinations, pytest.mark.thorough]

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

MACHINES = {
    "hinge": SparseKernelClassifier(4, random_state=0),
    "logistic": SparseKernelClassifier(4, loss="logistic", random_state=0),
    "per_class": SparseKernelClassifier(3, basis="per_class", loss="logistic", random_state=0),
    "learned": SparseKernelClassifier(3, basis=LearnedBasis(max_iter=3), random_state=0),
    "learned_logistic": SparseKernelClassifier(
        3, basis=LearnedBasis(max_iter=3), loss="logistic", random_state=0
    ),
    "kernel": KernelClassifier(),
    "perceptron": KernelPerceptron(random_state=0),
    "mira": KernelMIRA(random_state=0),
    "cv": SparseKernelClassifierCV(
        max_basis=[3], Cs=[1.0], widths=[1.0], basis="shared", cv=2, random_state=0
    ),
}
LOGISTIC = ("logistic", "per_class", "learned_logistic")


def scaled(machine):
    return make_pipeline(StandardScaler(), machine)


def searched(machine):
    return GridSearchCV(machine, {"random_state": [0]}, cv=2)


def calibrated(machine, **parameters):
    return CalibratedClassifierCV(machine, cv=2, **parameters)


def vote(machine, **parameters):
    others = [("b", LogisticRegression(C=0.01)), ("c", LogisticRegression())]
    return VotingClassifier([("a", machine), *others], flatten_transform=False, **parameters)


def stack(machine, final=None, **parameters):
    members = [("a", machine), ("b", clone(machine))]
    return StackingClassifier(members, final or LogisticRegression(), cv=2, **parameters)


# What converts and is right. Names that end in "proba" need machines with probabilities.
WRAPPERS = {
    "calibrated": calibrated,
    "calibrated_once": lambda machine: calibrated(machine, ensemble=False),
    "calibrated_pipeline": lambda machine: calibrated(scaled(machine)),
    "calibrated_search": lambda machine: calibrated(searched(machine)),
    "calibrated_search_of_pipeline": lambda machine: calibrated(
        GridSearchCV(scaled(machine), {"standardscaler__with_std": [True]}, cv=2)
    ),
    "pipeline_of_calibrated": lambda machine: scaled(calibrated(machine)),
    "search_of_calibrated": lambda machine: GridSearchCV(
        calibrated(machine), {"ensemble": [False]}, cv=2
    ),
    "one_vs_rest": OneVsRestClassifier,
    "one_vs_rest_pipeline": lambda machine: OneVsRestClassifier(scaled(machine)),
    "one_vs_rest_calibrated": lambda machine: OneVsRestClassifier(calibrated(machine)),
    "vote": vote,
    "vote_pipeline": lambda machine: vote(scaled(machine)),
    "vote_search": lambda machine: vote(searched(machine)),
    "vote_calibrated": lambda machine: vote(calibrated(machine)),
    "vote_soft_proba": lambda machine: vote(machine, voting="soft"),
    "stack": stack,
    "stack_proba": lambda machine: stack(machine, stack_method="predict_proba"),
    "stack_scores": lambda machine: stack(machine, stack_method="decision_function"),
    "stack_labels": lambda machine: stack(machine, stack_method="predict"),
    "stack_passthrough": lambda machine: stack(machine, passthrough=True),
    "stack_pipelines": lambda machine: stack(scaled(scaled(machine)), scaled(clone(machine))),
    "stack_final": lambda machine: stack(LogisticRegression(), machine),
    "calibrated_stack": lambda machine: calibrated(stack(machine, clone(machine))),
    "bagging_proba": lambda machine: BaggingClassifier(machine, 2, random_state=0),
    "bagging_of_features_proba": lambda machine: BaggingClassifier(
        machine, 2, max_features=0.6, random_state=0
    ),
    "bagging_pipelines_proba": lambda machine: BaggingClassifier(
        scaled(machine), 2, random_state=0
    ),
    "calibrated_bagging": lambda machine: calibrated(BaggingClassifier(machine, 2, random_state=0)),
    "boosting": lambda machine: AdaBoostClassifier(machine, n_estimators=2, random_state=0),
    "search": searched,
    "pipeline_of_search": lambda machine: scaled(searched(machine)),
}
ESSENTIAL = ("calibrated", "one_vs_rest", "vote", "stack", "stack_scores", "bagging_proba")


def data(n_classes, labels="integers", dtype=np.float32):
    X, y = overlapping_classes(60, n_classes)
    y = np.array(["low", "middle", "high"])[y] if labels == "strings" else 3 * y + 4
    return X.astype(dtype), y


def run(proto, X):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def converted(model, X, **options):
    proto = skl2onnx.to_onnx(model, X[:1], options={id(model): {"zipmap": False}}, **options)
    return run(proto, X)


def is_clear(model, X, tolerance=1e-5):
    """Return for which rows the best two classes do not tie."""
    for method in ("predict_proba", "decision_function"):
        if hasattr(model, method):
            scores = getattr(model, method)(X)
            scores = np.c_[-scores, scores] if scores.ndim == 1 else scores
            best = np.sort(scores, axis=1)
            return best[:, -1] - best[:, -2] > tolerance
    return np.ones(len(X), dtype=bool)  # votes: none is near another


def assert_same(model, X, tolerance=2e-6, **options):
    outputs = converted(model, X, **options)
    clear = is_clear(model, X)
    assert clear.mean() > 0.8
    assert outputs["label"].shape == (len(X),)
    np.testing.assert_array_equal(outputs["label"][clear], model.predict(X)[clear])
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(outputs["probabilities"], probabilities, atol=tolerance)
    return outputs


def has_no_probabilities(wrapper, machine):
    return wrapper.endswith("proba") and machine not in LOGISTIC


@pytest.mark.parametrize(("n_classes", "labels"), [(2, "integers"), (3, "strings")])
@pytest.mark.parametrize("machine", ["hinge", "logistic"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_meta_estimator(wrapper, machine, n_classes, labels):
    if has_no_probabilities(wrapper, machine):
        pytest.skip("scikit-learn or skl2onnx needs probabilities here")
    X, y = data(n_classes, labels)
    assert_same(WRAPPERS[wrapper](clone(MACHINES[machine])).fit(X, y), X)


@pytest.mark.combinations(pairs=False)
@pytest.mark.parametrize(("n_classes", "labels"), [(2, "strings"), (3, "integers")])
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("wrapper", ESSENTIAL)
def test_every_machine(wrapper, machine, n_classes, labels):
    if has_no_probabilities(wrapper, machine):
        pytest.skip("scikit-learn or skl2onnx needs probabilities here")
    X, y = data(n_classes, labels)
    assert_same(WRAPPERS[wrapper](clone(MACHINES[machine])).fit(X, y), X)


@pytest.mark.parametrize("opset", range(17, skl2onnx.__max_supported_opset__ + 1))
@pytest.mark.parametrize("wrapper", ["calibrated", "one_vs_rest", "stack_scores"])
def test_opsets(wrapper, opset):
    X, y = data(2)
    assert_same(WRAPPERS[wrapper](clone(MACHINES["logistic"])).fit(X, y), X, target_opset=opset)


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize("machine", ["hinge", "logistic"])
@pytest.mark.parametrize("wrapper", [*ESSENTIAL, "calibrated_pipeline", "one_vs_rest_pipeline"])
def test_types_of_input(wrapper, machine, dtype):
    if has_no_probabilities(wrapper, machine):
        pytest.skip("scikit-learn or skl2onnx needs probabilities here")
    if wrapper.startswith("stack") and dtype == np.int64:
        pytest.skip("skl2onnx casts scores to the type of the input: no runtime loads the file")
    X, y = data(2)
    X = np.round(5 * X).astype(dtype) if dtype == np.int64 else X.astype(dtype)
    model = WRAPPERS[wrapper](clone(MACHINES[machine])).fit(X, y)
    assert_same(model, X, 1e-12 if dtype == np.float64 else 2e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("machine", ["hinge", "logistic"])
def test_one_against_one(machine, n_classes):
    # Labels have a column more than scikit-learn's, whatever is wrapped.
    X, y = data(n_classes)
    y = (y - 4) // 3
    for inner in (MACHINES[machine], scaled(MACHINES[machine])):
        model = OneVsOneClassifier(clone(inner)).fit(X, y)
        np.testing.assert_array_equal(converted(model, X)["label"].ravel(), model.predict(X))


@pytest.mark.parametrize("machine", ["hinge", "logistic"])
def test_one_against_rest_of_many_labels(machine):
    X, y = data(3)
    Y = np.c_[y == 4, y != 10].astype(int)
    model = OneVsRestClassifier(clone(MACHINES[machine])).fit(X, Y)
    np.testing.assert_array_equal(converted(model, X)["label"], model.predict(X))


@pytest.mark.parametrize("labels", ["integers", "strings"])
def test_several_outputs(labels):
    X, y = data(3, labels)
    model = MultiOutputClassifier(clone(MACHINES["logistic"])).fit(X, np.c_[y, y[::-1]])
    outputs = converted(model, X)
    np.testing.assert_array_equal(outputs["label"], model.predict(X))
    for got, expected in zip(outputs["probabilities"], model.predict_proba(X), strict=True):
        np.testing.assert_allclose(got, expected, atol=2e-6)


def test_several_outputs_of_scores():
    X, y = data(2)
    model = MultiOutputClassifier(clone(MACHINES["hinge"])).fit(X, np.c_[y, y[::-1]])
    outputs = converted(model, X)
    np.testing.assert_array_equal(outputs["label"], model.predict(X))
    for scores, machine in zip(outputs["probabilities"], model.estimators_, strict=True):
        np.testing.assert_allclose(scores, machine.decision_function(X), atol=1e-5)


# --- What skl2onnx converts wrongly, whatever is inside: a machine refuses. ---


def dropped(machine):
    machine = vote(machine, weights=np.array([5.0, 1.0, 1.0, 4.0]))
    return machine.set_params(estimators=[("z", "drop"), *machine.estimators])


def mixed_stack(machine):
    members = [("a", machine), ("b", LogisticRegression())]
    return StackingClassifier(members, RandomForestClassifier(3, random_state=0), cv=2)


WRONG = {
    "isotonic": (lambda machine: calibrated(machine, method="isotonic"), "hinge", "interpolates"),
    "isotonic_in_vote": (
        lambda machine: vote(calibrated(machine, method="isotonic"), voting="soft"),
        "hinge",
        "interpolates",
    ),
    "one_vs_one": (OneVsOneClassifier, "hinge", "numbers of the classes"),
    "bagging": (lambda machine: BaggingClassifier(machine, 2), "hinge", "wrong axis"),
    "threshold": (
        lambda machine: TunedThresholdClassifierCV(machine, cv=2, scoring="recall", thresholds=3),
        "logistic",
        "leaves out the threshold",
    ),
    "dropped": (dropped, "hinge", "mixes up the weights"),
    "stack": (mixed_stack, "hinge", "other columns of LogisticRegression"),
}


@pytest.mark.parametrize("wrapper", WRONG)
def test_refuses_what_would_be_wrong(wrapper):
    make, machine, message = WRONG[wrapper]
    X, y = data(2)
    model = make(clone(MACHINES[machine])).fit(X, np.where(y == 4, -1, 1))
    with pytest.raises(ValueError, match=message):
        converted(model, X)


@pytest.mark.parametrize("wrapper", WRONG)
def test_skl2onnx_is_still_wrong(wrapper):
    # Where this fails, skl2onnx has been mended, and the machine need not refuse any more.
    X, y = data(2)
    others = {
        "bagging": LinearSVC(),
        "stack": LinearSVC(),
        "dropped": RandomForestClassifier(3, random_state=0),
    }
    model = WRONG[wrapper][0](others.get(wrapper, LogisticRegression()))
    model.fit(X, np.where(y == 4, -1, 1))
    try:
        converted(model, X)
    except ValueError as error:
        pytest.skip(f"this version of skl2onnx does not convert it at all: {str(error)[:80]}")
    with pytest.raises(AssertionError):
        assert_same(model, X)


def test_refuses_labels_that_do_not_pass():
    X, y = data(2)
    with pytest.raises(ValueError, match="up to 16777216 only"):
        converted(vote(MACHINES["hinge"]).fit(X, y + 2**24), X)
    # The oldest versions refuse these labels in words of their own.
    with pytest.raises(ValueError, match=r"up to 2147483647 only|out of range"):
        converted(calibrated(MACHINES["hinge"]).fit(X, y + 2**31), X)
    assert_same(calibrated(MACHINES["hinge"]).fit(X, y + 2**24), X)


def test_refuses_scores_of_many_labels():
    X, y = data(3)
    model = OneVsRestClassifier(clone(MACHINES["hinge"])).fit(X, np.c_[y == 4, y == 7].astype(int))
    with pytest.raises(ValueError, match="without raw_scores"):
        skl2onnx.to_onnx(model, X[:1], options={id(model): {"zipmap": False, "raw_scores": True}})


def test_refuses_one_machine_for_two_wrappers():
    X, y = data(3)
    y = (y - 4) // 3
    machine = clone(MACHINES["logistic"]).fit(X, y)
    inner = calibrated(machine).fit(X, y)
    inner.calibrated_classifiers_[0].estimator = machine
    model = StackingClassifier([("a", machine), ("b", inner)], cv="prefit").fit(X, y)
    with pytest.raises(ValueError, match="Give each a copy"):
        converted(model, X)


# What skl2onnx does not convert, for LogisticRegression neither.
MISSING = {
    "output_code": OutputCodeClassifier,
    "chain": ClassifierChain,
    "randomized_search": lambda machine: RandomizedSearchCV(machine, {"C": [1.0]}, n_iter=1, cv=2),
    "frozen": FrozenEstimator,
    "self_training": SelfTrainingClassifier,
    "fixed_threshold": lambda machine: FixedThresholdClassifier(machine, threshold=0.3),
    "several_outputs_of_pipelines": lambda machine: MultiOutputClassifier(scaled(machine)),
}
if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):
    MISSING["temperature"] = lambda machine: calibrated(machine, method="temperature")


@pytest.mark.parametrize("wrapper", MISSING)
def test_not_converted_at_all(wrapper):
    X, y = data(2)
    for inner in (LogisticRegression(), clone(MACHINES["logistic"])):
        inner = inner.fit(X, y) if wrapper == "frozen" else inner
        targets = np.c_[y, y[::-1]] if wrapper in ("chain", "several_outputs_of_pipelines") else y
        model = MISSING[wrapper](inner).fit(X, targets)
        with pytest.raises(Exception, match=r"Unable to find|Empty inputs|_Temperature"):
            converted(model, X)


# --- Options ---


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("machine", ["hinge", "logistic"])
@pytest.mark.parametrize("around", [lambda machine: machine, scaled, searched])
def test_raw_scores(around, machine, n_classes):
    X, y = data(n_classes)
    model = around(clone(MACHINES[machine])).fit(X, y)
    proto = skl2onnx.to_onnx(model, X[:1], options={id(model): {"raw_scores": True}})
    outputs = run(proto, X)
    assert list(outputs) == ["label", "scores"]
    scores = model.decision_function(X)
    expected = np.c_[-scores, scores] if n_classes == 2 else scores
    np.testing.assert_allclose(outputs["scores"], expected, atol=1e-5)
    np.testing.assert_array_equal(outputs["label"], model.predict(X))


@pytest.mark.parametrize("labels", ["integers", "strings"])
@pytest.mark.parametrize("around", [lambda machine: machine, scaled, searched])
def test_numbers_instead_of_labels(around, labels):
    X, y = data(3, labels)
    model = around(clone(MACHINES["logistic"])).fit(X, y)
    outputs = run(skl2onnx.to_onnx(model, X[:1], options={id(model): {"nocl": True}}), X)
    np.testing.assert_array_equal(model.classes_[outputs["label"]], model.predict(X))


@pytest.mark.parametrize("labels", ["integers", "strings"])
@pytest.mark.parametrize("around", [lambda machine: machine, scaled, searched])
def test_labels_as_an_output(around, labels):
    X, y = data(3, labels)
    model = around(clone(MACHINES["logistic"])).fit(X, y)
    options = {id(model): {"output_class_labels": True}}
    outputs = run(skl2onnx.to_onnx(model, X[:1], options=options), X)
    assert list(outputs) == ["label", "scores", "probabilities", "class_labels"]
    np.testing.assert_array_equal(outputs["class_labels"], model.classes_)


def test_labels_as_an_output_are_no_fractions():
    X, y = data(2)
    model = clone(MACHINES["hinge"]).fit(X, y.astype(float))
    with pytest.raises(ValueError, match="output_class_labels needs"):
        skl2onnx.to_onnx(model, X[:1], options={id(model): {"output_class_labels": True}})

"""Optuna: a study chooses parameters, and stops trials that a stream shows to be hopeless."""

import pytest
from conftest import overlapping_classes
from sklearn.model_selection import cross_val_score

from widemargin import KernelPerceptron, SparseKernelClassifier

optuna = pytest.importorskip("optuna")

X, Y = overlapping_classes(120, 3)


@pytest.fixture(autouse=True)
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


def test_a_study_over_all_kinds_of_parameters_repeats():
    def value(trial):
        machine = SparseKernelClassifier(
            trial.suggest_int("max_basis", 2, 8),
            C=trial.suggest_float("C", 1e-2, 1e2, log=True),
            gamma=trial.suggest_float("gamma", 1e-2, 1e1, log=True),
            loss=trial.suggest_categorical("loss", ["weston_watkins", "logistic"]),
            fit_intercept=trial.suggest_categorical("fit_intercept", [True, False]),
            random_state=0,
        )
        return cross_val_score(machine, X, Y, cv=2, error_score="raise").mean()

    def study():
        found = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0)
        )
        found.optimize(value, n_trials=4)
        return [trial.value for trial in found.trials]

    values = study()
    assert len(set(values)) > 1
    assert values == study()


def test_a_stream_is_pruned():
    def value(trial):
        machine = KernelPerceptron(gamma=trial.suggest_categorical("gamma", [0.3, 1e-9]))
        for step in range(3):
            rows = slice(40 * step, 40 * step + 40)
            machine.partial_fit(X[rows], Y[rows], classes=[0, 1, 2])
            trial.report(machine.score(X, Y), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return machine.score(X, Y)

    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.GridSampler({"gamma": [0.3, 1e-9]}, seed=0),
        pruner=optuna.pruners.ThresholdPruner(lower=0.5),
    )
    study.optimize(value, n_trials=2)
    states = {trial.params["gamma"]: trial.state for trial in study.trials}
    assert states[0.3] == optuna.trial.TrialState.COMPLETE
    assert states[1e-9] == optuna.trial.TrialState.PRUNED

"""Progress that is printed: one line a round, few of them a second, and nothing without verbose."""

import re

import numpy as np
import pytest
from conftest import overlapping_classes
from sklearn.base import clone

from widemargin import (
    KernelClassifier,
    KernelMIRA,
    KernelPerceptron,
    LearnedBasis,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
)
from widemargin.estimation import fitting as _fitting

X, y = overlapping_classes(60, 3)
SEARCH = SparseKernelClassifierCV([2, 4], Cs=[1.0, 10.0], widths=[1.0], basis="shared", cv=2)
MACHINES = [
    (SparseKernelClassifier(6, tol=0), "vectors, objective "),
    (SparseKernelClassifier(3, tol=0, basis="per_class"), "machine 3, 3 vectors, objective "),
    (SparseKernelClassifier(3, basis=LearnedBasis(max_iter=4)), "3 vectors, objective "),
    (
        SparseKernelClassifier(3, basis=LearnedBasis(max_iter=4, early_stopping=True)),
        r"objective \S+, validation score ",
    ),
    (KernelClassifier(), "support patterns, dual .*, gap "),
    (KernelClassifier(solver="full_gradient"), "support patterns, dual "),
    (KernelClassifier(solver="cutting_plane"), "support patterns, dual "),
    (KernelMIRA(epochs=3), "180 rows seen, .* mistakes, .* support patterns"),
    (KernelPerceptron(epochs=3), "180 rows seen, .* mistakes, .* support patterns"),
    (SEARCH, "candidates judged, best of stage 'size' .* with C="),
]
every_machine = pytest.mark.parametrize(("machine", "words"), MACHINES)


@pytest.fixture
def without_pause(monkeypatch):
    monkeypatch.setattr(_fitting, "_LEAST_PAUSE", 0.0)


@pytest.mark.combinations
@every_machine
@pytest.mark.parametrize("level", [0, False])
def test_silence_is_the_default(machine, words, level, capsys):
    clone(machine).fit(X, y)
    clone(machine).set_params(verbose=level).fit(X, y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.combinations
@every_machine
@pytest.mark.parametrize("level", [1, True])
def test_rounds_are_printed(machine, words, level, capsys, without_pause):
    fitted = clone(machine).set_params(verbose=level, random_state=0).fit(X, y)
    out, err = capsys.readouterr()
    assert err == ""
    name = type(machine).__name__
    *rounds, last = out.splitlines()
    assert re.fullmatch(rf"\[{name}\] fitted in \d+\.\d\d s", last)
    for number, line in enumerate(rounds, start=1):
        assert re.match(rf"\[{name}\] round {number}, \d+\.\d\d s: ", line)
    assert any(re.search(words, line) for line in rounds)
    silent = clone(machine).set_params(random_state=0).fit(X, y)
    assert np.array_equal(silent.decision_function(X), fitted.decision_function(X))


def test_few_lines_a_second_and_the_last_in_any_case(capsys, monkeypatch):
    monkeypatch.setattr(_fitting, "_LEAST_PAUSE", 3600.0)
    SparseKernelClassifier(6, tol=0, verbose=1, random_state=0).fit(X, y)
    first, last_round, _ = capsys.readouterr().out.splitlines()
    assert "round 1, " in first
    assert "round 6, " in last_round
    assert "6 vectors" in last_round


def test_the_last_fit_of_a_search_speaks_at_level_two(capsys, without_pause):
    clone(SEARCH).set_params(verbose=1).fit(X, y)
    assert "[SparseKernelClassifier]" not in capsys.readouterr().out
    clone(SEARCH).set_params(verbose=2).fit(X, y)
    assert "[SparseKernelClassifier] round 1" in capsys.readouterr().out


@pytest.mark.parametrize("machine", [machine for machine, _ in MACHINES[4:5] + MACHINES[7:9]])
def test_a_stream_is_silent_and_goes_on_when_it_changes(machine, capsys):
    stream = clone(machine).set_params(random_state=0).partial_fit(X[:30], y[:30])
    alive = stream._stream
    stream.set_params(verbose=1).partial_fit(X[30:], y[30:])
    assert stream._stream is alive
    assert capsys.readouterr().out == ""

"""Random problems over every estimator and option hold what is always true.

``pytest tests/hostile`` asks a few that are always the same. ``--hostile N`` asks N that are new,
``--hostile-seed S`` one again, with every invariant that means something for it.
"""

import os
import random
import secrets
import sys
import threading

import numpy as np
import pytest

import hostile.exports
import hostile.interruptions
import hostile.invariants
import hostile.refits
import hostile.streams  # noqa: F401  # they put their invariants on the list
from hostile.checks import INVARIANTS, failures_of
from hostile.data import generator
from hostile.known import KNOWN
from hostile.problems import LEFT, OPTIONS, draw_problem, used_names
from hostile.shrinking import shrink
from widemargin import KernelMIRA
from widemargin.solvers.duals import expansion as dual

FIXED, ALWAYS = 40, 20  # problems that are the same in every run, and those of "make test"
LONGEST = 300.0  # seconds for one problem, after which it is said to hang


def pytest_generate_tests(metafunc):
    if "seed" not in metafunc.fixturenames:
        return
    count, seed = (metafunc.config.getoption(name) for name in ("--hostile", "--hostile-seed"))
    if seed is not None:
        seeds = [seed]
    elif count is not None:
        # Processes of one run agree on the problems.
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or secrets.token_hex()
        draw = random.Random(run)
        seeds = [draw.randrange(1 << 32) for _ in range(count)]
    else:
        thorough = (pytest.param(s, marks=pytest.mark.thorough) for s in range(ALWAYS, FIXED))
        seeds = [*range(ALWAYS), *thorough]
    metafunc.parametrize("seed", seeds)


@pytest.fixture
def watched(seed):
    """End the process where a problem hangs, and say which one it was."""

    def give_up():
        message = f"\ntests/hostile: the problem of --hostile-seed {seed} hangs\n"
        os.write(sys.__stderr__.fileno(), message.encode())
        os._exit(70)

    timer = threading.Timer(LONGEST, give_up)
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()


@pytest.mark.usefixtures("watched", "two_blas_threads")
def test_a_random_problem(seed, request):
    again = request.config.getoption("--hostile-seed") is not None
    found = failures_of(draw_problem(seed), INVARIANTS.values() if again else None)
    known = [each for failure in found for each in KNOWN if each.explains(failure)]
    unknown = [failure for failure in found if not any(k.explains(failure) for k in KNOWN)]
    if unknown:
        told = "\n\n".join(str(failure) for failure in unknown)
        smaller = shrink(unknown[0])
        pytest.fail(
            f"Repeat it by --hostile-seed {seed}.\n{told}\n\nThe smallest found:\n{smaller}",
            pytrace=False,
        )
    if known:
        pytest.xfail("; ".join(sorted({each.name for each in known})))


@pytest.mark.parametrize(
    "known", [each for each in KNOWN if each.problem is not None], ids=lambda known: known.name
)
def test_a_known_defect_is_still_there(known):
    invariants = [INVARIANTS[name] for name in known.invariants[:1] if name != "fit"]
    found = failures_of(known.problem, invariants)
    assert any(known.explains(failure) for failure in found), (
        f"{known.name}: take it off the list KNOWN, it has been mended. Found: {found}"
    )


def test_an_interrupt_while_rows_are_kept(monkeypatch, three_classes):
    X, y = three_classes
    machine = KernelMIRA(gamma=0.4).partial_fit(X[:2], y[:2], classes=[0, 1, 2])

    def interrupted(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(dual.DualExpansion, "let_go_of_batch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            machine.partial_fit(X[2:30], y[2:30])
    assert np.isfinite(machine.decision_function(X)).all()
    assert np.isfinite(machine.partial_fit(X, y).decision_function(X)).all()


def test_every_option_is_drawn_or_left_for_a_reason():
    assert used_names() <= OPTIONS.keys() | LEFT.keys()


def test_the_text_of_a_problem_makes_it_again():
    names = vars(__import__("hostile.problems", fromlist=["*"]))
    for seed in range(200):
        problem = draw_problem(seed)
        assert eval(repr(problem), dict(names)) == problem


def test_a_further_option_leaves_the_others_as_they_are():
    first, second = (generator(3, name).random() for name in ("option C", "option gamma"))
    assert first != second
    assert draw_problem(5) == draw_problem(5)

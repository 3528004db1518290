"""The exact machine beside kernlab's spoc-svc, the other program for this problem (in R)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.parts.kernel.targets import KERNEL_PARAMETERS, PAPER_MACHINE
from benchmarks.settings import Settings
from benchmarks.timing import fit_seconds
from benchmarks.trials import say
from widemargin import KernelClassifier

NAME = "letter.raw"
SOLVERS = ("larank", "full_gradient")  # the first is held against the target
GAP = 1e-3  # of the objective
_MEGABYTES = 200  # of kernel values, for both
_SCRIPT = Path(__file__).with_name("kernlab.R")
_DEFAULT_TOL = 1e-3
_SHRINK = 0.25  # of kernlab's tolerance, until the gap is small enough
_LEAST_TOL = 1e-7


@dataclass(frozen=True)
class Solved:
    """One program with one tolerance: what it took, run by run, and what it reached."""

    title: str
    seconds: list[float]
    dual: float
    primal: float
    patterns: int

    @property
    def gap(self) -> float:
        """Relative to the objective."""
        return (self.primal - self.dual) / self.primal

    @property
    def median(self) -> float:
        return median(self.seconds)


@dataclass(frozen=True)
class BesideKernlab:
    n_rows: int
    ours: dict[str, Solved]  # by solver
    version: str | None = None  # of kernlab
    same_gap: Solved | None = None  # with the tolerance that gives a gap like ours
    default: Solved | None = None  # with its own default, which leaves a larger gap
    absent: str = ""  # why there is no kernlab


def measure(settings: Settings) -> BesideKernlab:
    dataset = settings.load_whole(NAME)
    n_rows = settings.amount(3_000, quick=300)
    X, y = dataset.X[:n_rows], dataset.y[:n_rows]
    version, absent = _version()
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.csv"
        # As many digits as give the same doubles back.
        np.savetxt(rows, np.column_stack([y, X]), delimiter=",", fmt="%.17g")
        tol = _tolerance(rows) if version else None
        ours: dict[str, list[tuple[float, KernelClassifier]]] = {each: [] for each in SOLVERS}
        theirs: dict[float, list[_Fit]] = {_DEFAULT_TOL: []} | ({tol: []} if tol else {})
        for repeat in range(settings.repeats):
            say(f"Exact machines beside kernlab, run {repeat + 1} of {settings.repeats}")
            for solver, fits in ours.items():
                machine = KernelClassifier(
                    **KERNEL_PARAMETERS[NAME],
                    **PAPER_MACHINE,
                    solver=solver,
                    tol=GAP,
                    cache_size=_MEGABYTES,
                    random_state=repeat,
                    n_jobs=1,
                )
                with threadpool_limits(1):
                    fits.append((fit_seconds(machine, X, y), machine))
            if version:
                for each, fitted in theirs.items():
                    fitted.append(_fit(rows, each))
    return BesideKernlab(
        len(y),
        {solver: _ours(solver, fits) for solver, fits in ours.items()},
        version,
        _theirs(tol, theirs[tol]) if tol else None,
        _theirs(_DEFAULT_TOL, theirs[_DEFAULT_TOL]) if version else None,
        absent,
    )


def _ours(solver: str, fits: list[tuple[float, KernelClassifier]]) -> Solved:
    seconds, (_, machine) = [each for each, _ in fits], fits[0]
    return Solved(
        f'KernelClassifier(solver="{solver}", tol={GAP:g})',
        seconds,
        machine.dual_objective_,
        machine.objective_,
        machine.n_basis_,
    )


@dataclass(frozen=True)
class _Fit:
    seconds: float
    dual: float
    primal: float
    patterns: int


def _theirs(tol: float, fits: list[_Fit]) -> Solved:
    seconds, first = [each.seconds for each in fits], fits[0]
    title = f"ksvm(type='spoc-svc', tol={tol:g})"
    return Solved(title, seconds, first.dual, first.primal, first.patterns)


def _version() -> tuple[str | None, str]:
    """Return the version of kernlab; or None, and what is missing."""
    program = shutil.which("Rscript")
    if program is None:
        return None, "there is no Rscript here"
    found = subprocess.run(
        [program, "-e", 'cat(as.character(packageVersion("kernlab")))'],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode != 0:
        return None, "R has no package kernlab here"
    return found.stdout.strip(), ""


def _tolerance(rows: Path) -> float:
    """Return the first tolerance, from kernlab's default down, that gives a gap like ours."""
    say("kernlab: the tolerance that gives the gap")
    tol = _DEFAULT_TOL
    while tol > _LEAST_TOL:
        fit = _fit(rows, tol)
        if fit.primal - fit.dual <= GAP * fit.primal:
            break
        tol *= _SHRINK
    return tol


def _fit(rows: Path, tol: float) -> _Fit:
    parameters = KERNEL_PARAMETERS[NAME]
    numbers = [parameters["C"], parameters["gamma"], tol, _MEGABYTES]
    command = ["Rscript", str(_SCRIPT), str(rows), *(f"{each:.17g}" for each in numbers)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, dual, primal, patterns = result.stdout.split()[-4:]
    return _Fit(float(seconds), float(dual), float(primal), int(patterns))

"""Joint Newton method for the coefficients of all outputs on a fixed basis.

Problem      minimise  1/2 |B|^2 + sum_i weight_i loss(f_i, y_i),  F = Z B, over B
State        coefficients B (float64) and scores F, kept equal to Z B
Step         conjugate gradients on the Hessian, preconditioned by the Cholesky factors of its
             diagonal blocks, one an output; then an exact line search, which costs no kernel work
             since scores are affine along a step
Stops        when |gradient| <= tol |gradient at B = 0| and little of the objective is left to gain
             (excess), or when a step brings too little (enough)

The squared hinges are piecewise quadratic: near the optimum the Hessian no longer changes and the
step is exact (Mangasarian, "A finite Newton method for classification", 2002). Solving for all
outputs together takes the place of the class by class sweeps in Algorithm 3 of Ganu, Shevade and
Sundararajan, "Sparse Max-Margin Multiclass and Multi-label Classifier Design for Fast Inference"
(2013), which converge slowly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.objectives import BasisObjective
from widemargin.row_blocks import Derivatives, Scores

Array: TypeAlias = npt.NDArray[Any]

#: Share of the objective that the last solve of a fit may leave to gain.
MOST_EXCESS = 1e-2

_LEAST_PROGRESS = 1e-14  # relative decrease below which rounding error is all that moves


@dataclass
class NewtonResult:
    """Where the iterations ended."""

    coefficients: Array
    scores: Scores
    value: float
    relative_gradient: float
    converged: bool
    n_iter: int
    excess: float = 0.0  # share of the value that could still be gained, where that was asked for


@dataclass(frozen=True)
class JointNewton:
    """Newton-CG over the coefficients of all outputs at once.

    Parameters
    ----------
    tol : float
        Norm of the gradient, relative to the one at zero coefficients, at which to stop.
    enough : float
        Stop also after a step that lowers the objective by less than this share of what all steps
        did. 0 switches the rule off.
    excess : float
        Do not stop at ``tol`` while another step promises to lower the objective by more than this
        share. Where columns are large, so is the gradient at zero, and a small part of it may
        be far from the optimum.
    forcing : float or None
        Residual at which conjugate gradients end, relative to the gradient. None tightens it from
        0.1 as the gradient falls, for fast convergence.
    max_iter : int
        Newton steps at the most.
    max_products : int
        Hessian products a step at the most.
    """

    tol: float = 1e-4
    enough: float = 0.0
    forcing: float | None = None
    max_iter: int = 100
    max_products: int = 250
    excess: float = np.inf

    def solve(
        self, objective: BasisObjective, coefficients: Array, scores: Scores, reference: float
    ) -> NewtonResult:
        """Minimise from given coefficients; ``reference`` is the norm of the gradient at zero."""
        scale = max(reference, np.finfo(float).tiny)
        n_iter = 0
        first = last = relative = np.inf
        excess = 0.0
        while True:
            at = objective.derivatives(scores)
            value = at.loss + 0.5 * float(np.vdot(coefficients, coefficients))
            first = value if n_iter == 0 else first
            enough = self.enough > 0 and last - value <= self.enough * (first - value)
            gradient = objective.gradient(coefficients, at)
            before, relative = relative, length(gradient) / scale
            # Neither falls any more: the rest is rounding error.
            stalled = last - value <= _LEAST_PROGRESS * abs(value) and relative > 0.5 * before
            last = value
            converged = relative <= self.tol
            if converged and self.excess < np.inf:
                excess = self._excess(objective, at, gradient, value)
                converged = excess <= self.excess
            if converged or enough or stalled or n_iter >= self.max_iter:
                break
            forcing = min(0.1, np.sqrt(relative)) if self.forcing is None else self.forcing
            step = self._direction(objective, scores, at, gradient, forcing)
            moved = objective.scores(step)
            size = line_search(objective, coefficients, scores, step, moved, gradient, value)
            coefficients = coefficients + size * step
            scores = objective.scores(coefficients)
            n_iter += 1
        return NewtonResult(coefficients, scores, value, relative, converged, n_iter, excess)

    def _excess(
        self, objective: BasisObjective, at: Derivatives, gradient: Array, value: float
    ) -> float:
        """Return about which share of the value could still be gained, or a bound of it."""
        # The regulariser alone curves by 1 in every direction.
        bound = 0.5 * float(np.vdot(gradient, gradient))
        if bound <= self.excess * value:
            return bound / max(value, np.finfo(float).tiny)
        ahead = objective.precondition(objective.preconditioner(at), gradient)
        return 0.5 * float(np.vdot(gradient, ahead)) / value

    def _direction(
        self,
        objective: BasisObjective,
        scores: Scores,
        at: Derivatives,
        gradient: Array,
        forcing: float,
    ) -> Array:
        factors = objective.preconditioner(at)
        step = np.zeros_like(gradient)
        residual = -gradient
        goal = forcing * length(gradient)
        ahead = objective.precondition(factors, residual)
        direction = ahead
        slope = np.vdot(residual, ahead)
        for _ in range(self.max_products):
            curved = objective.hessian_product(scores, at, direction)
            bend = np.vdot(direction, curved)
            if not 0.0 < slope < np.inf or not 0.0 < bend < np.inf:
                break  # all of it is rounding error, as next to very large columns
            size = slope / bend
            step += size * direction
            residual -= size * curved
            if length(residual) <= goal:
                break
            ahead = objective.precondition(factors, residual)
            slope, last = np.vdot(residual, ahead), slope
            direction = ahead + (slope / last) * direction
        return step


def length(matrix: Array) -> float:
    """Return the Frobenius norm, without what :func:`numpy.linalg.norm` asks of small matrices."""
    return math.sqrt(np.vdot(matrix, matrix))


def line_search(
    objective: BasisObjective,
    coefficients: Array,
    scores: Scores,
    step: Array,
    moved: Scores,
    gradient: Array,
    value: float,
) -> float:
    """Minimise along a descent direction by Newton's method in one dimension, safeguarded.

    Returns
    -------
    length : float
        Of the step; 0 where no decrease was found, which only rounding error can cause.
    """
    start_slope = float(np.vdot(gradient, step))
    along = float(np.vdot(coefficients, step))
    squared = float(np.vdot(step, step))
    regulariser = 0.5 * float(np.vdot(coefficients, coefficients))
    if not start_slope < 0.0:
        return 0.0
    rounding = 4.0 * float(np.finfo(objective.dtype).eps) * abs(value)
    if abs(start_slope) < 1e-3 * rounding:
        rounding = 0.0  # there is nothing to be gained
    low, high, length = 0.0, np.inf, 1.0
    best, least = 0.0, value
    for _ in range(30):
        loss, slope, curvature = objective.along(scores, moved, length)
        slope += along + length * squared
        curvature += squared
        here = regulariser + length * along + 0.5 * length**2 * squared + loss
        if here < least:
            best, least = length, here
        if abs(slope) <= 0.01 * abs(start_slope) and here < value + rounding:
            best = length  # near the optimum slopes still tell what values no longer do
            break
        if slope > 0.0:
            high = length
        else:
            low = length
        following = length - slope / curvature
        if not low < following < high:
            following = 2.0 * length if high == np.inf else 0.5 * (low + high)
        length = following
    return best

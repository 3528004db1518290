"""The machines that are compared: ours and its rivals.

Each is built from its size (vectors, components or hidden units), a seed, and the parameters that
are tuned. The grids begin at the exponents given here and grow where the best point is on an edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from widemargin import SparseKernelClassifier


@dataclass(frozen=True)
class Axis:
    """Values ``base ** exponent`` of a tuned parameter, and the exponents to begin with.

    ``relative`` exponents count from the power of ``base`` next to gamma="scale" of the data.
    """

    base: float
    exponents: tuple[int, ...]
    relative: bool = False

    def begin(self, X: np.ndarray) -> list[int]:
        if not self.relative:
            return list(self.exponents)
        scale = 1.0 / (X.shape[1] * X.var())
        centre = round(float(np.log(scale) / np.log(self.base)))
        return [centre + exponent for exponent in self.exponents]


@dataclass(frozen=True)
class Model:
    title: str
    build: Callable[..., Any]  # build(size, seed, **parameters)
    axes: dict[str, Axis] = field(default_factory=dict)
    is_random: bool = True
    has_size: bool = True


def sparse(size: int, seed: int, **parameters: Any) -> SparseKernelClassifier:
    # tol=0: exactly the vectors that were asked for.
    return SparseKernelClassifier(max_basis=size, tol=0, random_state=seed, **parameters)


def nystroem(size: int, seed: int, C: float, gamma: float) -> Any:
    return make_pipeline(
        Nystroem(n_components=size, gamma=gamma, random_state=seed),
        LinearSVC(C=C, dual=False, max_iter=3000),
    )


def mlp(size: int, seed: int, alpha: float) -> Any:
    network = MLPClassifier((size,), alpha=alpha, max_iter=400, random_state=seed)
    return make_pipeline(StandardScaler(), network)


class KMeansUnits(TransformerMixin, BaseEstimator):
    """Gaussian units at the centres of k-means: the hidden layer of a classical RBF network.

    ``width`` is a factor of the inverse mean squared distance of rows and centres.
    """

    def __init__(self, n_units: int, width: float = 1.0, random_state: int = 0) -> None:
        self.n_units = n_units
        self.width = width
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: Any = None) -> KMeansUnits:
        n_units = min(self.n_units, len(X))  # a quick run may have fewer rows
        clusters = KMeans(n_units, n_init=3, random_state=self.random_state)
        distances = clusters.fit_transform(X)
        self.clusters_ = clusters
        self.gamma_ = self.width / float(np.mean(distances**2))
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return np.exp(-self.gamma_ * self.clusters_.transform(X) ** 2)


def rbf_network(size: int, seed: int, C: float, width: float) -> Any:
    return make_pipeline(
        StandardScaler(),
        KMeansUnits(size, width, random_state=seed),
        LogisticRegression(C=C, max_iter=1000),
    )


def learned(size: int, seed: int, **parameters: Any) -> SparseKernelClassifier:
    return SparseKernelClassifier(max_basis=size, basis="learned", random_state=seed, **parameters)


def svc(size: int, seed: int, C: float, gamma: float) -> SVC:
    return SVC(C=C, gamma=gamma)


def linear(size: int, seed: int, C: float) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=2000))


_GAMMA = Axis(2.0, (-1, 0, 1, 2), relative=True)

MODELS = {
    "sparse": Model(
        "SparseKernelClassifier", sparse, {"C": Axis(4.0, (0, 1, 2, 3)), "gamma": _GAMMA}
    ),
    "nystroem": Model(
        "Nystroem + LinearSVC", nystroem, {"C": Axis(4.0, (1, 2, 3, 4)), "gamma": _GAMMA}
    ),
    "mlp": Model(
        "StandardScaler + MLPClassifier", mlp, {"alpha": Axis(10.0**0.5, tuple(range(-6, 2)))}
    ),
    "linear": Model(
        "StandardScaler + LogisticRegression",
        linear,
        {"C": Axis(4.0, (-2, -1, 0, 1, 2))},
        is_random=False,
        has_size=False,
    ),
    "learned": Model(
        'SparseKernelClassifier, basis="learned"',
        learned,
        {"C": Axis(10.0**0.5, (-1, 0, 1, 2, 3))},
    ),
    "rbf_network": Model(
        "StandardScaler + k-means units + LogisticRegression",
        rbf_network,
        {"C": Axis(10.0, (0, 1, 2, 3)), "width": Axis(2.0, (0, 1, 2, 3))},
    ),
    "svc": Model(
        "SVC, all the support vectors that it wants",
        svc,
        {"C": Axis(4.0, (1, 2, 3)), "gamma": _GAMMA},
        is_random=False,
        has_size=False,
    ),
}

# Those that stand beside a greedily chosen basis.
SELECTED = ("sparse", "nystroem", "mlp", "linear")

# The full machine at parameters that are known to be good for it.
SVC_PARAMETERS = {
    "letter.scale": {"C": 16.0, "gamma": 4.0},
    "usps": {"C": 10.0, "gamma": 2.0**-7},
    "satimage.scale": {"C": 16.0, "gamma": 1.0},
}


def full_svc(dataset: str) -> SVC:
    return SVC(**SVC_PARAMETERS[dataset])

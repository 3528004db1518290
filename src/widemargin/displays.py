"""Displays: pictures of fitted machines and priors, in the style of scikit-learn's Display classes.

They need matplotlib, which is imported when something is drawn: ``pip install widemargin[demo]``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from widemargin._system.parameters import check_choice, check_integer
from widemargin.kernels import Precomputed
from widemargin.models import KernelExpansion
from widemargin.priors import LabelPrior

Array: TypeAlias = npt.NDArray[Any]

_ORDERS = ("weight", "given")
_CONTRAST = (10.0, 99.0)  # percentiles of the numbers that are white and black
_WIDTH_TO_HEIGHT = 2.5  # of a grid of images
_PAPER = 0.6  # inches of a heat map beside its cells
_MANY_NAMES = 40  # beyond which features are not named one by one


class BasisDisplay:
    """The basis vectors of a machine: what it compares a row with.

    With an image shape each vector is drawn as an image, else all of them as a heat map with a
    column for each feature. A vector carries the class that it speaks for most, which is that of
    its largest coefficient, and its share in the sizes of all coefficients.

    It is best made by :meth:`from_estimator`.

    Parameters
    ----------
    vectors : array or CSR matrix of shape (n_basis, n_features)
    coef : ndarray of shape (n_basis, n_outputs)
    classes : array-like of shape (n_classes,)
        Their names; two of them where there is one output, whose sign tells them apart.
    image_shape : tuple of int, default=None
        (height, width) or (height, width, channels), with 3 or 4 channels.
    feature_names : array-like of str, default=None

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        One for each vector that is drawn as an image; else the one of the heat map.
    shown_ : ndarray of int
        Numbers of the vectors that are drawn, in the order they are drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import SparseKernelClassifier
    >>> from widemargin.displays import BasisDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> machine = SparseKernelClassifier(10, random_state=0).fit(X, y)
    >>> display = BasisDisplay.from_estimator(machine, image_shape=(8, 8))  # doctest: +SKIP
    """

    figure_: Any
    axes_: Array
    shown_: npt.NDArray[np.intp]

    def __init__(
        self,
        vectors: Any,
        coef: Array,
        classes: Any,
        *,
        image_shape: tuple[int, ...] | None = None,
        feature_names: Any = None,
    ) -> None:
        self.vectors = vectors
        self.coef = coef
        self.classes = np.asarray(classes)
        self.image_shape = image_shape
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        image_shape: tuple[int, ...] | None = None,
        feature_names: Any = None,
        max_vectors: int = 25,
        order: str = "weight",
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
        cmap: Any = None,
    ) -> Self:
        """Draw the basis vectors of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with a ``model_`` that is a KernelExpansion, or a Pipeline with one
            Steps before it are undone where they can be, so that vectors look as rows do.
        image_shape : tuple of int, default=None
            (height, width) or (height, width, channels) of a row that is an image.
        feature_names : array-like of str, default=None
            None takes ``feature_names_in_``, if there are any.
        max_vectors : int, default=25
            Vectors to draw at the most.
        order : {"weight", "given"}, default="weight"
            "weight": the vectors of the largest coefficients first. "given": as in ``basis_``.
        ax : matplotlib Axes or array of them, default=None
            Where to draw; images take the place of a single one. None makes a new figure.
        figsize : tuple of float, default=None
            Width and height of a new figure, in inches.
        cmap : str or Colormap, default=None
            None is "gray_r" for images and "viridis" for a heat map.

        Returns
        -------
        display : BasisDisplay
        """
        machine = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        check_is_fitted(machine)
        model = getattr(machine, "model_", None)
        if not isinstance(model, KernelExpansion):
            raise TypeError(
                f"{type(machine).__name__} has no basis vectors to draw: its model_ is no "
                "KernelExpansion."
            )
        if isinstance(model.kernel, Precomputed):
            raise ValueError(
                "With a precomputed kernel the basis vectors are known by their row numbers only. "
                "Draw the rows X[machine.basis_indices_] of the data that the kernel matrix was "
                "made of, with BasisDisplay(rows, machine.dual_coef_, machine.classes_).plot()."
            )
        vectors = model.basis
        if isinstance(estimator, Pipeline) and len(estimator) > 1:
            before = estimator[:-1]
            if hasattr(before, "inverse_transform"):
                vectors = before.inverse_transform(vectors)
        if feature_names is None:
            names = getattr(estimator, "feature_names_in_", None)
            feature_names = names if names is None or len(names) == vectors.shape[1] else None
        display = cls(
            vectors,
            model.coef,
            machine.classes_,
            image_shape=image_shape,
            feature_names=feature_names,
        )
        return display.plot(max_vectors=max_vectors, order=order, ax=ax, figsize=figsize, cmap=cmap)

    @property
    def shares(self) -> Array:
        """Share of each vector in the sizes of all coefficients."""
        sizes = np.abs(self.coef).sum(axis=1)
        return np.asarray(sizes / max(sizes.sum(), np.finfo(float).tiny))

    @property
    def spoken_for(self) -> Array:
        """The class that each vector speaks for most."""
        if self.coef.shape[1] == 1 and len(self.classes) == 2:
            return np.asarray(self.classes[(self.coef[:, 0] > 0).astype(np.intp)])
        return np.asarray(self.classes[self.coef.argmax(axis=1)])

    def plot(
        self,
        *,
        max_vectors: int = 25,
        order: str = "weight",
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
        cmap: Any = None,
    ) -> Self:
        """Draw the vectors; parameters as in :meth:`from_estimator`.

        Returns
        -------
        self : BasisDisplay
        """
        check_integer("max_vectors", max_vectors, least=1)
        check_choice("order", order, _ORDERS)
        self._check_shapes()
        if self.vectors.shape[0] == 0:
            raise ValueError("There are no basis vectors to draw.")
        numbers = np.arange(self.vectors.shape[0])
        if order == "weight":
            numbers = np.argsort(-self.shares, kind="stable")
        self.shown_ = numbers[:max_vectors]
        shown = self.vectors[self.shown_]
        rows = np.asarray(shown.toarray() if sp.issparse(shown) else shown, dtype=np.float64)
        pyplot = _pyplot()
        if self.image_shape is None:
            self._draw_profiles(pyplot, rows, ax, figsize, cmap or "viridis")
        else:
            self._draw_images(pyplot, rows, self.image_shape, ax, figsize, cmap or "gray_r")
        return self

    def _check_shapes(self) -> None:
        n_features = self.vectors.shape[1]
        if self.feature_names is not None and len(self.feature_names) != n_features:
            raise ValueError(
                f"feature_names has {len(self.feature_names)} names for {n_features} features."
            )
        shape = self.image_shape
        if shape is None:
            return
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (3, 4)):
            raise ValueError(
                "image_shape must be (height, width) or (height, width, channels) with 3 or 4 "
                f"channels, got {shape}."
            )
        if np.prod(shape) != n_features:
            raise ValueError(
                f"image_shape {shape} has {np.prod(shape)} numbers, a vector has {n_features}."
            )

    def _titles(self) -> list[str]:
        spoken_for, shares = self.spoken_for, self.shares
        return [f"{spoken_for[number]}  {_percent(shares[number])}" for number in self.shown_]

    def _draw_images(
        self,
        pyplot: Any,
        rows: Array,
        shape: tuple[int, ...],
        ax: Any,
        figsize: tuple[float, float] | None,
        cmap: Any,
    ) -> None:
        images = rows.reshape(-1, *shape)
        # Learned vectors overshoot here and there; what they are made of keeps the contrast.
        low, high = (float(limit) for limit in np.percentile(images, _CONTRAST))
        if len(shape) == 3:
            images = np.clip((images - low) / ((high - low) or 1.0), 0.0, 1.0)
        self._place(pyplot, ax, figsize, shape[0] / shape[1])
        colours = self._class_colours(pyplot)
        spoken_for = self.spoken_for[self.shown_]
        shares = self.shares[self.shown_]
        for axes, image, name, share in zip(self.axes_, images, spoken_for, shares, strict=True):
            axes.imshow(image, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            axes.set_title(str(name), loc="left", fontsize=8.5, pad=4, fontweight="bold")
            axes.set_title(_percent(share), loc="right", fontsize=7.5, pad=4, color="0.4")
            for side, spine in axes.spines.items():
                spine.set(color=colours[name], linewidth=2.5 if side == "top" else 0.8)

    def _class_colours(self, pyplot: Any) -> dict[Any, Any]:
        palette = pyplot.get_cmap("tab10" if len(self.classes) <= 10 else "turbo")
        count = len(self.classes)
        places = np.arange(count) if count <= 10 else np.linspace(0.0, 1.0, count)
        return dict(zip(self.classes.tolist(), palette(places), strict=True))

    def _place(
        self, pyplot: Any, ax: Any, figsize: tuple[float, float] | None, aspect: float
    ) -> None:
        """Make axes for images of this ratio of height to width."""
        count = len(self.shown_)
        if ax is not None and not hasattr(ax, "inset_axes"):
            given = np.ravel(np.asarray(ax, dtype=object))
            if len(given) < count:
                raise ValueError(f"{count} vectors are to be drawn on {len(given)} axes.")
            for spare in given[count:]:
                spare.set_axis_off()
            self.axes_ = given[:count]
            self.figure_ = self.axes_[0].figure
            return
        n_columns = _columns(count, aspect)
        n_rows = -(-count // n_columns)
        if ax is None:
            size = figsize or (n_columns * 0.95, n_rows * (0.95 * aspect + 0.22))
            self.figure_ = pyplot.figure(figsize=size, layout="constrained")
            axes = self.figure_.subplots(n_rows, n_columns, squeeze=False).ravel()
            for spare in axes[count:]:
                spare.set_axis_off()
            self.axes_ = axes[:count]
            return
        ax.set_axis_off()
        self.figure_ = ax.figure
        places = [divmod(number, n_columns) for number in range(count)]
        self.axes_ = np.array(
            [
                ax.inset_axes(
                    [
                        column / n_columns,
                        1.0 - (row + 1) / n_rows,
                        0.92 / n_columns,
                        0.78 / n_rows,
                    ]
                )
                for row, column in places
            ],
            dtype=object,
        )

    def _draw_profiles(
        self,
        pyplot: Any,
        rows: Array,
        ax: Any,
        figsize: tuple[float, float] | None,
        cmap: Any,
    ) -> None:
        least, spread = rows.min(axis=0), np.ptp(rows, axis=0)
        places = np.where(spread > 0, (rows - least) / np.where(spread > 0, spread, 1.0), 0.5)
        n_vectors, n_features = rows.shape
        if ax is None:
            width = min(max(0.45 * min(n_features, 24) + 3 * _PAPER, 4.0), 12.0)
            size = figsize or (width, 0.24 * n_vectors + 2 * _PAPER)
            figure, ax = pyplot.subplots(figsize=size, layout="constrained")
        else:
            ax = np.ravel(np.asarray(ax, dtype=object))[0]
            figure = ax.figure
        image = ax.imshow(places, cmap=cmap, vmin=0.0, vmax=1.0, aspect="auto")
        ax.set_yticks(range(n_vectors), self._titles(), fontsize=8)
        if n_features <= _MANY_NAMES:
            names = self.feature_names
            names = [f"x{number}" for number in range(n_features)] if names is None else names
            longest = max(len(str(name)) for name in names)
            turn = {"rotation": 45, "ha": "right"} if longest > 4 else {}
            ax.set_xticks(range(n_features), [str(name) for name in names], fontsize=8, **turn)
        else:
            ax.set_xlabel("feature")
        ax.tick_params(length=0)
        ax.set_xticks(np.arange(n_features + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n_vectors + 1) - 0.5, minor=True)
        if n_features <= _MANY_NAMES:
            ax.grid(which="minor", color="white", linewidth=1.5)
        ax.tick_params(which="minor", length=0)
        for spine in ax.spines.values():
            spine.set_visible(False)
        bar = figure.colorbar(image, ax=ax, ticks=[0.0, 1.0], pad=0.02)
        bar.ax.set_yticklabels(["least", "most"], fontsize=8)
        bar.outline.set_visible(False)
        self.figure_, self.axes_ = figure, np.array([ax], dtype=object)


class LabelPriorDisplay:
    """A prior over labels as a heat map: red for labels that go together, blue for the others.

    It is best made by :meth:`from_prior`.

    Parameters
    ----------
    matrix : ndarray of shape (n_labels, n_labels)
        R.
    label_names : array-like of str, default=None
        None names labels by their numbers.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> from widemargin import priors
    >>> from widemargin.displays import LabelPriorDisplay
    >>> prior = priors.from_labels([[1, 1, 0], [0, 0, 1]], label_names=["sea", "beach", "city"])
    >>> display = LabelPriorDisplay.from_prior(prior)  # doctest: +SKIP
    """

    figure_: Any
    ax_: Any

    def __init__(self, matrix: Array, *, label_names: Any = None) -> None:
        self.matrix = np.asarray(matrix)
        self.label_names = label_names

    @classmethod
    def from_prior(
        cls,
        prior: LabelPrior,
        *,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
        cmap: Any = None,
    ) -> Self:
        """Draw a prior.

        Parameters
        ----------
        prior : LabelPrior
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        figsize : tuple of float, default=None
            Width and height of a new figure, in inches.
        cmap : str or Colormap, default=None
            None is "RdBu_r", white at zero.

        Returns
        -------
        display : LabelPriorDisplay
        """
        if not isinstance(prior, LabelPrior):
            raise TypeError(
                f"from_prior draws a LabelPrior, got {type(prior).__name__}. Make one by "
                "widemargin.priors.from_correlation(matrix)."
            )
        return cls(prior.matrix, label_names=prior.label_names).plot(
            ax=ax, figsize=figsize, cmap=cmap
        )

    def plot(
        self, *, ax: Any = None, figsize: tuple[float, float] | None = None, cmap: Any = None
    ) -> Self:
        """Draw the prior; see :meth:`from_prior`."""
        pyplot = _pyplot()
        n_labels = len(self.matrix)
        if ax is None:
            side = min(max(0.24 * min(n_labels, _MANY_NAMES) + 3 * _PAPER, 3.0), 12.0)
            self.figure_, ax = pyplot.subplots(
                figsize=figsize or (side * 1.15, side), layout="constrained"
            )
        self.figure_, self.ax_ = ax.figure, ax
        largest = float(np.abs(self.matrix).max()) or 1.0
        image = ax.imshow(self.matrix, cmap=cmap or "RdBu_r", vmin=-largest, vmax=largest)
        if n_labels <= _MANY_NAMES:
            names = range(n_labels) if self.label_names is None else self.label_names
            texts = [str(name) for name in names]
            turn = {"rotation": 45, "ha": "right"} if max(map(len, texts)) > 4 else {}
            ax.set_xticks(range(n_labels), texts, fontsize=8, **turn)
            ax.set_yticks(range(n_labels), texts, fontsize=8)
        else:
            ax.set_xlabel("label")
            ax.set_ylabel("label")
        ax.tick_params(length=0)
        bar = self.figure_.colorbar(image, ax=ax, pad=0.02)
        bar.outline.set_visible(False)
        return self


def _columns(count: int, aspect: float) -> int:
    """Return a number of columns that makes a wide grid, and a full one if there is any."""
    wanted = np.sqrt(_WIDTH_TO_HEIGHT * count * aspect)
    about = np.arange(max(1, int(0.7 * wanted)), max(1, int(1.4 * wanted)) + 1)
    empty = -count % about
    least = about[empty == empty.min()]
    return min(count, int(least[np.argmin(np.abs(least - wanted))]))


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.1f}%"


def _pyplot() -> Any:
    try:
        return import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError(
            "Displays are drawn by matplotlib, which is not installed. It comes with "
            "pip install widemargin[demo]."
        ) from error

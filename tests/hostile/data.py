"""Training data of all the kinds that make trouble, described by a few numbers that can be read."""

import zlib
from dataclasses import dataclass, fields

import numpy as np
import scipy.sparse as sp

LABELS = ("integers", "negative", "floats", "strings", "bool")
FORMS = ("dense", "fortran", "csr")
WEIGHTS = ("none", "random", "some_zero", "integers", "uneven")


def generator(seed, name):
    """Return random numbers for one purpose: a further purpose leaves the others as they are."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


@dataclass(frozen=True, repr=False)
class Data:
    """Rows around a centre for each class, and what was done to them.

    Parameters
    ----------
    noise : float
        Spread of rows about the centre of their class; centres are 1 apart or so.
    single_rows : int
        Classes that have one row only.
    duplicates : int
        Rows that are there again, under another label.
    constant : int
        Features, of the first ones, that are the same for all rows.
    density : float
        Share of entries that are not zero.
    scale, offset : float
        Factor of all rows, and what is added to them, in units of the scale.
    mixed_scales : bool
        Whether features have scales of their own, over eight powers of ten.
    """

    seed: int = 0
    n_rows: int = 30
    n_features: int = 3
    n_classes: int = 3
    noise: float = 0.9
    single_rows: int = 0
    duplicates: int = 0
    constant: int = 0
    density: float = 1.0
    scale: float = 1.0
    offset: float = 0.0
    mixed_scales: bool = False
    labels: str = "integers"
    form: str = "dense"
    dtype: str = "float64"
    weights: str = "none"

    def __repr__(self):
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        told = {name: value for name, value in told.items() if value != getattr(Data, name)}
        return f"Data({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    def numbers(self):
        """Return the class number of each row; every class has one at the least."""
        rng = generator(self.seed, "classes")
        common = max(1, self.n_classes - self.single_rows)
        numbers = np.r_[
            np.arange(self.n_classes), rng.integers(common, size=self.n_rows - self.n_classes)
        ]
        numbers = rng.permutation(numbers)
        if self.duplicates:
            again, first = self._places()
            numbers[again] = (numbers[first] + 1) % self.n_classes
            for missing in np.setdiff1d(np.arange(self.n_classes), numbers):
                spare = np.bincount(numbers)[numbers] > 1
                numbers[np.flatnonzero(spare)[0]] = missing
        return numbers

    def _places(self):
        """Return the places of rows that are copies, and of those that they copy."""
        count = min(self.duplicates, self.n_rows // 2)
        return np.arange(self.n_rows - count, self.n_rows), np.arange(count)

    def rows(self):
        """Return rows as an array of float64, whatever the form and dtype."""
        rng = generator(self.seed, "rows")
        centres = rng.standard_normal((self.n_classes, self.n_features))
        noise = rng.standard_normal((self.n_rows, self.n_features))
        rows = centres[self.numbers()] + self.noise * noise
        if self.density < 1:
            rows *= rng.random(rows.shape) < self.density
        if self.duplicates:
            again, first = self._places()
            rows[again] = rows[first]
        rows[:, : self.constant] = 1.0
        if self.mixed_scales:
            rows *= 10.0 ** generator(self.seed, "scales").integers(-4, 5, size=self.n_features)
        return ((rows + self.offset) * self.scale).astype(self.dtype).astype(np.float64)

    def shaped(self, rows, form=None, dtype=None):
        """Return rows in a form and dtype: those of the problem where none is named."""
        rows = np.asarray(rows, dtype=dtype or self.dtype)
        form = form or self.form
        if form == "csr":
            return sp.csr_matrix(rows)
        return np.asfortranarray(rows) if form == "fortran" else np.ascontiguousarray(rows)

    def label_values(self):
        """Return what the classes are called, in the order in which they sort."""
        count = self.n_classes
        if self.labels == "negative":
            return 3 * np.arange(count) - count
        if self.labels == "floats":
            return 2.0 * np.arange(count) - 1.0
        if self.labels == "strings":
            return np.array([f"class {number:03d} é" for number in range(count)])
        if self.labels == "bool" and count == 2:
            return np.array([False, True])
        return np.arange(count)

    def targets(self):
        """Return the label of each row."""
        return self.label_values()[self.numbers()]

    def sample_weight(self):
        """Return the weights of the rows, or None; two classes have some at the least."""
        rng = generator(self.seed, "weights")
        if self.weights == "none":
            return None
        if self.weights == "integers":
            weights = rng.integers(0, 4, size=self.n_rows).astype(np.float64)
        elif self.weights == "uneven":
            weights = 10.0 ** rng.uniform(-6, 3, size=self.n_rows)
        else:
            weights = rng.uniform(0.2, 3.0, size=self.n_rows)
        if self.weights == "some_zero":
            weights[rng.random(self.n_rows) < 0.4] = 0.0
        for row in np.unique(self.numbers(), return_index=True)[1][:2]:
            weights[row] = max(weights[row], 1.0)
        return weights

    @property
    def magnitude(self):
        """The largest entry, and the smallest that is not zero, as far as can be told."""
        spread = 1e4 if self.mixed_scales else 1.0
        return self.scale * max(abs(self.offset), spread), self.scale / spread


def draw_data(seed, *, every_class_twice=False):
    """Return data of a random kind: plain in most ways, and odd in some."""
    rng = generator(seed, "data")

    def odd(share, value, plain):
        return value if rng.random() < share else plain

    n_classes = int(odd(0.35, 2, odd(0.15, rng.integers(8, 20), rng.integers(3, 7))))
    n_rows = int(rng.integers(max(6, n_classes), max(60, 2 * n_classes)))
    n_rows = int(odd(0.08, rng.integers(200, 700), odd(0.1, max(4, n_classes), n_rows)))
    wide = odd(0.03, 2500, rng.integers(60, 200))
    n_features = int(odd(0.1, wide, odd(0.2, 1, rng.integers(2, 10))))
    single_rows = odd(0.2, int(rng.integers(1, n_classes)), 0)
    duplicates = odd(0.25, int(rng.integers(1, n_rows // 2 + 1)), 0)
    if every_class_twice:
        n_rows, single_rows, duplicates = max(n_rows, 6 * n_classes), 0, 0
    return Data(
        seed=seed,
        n_rows=n_rows,
        n_features=n_features,
        n_classes=n_classes,
        noise=float(rng.choice([0.1, 0.9, 3.0])),
        single_rows=single_rows,
        duplicates=duplicates,
        constant=odd(0.2, int(rng.integers(1, n_features + 1)), 0),
        density=odd(0.3, float(rng.choice([0.0, 0.1, 0.5])), 1.0),
        scale=odd(0.25, float(10.0 ** rng.integers(-30, 31)), odd(0.2, 100.0, 1.0)),
        offset=odd(0.15, float(rng.choice([-3.0, 100.0, 1e4])), 0.0),
        mixed_scales=odd(0.1, True, False),
        labels=str(rng.choice(LABELS)),
        form=str(rng.choice(FORMS, p=[0.6, 0.1, 0.3])),
        dtype=odd(0.3, "float32", "float64"),
        weights=str(rng.choice(WEIGHTS, p=[0.5, 0.15, 0.15, 0.1, 0.1])),
    )

"""What the contract tests share: every estimator of the registry, quick, and data that suit it.

A new estimator is tested by being in the registry. It says by ``_quick_settings`` with which
parameters a fit takes no time, and by scikit-learn's tags what its data are.
"""

import functools

import numpy as np
import pytest
from conftest import overlapping_classes
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import get_tags

from widemargin._registry import ESTIMATORS

LABELS = np.array(["ash", "birch", "cedar", "elm"])
every_estimator = pytest.mark.parametrize("name", list(ESTIMATORS))


def unfitted(name, **parameters):
    """Return an estimator that is repeatable and quick."""
    estimator = ESTIMATORS[name]()
    settings = {"random_state": 0, **estimator._quick_settings, **parameters}
    known = estimator.get_params()
    return estimator.set_params(**{key: settings[key] for key in settings if key in known})


def has_parameter(name, parameter):
    return parameter in ESTIMATORS[name]().get_params()


def is_multilabel(name):
    """Return whether rows have sets of labels, not one class each."""
    tags = get_tags(unfitted(name)).classifier_tags
    return tags.multi_label and not tags.multi_class


def has_two_labels(name):
    """Return whether these are sets of two labels, of which a row has at least one."""
    return is_multilabel(name) and not get_tags(unfitted(name)).target_tags.two_d_labels


#: Those whose rows have one class each, and whose classes lie in no order.
CLASS_ESTIMATORS = {
    name: kind
    for name, kind in ESTIMATORS.items()
    if not get_tags(unfitted(name)).classifier_tags.multi_label
}


def targets(name, y, classes=LABELS):
    """Return what an estimator learns from class numbers: names, or sets of labels."""
    if not is_multilabel(name):
        return classes[y]
    has_another = np.arange(len(y)) % 3 == 0  # so that rows have one label or two
    if has_two_labels(name):
        return np.stack([(y % 2 == number) | has_another for number in (0, 1)], axis=1).astype(int)
    own = np.eye(y.max() + 1, dtype=int)[y]
    return own | np.roll(own, 1, axis=1) * has_another[:, np.newaxis]


@functools.cache
def problem(name, n_rows=120, n_classes=3, n_features=4, seed=5):
    """Return rows and targets of the kind that the tags of an estimator ask for."""
    X, y = overlapping_classes(n_rows, n_classes, n_features=n_features, seed=seed)
    tags = get_tags(unfitted(name)).input_tags
    if tags.positive_only:
        X = X - X.min()
    if tags.pairwise:
        X = rbf_kernel(X)
    X.flags.writeable = False
    return X, targets(name, y)


@functools.cache
def fitted(name, n_classes=3):
    """Return a fitted machine that tests share: whoever changes it takes a copy."""
    return unfitted(name).fit(*problem(name, n_classes=n_classes))


def same_state(machine, before):
    """Return whether an estimator has the attributes that it had, the very same objects."""
    after = vars(machine)
    return list(after) == list(before) and all(after[name] is before[name] for name in before)

"""The plainest machine of label sets there can be, to test what all of them share."""

import numpy as np

from widemargin.estimation.fitting import all_or_nothing
from widemargin.estimation.labels import HasLabels
from widemargin.models import LinearMap


class RidgeLabels(HasLabels):
    """Weighted least squares to +1 and -1, label by label."""

    def __init__(
        self,
        *,
        C=1.0,
        prior=None,
        class_weight=None,
        threshold=0.0,
        threshold_metric="macro",
        probability=False,
        sparse_output=False,
        random_state=None,
        n_jobs=None,
    ):
        self.C = C
        self.prior = prior
        self.class_weight = class_weight
        self.threshold = threshold
        self.threshold_metric = threshold_metric
        self.probability = probability
        self.sparse_output = sparse_output
        self.random_state = random_state
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        self._check_label_parameters()
        training = self._validate_training_data(X, y, sample_weight)
        self.prior_ = self._label_prior(training)
        rows = np.asarray(
            training.rows.todense() if hasattr(training.rows, "todense") else training.rows
        )
        wide = np.hstack([rows, np.ones((len(rows), 1))])
        signed = training.signed_weights()
        solved = np.empty((wide.shape[1], signed.shape[1]))
        for label, column in enumerate(signed.T):
            counts = training.caps * np.abs(column)
            left = np.eye(wide.shape[1]) + (wide.T * counts) @ wide
            solved[:, label] = np.linalg.solve(left, wide.T @ (counts * np.sign(column)))
        model = LinearMap(*training.of_all_labels(solved[:-1], solved[-1]))
        self.__dict__.update(model_=model, readout_=self._label_readout(training))
        return self

    def _why_no_probabilities(self):
        return "least squares has none"


def label_problem(n_rows=60, n_labels=4, seed=0, n_features=5):
    """Return rows and labels that follow from them, but for noise."""
    rng = np.random.RandomState(seed)
    X = rng.randn(n_rows, n_features)
    wanted = X @ rng.randn(n_features, n_labels) + 0.5 * rng.randn(n_rows, n_labels)
    return X, (wanted > 0.3).astype(int)

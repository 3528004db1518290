"""Going on with a fit that was stopped: what it leaves, and when the next fit is the same one.

With ``warm_start=True``, a fit that a callback, the clock or Ctrl-C stopped leaves the packed state
of its solver in the attribute ``_state``, with fingerprints of its data and its parameters. The
next fit with the same of both goes on from there, as if nothing had stopped it. Model files and
pickles hold the attribute. Any other fit forgets it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.estimation.fitting import LAST_GOOD
from widemargin.solvers.progress import pack_random

#: Name of the attribute that a stopped fit leaves.
STATE = "_state"

# Parameters that change no bit of where a fit ends, or that say when it stops. Random numbers go on
# from where they were.
_OTHER = frozenset({"max_seconds", "n_jobs", "random_state", "verbose", "warm_start"})


def fingerprint(*values: Any) -> str:
    """Return a hash of values: arrays, CSR matrices, numbers, texts, and what is made of these.

    Arrays count by shape, type and bytes. Objects that are none of these count by their ``repr``,
    so that a function is only the same as itself.
    """
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    # A memory map is an array like any other.
    kind = "ndarray" if isinstance(value, np.ndarray) else type(value).__name__
    digest.update(f"{kind}(".encode())
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.shape}{value.dtype.str}".encode())
        digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    elif sp.issparse(value):
        digest.update(f"{value.shape}".encode())
        for part in (value.data, value.indices, value.indptr):
            _add(digest, part)
    elif isinstance(value, np.random.RandomState):
        _add(digest, pack_random(value))
    elif isinstance(value, dict):
        for pair in value.items():
            _add(digest, pair)
    elif isinstance(value, (list, tuple, np.ndarray)):
        for item in value:
            _add(digest, item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _add(digest, {each.name: getattr(value, each.name) for each in dataclasses.fields(value)})
    elif hasattr(value, "get_params") and not isinstance(value, type):
        _add(digest, value.get_params(deep=False))
    else:
        digest.update(repr(value).encode())
    digest.update(b")")


def _settings(estimator: Any) -> str:
    parameters = estimator.get_params(deep=False)
    return fingerprint({name: parameters[name] for name in sorted(set(parameters) - _OTHER)})


def keep(estimator: Any, data: str, packed: dict[str, Any]) -> dict[str, Any]:
    """Return what a stopped fit leaves in ``_state``.

    Parameters
    ----------
    estimator : the estimator, with the parameters of the fit
    data : str
        The fingerprint of rows, targets and weights.
    packed : dict
        What model files hold: the state of a solver.
    """
    return {"data": data, "settings": _settings(estimator), "packed": packed}


def recall(estimator: Any, *data: Any) -> dict[str, Any] | None:
    """Return the packed state from which a fit to this data goes on, or None to begin.

    An interrupted fit may offer it in the machine that it had come to.

    Parameters
    ----------
    estimator : the estimator, as it was before the fit
    *data : rows, targets and weights
    """
    if not estimator.warm_start:
        return None
    last_good = vars(estimator).get("history_", {}).get(LAST_GOOD)
    for machine in (last_good, estimator):
        kept = vars(machine).get(STATE) if machine is not None else None
        if kept is not None and kept["settings"] == _settings(estimator):
            packed: dict[str, Any] = kept["packed"]
            return packed if kept["data"] == fingerprint(*data) else None
    return None

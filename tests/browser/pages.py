"""Machines whose pages are tested: images, a table with texts, label sets."""

import functools

import numpy as np
import pandas as pd
from conftest import read_digits
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import SparseKernelClassifier, SparseKernelMultiLabelClassifier
from widemargin.datasets import pipeline_for
from widemargin.report import Candidate, Comparison, Source, report_page
from widemargin.report.comparison import with_frontiers

HOSTILE = "<img src=x onerror=hacked()>\"'</script><script>hacked()</script>"


@functools.cache
def digits():
    X, y = read_digits()
    frame = pd.DataFrame(X, columns=load_digits().feature_names)
    machine = SparseKernelClassifier(60, loss="logistic", C=10, random_state=0)
    return machine.fit(frame[:900], y[:900]), frame[900:], y[900:], {}


@functools.cache
def people():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"age": rng.randint(17, 80, 400).astype(float)})
    frame[HOSTILE] = rng.rand(400)
    frame["work"] = np.array(["state", "private", HOSTILE])[rng.randint(3, size=400)]
    y = np.where(frame["age"] / 60 + (frame["work"] == "state") > 1, HOSTILE, "less")
    frame.loc[::9, HOSTILE] = np.nan
    kinds = {"age": "number", HOSTILE: "number", "work": "text"}
    machine = SparseKernelClassifier(12, random_state=0)
    pipeline = pipeline_for(kinds, machine, frame).fit(frame[:300], y[:300])
    return pipeline, frame[300:], y[300:], {}


@functools.cache
def scenes():
    rng = np.random.RandomState(1)
    X = rng.rand(300, 16)
    Y = np.stack([X[:, k] + X[:, k + 1] > 1 for k in range(5)], axis=1).astype(int)
    machine = SparseKernelMultiLabelClassifier(20, probability=True, random_state=0)
    pipeline = make_pipeline(StandardScaler(), machine).fit(X[:200], Y[:200])
    names = ["sea", "beach", "city", "field", HOSTILE]
    return pipeline, X[200:], Y[200:], {"label_names": names}


CASES = {"digits": digits, "people": people, "scenes": scenes}


def comparison(metric):
    """Return a comparison of five machines, of which one could not be measured."""
    rows = [
        ("30 learned vectors", "ours", 0.97, 1.5, 12.0, 30),
        ("100 learned vectors", "ours", 0.98, 4.0, 15.0, 100),
        ("SVC", "peer", 0.985, 210.0, 400.0, 900),
        (HOSTILE, "peer", 0.96, 18.0, 5000.0, None),
    ]
    found = [
        Candidate(
            name,
            kind,
            "as is",
            scores=(mean,),
            splits=(0,),
            mean=mean,
            batch_us=batch,
            alone_us=alone,
            n_basis=n_basis,
            model_bytes=2e4,
            fit_seconds=1.0,
        )
        for name, kind, mean, batch, alone, n_basis in rows
    ]
    found.append(Candidate("slow", "peer", "as is", note="left out: no time"))
    return Comparison(
        metric,
        with_frontiers(found),
        recommendation=(f"Take {HOSTILE}.",),
        notes=("On splits.",),
        environment={"python": HOSTILE},
    )


@functools.cache
def page(name):
    """Return the page of a case, with all that a page may have."""
    machine, X, y, options = CASES[name]()
    metric = "labels right" if y.ndim == 2 else "accuracy"
    source = Source(f"{HOSTILE}.csv", HOSTILE, [f"widemargin report {HOSTILE}"], [HOSTILE])
    return report_page(machine, X, y, comparison=comparison(metric), source=source, **options)

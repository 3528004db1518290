"""A WebAssembly module in a real browser, in a page that was opened from disk."""

import base64

import numpy as np
import pytest
from browsing import chromium, open_page  # noqa: F401  # fixtures
from conftest import read_digits

from widemargin import SparseKernelClassifier
from widemargin.export import to_wasm

pytest.importorskip("ziglang", reason="no compiler for WebAssembly")


def test_digits(open_page, tmp_path):  # noqa: F811
    X, y = read_digits()
    machine = SparseKernelClassifier(60, loss="logistic", random_state=0).fit(X[:900], y[:900])
    export = to_wasm(machine, tmp_path / "digits.wasm")
    content = base64.b64encode(export.path.read_bytes()).decode()
    page = tmp_path / "page.html"
    begin = f'Uint8Array.from(atob("{content}"), (letter) => letter.charCodeAt(0))'
    page.write_text(
        f"<!doctype html><script>{export.loader}\nconst ready = loadMachine({begin});</script>",
        encoding="utf-8",
    )
    shown = open_page(page)
    rows = X[900:1000]
    found = shown.evaluate(
        "(rows) => ready.then((machine) => rows.map((row) => [machine.scores(row), "
        "machine.probabilities(row), machine.predict(row)]))",
        rows.tolist(),
    )
    scores, shares, answers = zip(*found, strict=True)
    expected = machine.decision_function(rows)
    assert np.abs(np.array(scores) - expected).max() <= 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(shares, machine.predict_proba(rows), atol=1e-5)
    assert list(answers) == machine.predict(rows).tolist()
    assert shown.faults == []

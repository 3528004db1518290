"""A table that is made up, like that of a census: six columns of numbers and eight of texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

# Columns of texts and how many different ones each has, a few of them in most of the rows.
TEXTS = {
    "workclass": 8,
    "education": 16,
    "marital": 7,
    "occupation": 14,
    "relationship": 6,
    "origin": 5,
    "sex": 2,
    "country": 41,
}
WITH_GAPS = ("workclass", "occupation", "country")
SHARE_OF_GAPS = 0.05
SHARE_OF_YES = 0.24


def census(n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Return rows whose answer depends on numbers, texts and some of them together, and on luck."""
    rng = np.random.default_rng(seed)
    codes = {name: _draw(rng, n_rows, count) for name, count in TEXTS.items()}
    age = np.clip(rng.gamma(8.0, 4.8, n_rows), 17, 90).round()
    hours = np.clip(rng.normal(40, 12, n_rows), 1, 99).round()
    weight = rng.lognormal(12, 0.5, n_rows).round()
    schooling = (17 - codes["education"] + rng.integers(-1, 2, n_rows)).clip(1, 16)
    gain = np.where(rng.random(n_rows) < 0.08, rng.lognormal(8.5, 1.0, n_rows), 0).round()
    loss = np.where(rng.random(n_rows) < 0.05, rng.normal(1900, 350, n_rows), 0).clip(0).round()
    effects = {name: rng.normal(0, 0.5, count) for name, count in TEXTS.items()}
    pull = sum(effects[name][codes[name]] for name in TEXTS)
    pull = pull - ((age - 48) / 14) ** 2 + 0.25 * (schooling - 10)
    pull += np.where(codes["marital"] == 0, 1.8, 0) * (hours > 35)
    pull += 2.5 * (gain > 5000) + 1.0 * (loss > 1800)
    together = rng.normal(0, 0.6, (TEXTS["occupation"], TEXTS["education"]))
    pull += together[codes["occupation"], codes["education"]]
    pull += rng.logistic(0, 0.8, n_rows)
    answer = np.where(pull > np.quantile(pull, 1 - SHARE_OF_YES), ">50K", "<=50K")
    numbers = {
        "age": age.astype(int),
        "weight": weight.astype(int),
        "schooling": schooling.astype(int),
        "gain": gain.astype(int),
        "loss": loss.astype(int),
        "hours": hours.astype(int),
    }
    texts = {name: np.array([f"{name}-{code}" for code in codes[name]]) for name in TEXTS}
    table = pd.DataFrame({**numbers, **{name: texts[name].astype(object) for name in TEXTS}})
    for name in WITH_GAPS:
        table.loc[rng.random(n_rows) < SHARE_OF_GAPS, name] = "?"
    table["income"] = answer
    return table


def write(path: Path, n_rows: int, seed: int = 0) -> Path:
    """Write such a table as CSV."""
    census(n_rows, seed).to_csv(path, index=False)
    return path


def _draw(rng: np.random.Generator, n_rows: int, count: int) -> np.ndarray:
    """Draw codes, of which the first are frequent and the last rare."""
    shares = 1.0 / np.arange(1, count + 1) ** 1.3
    return rng.choice(count, n_rows, p=shares / shares.sum())

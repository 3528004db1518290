"""Every estimator documents what a fit leaves: no attribute more, none less."""

import inspect
import re

import pytest
from contract import ESTIMATORS, every_estimator, has_parameter, problem, unfitted

from widemargin import LearnedBasis


def section(docstring, title):
    """Return the text of a numpydoc section."""
    after = docstring.split(f"\n{title}\n{'-' * len(title)}\n", 1)[1]
    return re.split(r"\n[^\n]+\n-{4,}\n", after, maxsplit=1)[0]


def documented(name):
    """Return the names in the section on attributes; a line may have several of them."""
    text = section(inspect.getdoc(ESTIMATORS[name]), "Attributes")
    lines = re.findall(r"^(\w+(?:, \w+)*) :", text, flags=re.MULTILINE)
    return [each for line in lines for each in line.split(", ")]


@every_estimator
def test_every_fitted_attribute_is_documented(name):
    pd = pytest.importorskip("pandas")
    X, y = problem(name)
    # A linear kernel has all of them, but for those of a linear part beside another one.
    fits = [{"kernel": "linear"} if has_parameter(name, "kernel") else {}]
    if has_parameter(name, "basis"):
        fits.append({"basis": LearnedBasis(linear_part=True, max_iter=4)})
    there = set()
    for settings in fits:
        fitted = unfitted(name, **settings).fit(pd.DataFrame(X, columns=list("abcd")), y)
        # Older versions of scikit-learn list what is not there, too.
        public = [each for each in dir(fitted) if each.endswith("_") and not each.startswith("_")]
        there |= {each for each in public if hasattr(fitted, each)}
    assert len(set(documented(name))) == len(documented(name))
    assert set(documented(name)) == there


@every_estimator
def test_nothing_is_there_before_the_fit(name):
    machine = unfitted(name)
    assert not [each for each in documented(name) if hasattr(machine, each)]

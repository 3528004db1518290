"""The documentation of the public names: its examples run, and it names every parameter."""

import doctest
import inspect
import re

import pytest

import widemargin

PUBLIC = [name for name in widemargin.__all__ if callable(getattr(widemargin, name))]


def test_all_names_exist():
    assert PUBLIC
    assert all(hasattr(widemargin, name) for name in widemargin.__all__)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", widemargin.__version__)


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_run(name):
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for test in finder.find(getattr(widemargin, name), name):
        runner.run(test)
    failed, attempted = runner.summarize()
    assert attempted > 0
    assert failed == 0


def section(docstring, title):
    """Return the text of a numpydoc section."""
    after = docstring.split(f"\n{title}\n{'-' * len(title)}\n", 1)[1]
    return re.split(r"\n[^\n]+\n-{4,}\n", after, maxsplit=1)[0]


def names_in(text):
    return re.findall(r"^(\w+) :", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_documented_in_order(name):
    public = getattr(widemargin, name)
    documented = names_in(section(inspect.getdoc(public), "Parameters"))
    assert documented == list(inspect.signature(public).parameters)


def test_every_fitted_attribute_is_documented(three_classes):
    pd = pytest.importorskip("pandas")
    X, y = three_classes
    fitted = widemargin.SparseKernelClassifier(3).fit(pd.DataFrame(X, columns=list("abcd")), y)
    there = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    documented = names_in(section(inspect.getdoc(widemargin.SparseKernelClassifier), "Attributes"))
    assert set(documented) == there


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_method_is_documented(name):
    methods = inspect.getmembers(getattr(widemargin, name), callable)
    own = [
        (title, method)
        for title, method in methods
        if not title.startswith("_") and getattr(method, "__module__", "").startswith("widemargin")
    ]
    assert own
    for title, method in own:
        assert inspect.getdoc(method), title

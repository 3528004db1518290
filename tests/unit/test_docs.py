"""The documentation of the public names: its examples run, and it names every parameter.

tests/conformance looks at the attributes of estimators.
"""

import doctest
import inspect
import re

import pytest

import widemargin
import widemargin.datasets
import widemargin.export
import widemargin.report
import widemargin.river
import widemargin.zero_shot

MODULES = (
    widemargin,
    widemargin.datasets,
    widemargin.export,
    widemargin.report,
    widemargin.river,
    widemargin.zero_shot,
)
PUBLIC = {
    name: getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if callable(getattr(module, name))
    and name not in ("ModelFileError", "StreamError", "register_skl2onnx")
}
MADE_BY_US = ("Candidate", "Comparison", "CExport", "ExportLoss", "Source", "WasmExport")
WRITTEN_BY_USERS = [name for name in PUBLIC if name not in MADE_BY_US]
SLOW = {"SparseKernelClassifierCV", "compare"}  # examples that take seconds
CLASSES = [name for name, public in PUBLIC.items() if inspect.isclass(public)]


def test_all_names_exist():
    assert PUBLIC
    assert all(hasattr(module, name) for module in MODULES for name in module.__all__)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", widemargin.__version__)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.thorough] * (name in SLOW))
        for name in WRITTEN_BY_USERS
    ],
)
def test_examples_run(name):
    packages = {"to_onnx": "onnx", "to_wasm": "ziglang"}
    if name in packages:
        pytest.importorskip(packages[name])
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for test in finder.find(PUBLIC[name], name):
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


@pytest.mark.parametrize("name", WRITTEN_BY_USERS)
def test_every_parameter_is_documented_in_order(name):
    public = PUBLIC[name]
    documented = names_in(section(inspect.getdoc(public), "Parameters"))
    parameters = inspect.signature(public).parameters.values()
    assert documented == [each.name for each in parameters if each.kind != each.VAR_KEYWORD]


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_method_is_documented(name):
    own = [
        (title, method)
        for title, method in inspect.getmembers(PUBLIC[name], callable)
        if not title.startswith("_") and getattr(method, "__module__", "").startswith("widemargin")
    ]
    assert own or name in MADE_BY_US
    for title, method in own:
        assert inspect.getdoc(method), title

"""The pages of the documentation are true: code runs in order, claims hold, links lead somewhere.

All code of a page runs in one namespace, in an empty folder. What a writer needs to know:

* Code in fences of ``python`` runs. So does what readers do not see, for checks of what the page
  says and for shorter data: an HTML comment that begins with a line ``<!-- python``.
* A fence of ``text`` is what the code above it prints. Numbers may be off by a hundredth.
* A fence of ``c`` compiles, where there is a compiler.
* A fence of ``sh`` has commands of ``widemargin``, a line each, which run.
* A fence without a language shows commands. Those of make must be in the Makefile.
* ``<!-- needs: onnx, pandas -->`` skips the page where one of these packages is missing.
* ``<!-- not run: reason -->`` above a fence leaves it out, and is counted in ``NOT_RUN``.
"""

import contextlib
import importlib
import inspect
import io
import re
import shlex
import shutil
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

import widemargin
from widemargin._registry import ESTIMATORS

TOP = Path(__file__).parents[2]
PAGES = sorted([*TOP.glob("*.md"), *TOP.glob("docs/*.md")])
NOT_RUN = {"docs/model_files.md": 2, "docs/user_guide.md": 1}  # page: number of fences
NAMES = [page.relative_to(TOP).as_posix() for page in PAGES]

FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n+)?"
    r"(?:```(?P<language>\S*)[^\n`]*\n(?P<shown>.*?)^```$|<!-- python\n(?P<hidden>.*?)^-->$)",
    flags=re.MULTILINE | re.DOTALL,
)
LANGUAGES = {"python", "text", "c", "sh", "javascript", ""}
NUMBER = re.compile(r"\d+(?:\.\d+)?")

MODULES = (
    *(widemargin, widemargin.datasets, widemargin.displays, widemargin.export, widemargin.river),
    widemargin.report,
    widemargin.two_label,
    widemargin.zero_shot,
)

every_page = pytest.mark.parametrize("name", NAMES)
SLOW = {"docs/tuning.md", "docs/user_guide.md"}  # whose code takes as long as that of all others


@dataclass(frozen=True)
class Piece:
    """A fence or a hidden piece of code, and the line of the page that it begins on."""

    language: str
    source: str
    line: int
    reason: str | None


def text_of(name):
    return (TOP / name).read_text(encoding="utf-8")


def pieces(text):
    found = []
    for match in FENCE.finditer(text):
        group = "shown" if match["hidden"] is None else "hidden"
        line = text.count("\n", 0, match.start(group)) + 1
        language = match["language"] if group == "shown" else "python"
        found.append(Piece(language, match[group], line, match["reason"]))
    return found


def run(name, text):
    """Run the code of a page; errors have the line numbers of the page."""
    variables = {"__name__": "__main__"}
    printed = ""
    for piece in pieces(text):
        if piece.reason is not None:
            continue
        if piece.language == "python":
            # Lines of the page are lines of the code if so many empty ones come first.
            source = "\n" * (piece.line - 1) + piece.source
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(source, str(TOP / name), "exec"), variables)
            printed = output.getvalue()
        elif piece.language == "text":
            compare(piece.source, printed, f"{name}:{piece.line}")
        elif piece.language == "c":
            compile_c(piece.source)
        elif piece.language == "sh":
            run_commands(piece.source, f"{name}:{piece.line}")


def compare(shown, printed, place):
    """Check that a page shows what was printed, but for small differences of numbers."""
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", printed).split(), place
    for on_page, found in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True):
        assert float(on_page) == pytest.approx(float(found), rel=0.01), (place, printed)


def run_commands(source, place):
    from click.testing import CliRunner

    from widemargin.cli._group import commands

    for line in source.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "widemargin", place
        done = CliRunner().invoke(commands, arguments)
        assert done.exit_code == 0, (place, line, done.output)


def compile_c(source):
    compiler = shutil.which("cc")
    if compiler:
        Path("page.c").write_text(source, encoding="utf-8")
        strict = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([compiler, *strict, "-c", "page.c"], check=True)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.thorough] * (name in SLOW)) for name in NAMES],
)
def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch):
    text = text_of(name)
    for packages in re.findall(r"<!-- needs: (.+?) -->", text):
        for package in packages.split(","):
            pytest.importorskip(package.strip())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    try:
        run(name, text)
    except Exception:  # as text: pytest would show all of the page for each of its frames
        pytest.fail(traceback.format_exc(), pytrace=False)


@every_page
def test_a_page_has_no_fence_that_is_not_known(name):
    text = text_of(name)
    languages = {piece.language for piece in pieces(text)}
    assert {each for each in languages if not each.startswith("{")} <= LANGUAGES
    # Every fence and every comment was found: an indented or unclosed one would run nowhere.
    found = pieces(text)
    hidden = len(re.findall(r"<!--\s*python", text))
    assert len(found) == text.count("```") / 2 + hidden
    left_out = [piece for piece in found if piece.reason is not None]
    assert len(left_out) == NOT_RUN.get(name, 0) == len(re.findall(r"<!--\s*not run", text))


@every_page
def test_commands_of_make_are_there(name):
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), flags=re.MULTILINE))
    text = text_of(name)
    shown = [piece.source for piece in pieces(text) if not piece.language]
    commands = re.findall(r"^(?:\w+=\S+ )*make ([\w-]+)", "\n".join(shown), flags=re.MULTILINE)
    commands += re.findall(r"`(?:\w+=\S+ )*make ([\w-]+)[^`]*`", text)
    assert set(commands) <= targets


def anchor(heading):
    """Return what GitHub and myst-parser make of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@every_page
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", FENCE.sub("", text_of(name))):
        path, _, part = target.partition("#")
        file = (TOP / name).parent / path if path else TOP / name
        assert file.is_file(), target
        if part:
            text = file.read_text(encoding="utf-8")
            headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
            assert part in map(anchor, headings), target


@every_page
def test_names_that_a_page_gives_are_there(name):
    missing = []
    for dotted in sorted(set(re.findall(r"\bwidemargin(?:\.[A-Za-z_]\w*)+", text_of(name)))):
        found = widemargin
        for part in dotted.split(".")[1:]:
            found = getattr(found, part, None)
        if found is None:
            missing.append(dotted)
    assert not missing


@every_page
def test_parameters_that_a_page_gives_are_there(name):
    """Look for things like `early_stopping=True` in the text between code."""
    callables = [
        member for module in MODULES for member in vars(module).values() if callable(member)
    ]
    callables += [widemargin.SparseKernelClassifier.compile, widemargin.displays.BasisDisplay.plot]
    known = {each for member in callables for each in parameters_of(member)}
    text = FENCE.sub("", text_of(name))
    given = re.findall(r"`(?:\w+\()?([a-zA-Z_]\w*)=[^`]*`", text)
    assert {each for each in given if each[0].islower()} <= known | {"tau", "certify", "options"}


def parameters_of(member):
    try:
        return list(inspect.signature(member).parameters)
    except (TypeError, ValueError):
        return []


def test_there_is_code_on_the_pages():
    counts = {name: sum(p.language == "python" for p in pieces(text_of(name))) for name in NAMES}
    for name in ("README.md", "docs/index.md", "docs/user_guide.md", "docs/deployment.md"):
        assert counts[name] > 0, name
    assert set(NOT_RUN) <= set(NAMES)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("```python\nx = 1\n```\n<!-- python\nassert x == 2\n-->\n", AssertionError),
        ("```python\nprint(3)\n```\n\n```text\n4\n```\n", AssertionError),
        ("```python\nprint('a')\n```\n\n```text\nb\n```\n", AssertionError),
        ("\n\n```python\nundefined\n```\n", NameError),
        ("```sh\nwidemargin info absent.model\n```\n", AssertionError),
    ],
)
def test_a_page_that_is_wrong_fails(text, error):
    with pytest.raises(error):
        run("README.md", text)


def test_an_error_has_the_line_of_the_page():
    with pytest.raises(NameError) as caught:
        run("README.md", "One line.\n\n```python\nx = 1\nundefined\n```\n")
    assert caught.traceback[-1].lineno + 1 == 5


def test_a_page_that_is_right_passes():
    run("README.md", "```python\nprint(100.0)\n```\n\n```text\n100.4\n```\n")
    run("README.md", "<!-- not run: no reason -->\n```python\nundefined\n```\n")


def test_submodules_are_reachable_by_the_name_of_the_package_alone():
    code = (
        "import sys, widemargin\n"
        "assert 'widemargin.export' not in sys.modules, 'it takes a while to import'\n"
        "for name in widemargin._SUBMODULES:\n"
        "    assert name in dir(widemargin) and getattr(widemargin, name).__doc__, name\n"
        "widemargin.displays.BasisDisplay, widemargin.export.to_c\n"
        "widemargin.solvers.duals.larank.LaRank"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_submodule_that_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'exports'"):
        _ = widemargin.exports


def test_the_picture_of_estimators_is_drawn_anew_and_has_all_of_them(monkeypatch):
    monkeypatch.syspath_prepend(str(TOP / "docs"))
    decisions = importlib.import_module("_decisions")
    picture = text_of("docs/which_estimator.svg")
    assert picture == decisions.draw(), "python docs/_decisions.py draws it"
    assert {name for name in ESTIMATORS if name not in picture} == set()
    for name in re.findall(r"zero_shot\.(\w+)", picture):
        assert hasattr(widemargin.zero_shot, name)

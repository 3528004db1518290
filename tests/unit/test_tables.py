"""The tables of losses and kernels in the documentation: made of the registry, so never behind."""

import importlib.util
import re
from pathlib import Path

import pytest

from widemargin.kernels import NAMED_KERNELS
from widemargin.losses import CLASS_LOSSES

DOCS = Path(__file__).parents[2] / "docs"
NAMED = {"losses": CLASS_LOSSES, "kernels": NAMED_KERNELS}


@pytest.fixture(scope="module")
def tables():
    found = importlib.util.spec_from_file_location("_tables", DOCS / "_tables.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@pytest.mark.parametrize("what", NAMED)
def test_a_table_has_a_row_for_every_name(tables, what):
    head, rule, *rows = [cells(line) for line in tables.TABLES[what]().splitlines()]
    assert {len(row) for row in rows} == {len(head)} == {len(rule)}
    assert [row[0] for row in rows] == [f'`"{name}"`' for name in NAMED[what]]
    for row, kind in zip(rows, NAMED[what].values(), strict=True):
        assert row[1].startswith(f"`{kind.__name__}(")
        assert row[2].endswith(".")
        assert "``" not in row[2]


@pytest.mark.parametrize("kind", CLASS_LOSSES.values(), ids=list(CLASS_LOSSES))
def test_every_loss_has_a_title_a_formula_and_an_explanation(tables, kind):
    assert all(tables.described(kind))


def test_a_docstring_that_makes_no_row_is_refused(tables):
    class Odd:
        """No full stop"""

    with pytest.raises(ValueError, match="docstring of Odd must begin with a title"):
        tables.described(Odd)


def test_the_guide_has_every_table_once(tables):
    pages = {page: page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")}
    places = [name for text in pages.values() for name in tables.PLACE.findall(text)]
    assert sorted(places) == sorted(NAMED)
    for text in pages.values():
        assert not tables.PLACE.search(tables.filled(text))

"""What a row goes through before the machine gets it, as C: a loop for each operation.

It is of double precision throughout: what moves numbers far from zero would lose digits otherwise.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.export._c._text import Table, quoted, unsigned
from widemargin.preparation import (
    Categories,
    Clip,
    Fill,
    Normalise,
    Operation,
    Pick,
    PreparedMachine,
    Project,
    Scale,
)

Array: TypeAlias = npt.NDArray[Any]

_LARGEST = np.finfo(np.float64).max  # stands for infinity, which has no constant
_TESTS = {"copy": 0, "equals": 1, "missing": 2}

_NAN = """\
static inline double ${name}_nan(void)
{
    volatile double zero = 0;
    return zero / zero;
}

"""

# Newton's steps from above, until they end.
_ROOT = """\
static inline double ${name}_root(double value)
{
    double root = value < 1 ? 1 : value, lower = root;
    if (!(value > 0)) return value;
    do {
        root = lower;
        lower = (root + value / root) / 2;
    } while (lower < root);
    return root;
}

"""

_PREPARE = """\
/* What the steps of the pipeline do before the machine gets the row. */
static inline void ${name}_prepare(const $real x[], $real row[])
{
    double now[%(widest)d], next[%(widest)d];
    int column;
%(body)s\
    for (column = 0; column < ${macro}_N_COLUMNS; ++column)
        row[column] = ($real)now[column];
}

"""

_WORKER = """\
${linkage}void ${worker}(const $real x[], $wide sums[])
{
    $real row[${macro}_N_COLUMNS];
    ${name}_prepare(x, row);
    ${name}_machine(row, sums);
}

"""

_CATEGORY = """\
/* The number of a category for column `column` of a row: -1 for texts that are not known, NaN for
   NULL. */
${public}double ${name}_category(int column, const char *text)
{
    int number, at;
    if (!text) return ${name}_nan();
%(cases)s\
    return -1;
}

"""

_CASE = """\
    if (column == %(source)d)
        for (number = 0; number < %(count)d; ++number) {
            const char *const known = ${name}_texts_%(source)d[number];
            for (at = 0; known[at] && known[at] == text[at]; ++at) {}
            if (known[at] == text[at]) return number;
        }
"""


class Preparation:
    """The C of a preparation: tables, functions and what the opening comment says.

    Parameters
    ----------
    prepared : PreparedMachine
    dtype : {"float32", "float64"}
        Type of rows.
    """

    def __init__(self, prepared: PreparedMachine, dtype: str) -> None:
        self._prepared = prepared
        self._dtype = dtype
        self._tables: list[Table] = []
        self._texts = texts_by_source(prepared)
        for source, texts in self._texts.items():
            items = [quoted(text.encode()) for text in texts]
            n_bytes = sum(len(text.encode()) + 1 for text in texts)
            self._tables.append(Table(f"texts_{source}", "char *const", items, n_bytes))
        body = self._reading()
        for number, operation in enumerate(prepared.operations):
            body += self._operation(operation, f"step_{number}")
        self._body = body

    @property
    def n_features(self) -> int:
        """Numbers of a row that comes in."""
        return self._prepared.n_features

    @property
    def tables(self) -> list[Table]:
        """The tables that its functions read."""
        return self._tables

    @property
    def stack_bytes(self) -> int:
        """Bytes of the row on its way."""
        return 16 * self._widest + 8 * self._prepared.model.n_features

    @property
    def _widest(self) -> int:
        widths = [each.width_out for each in self._prepared.operations]
        return max(1, len(self._prepared.columns), *widths)

    def text(self, machine: str) -> str:
        """Return its functions around the one that computes the scores."""
        inner = machine.replace("${linkage}void ${worker}(", "static void ${name}_machine(")
        inner = inner.replace("${macro}_N_FEATURES", "${macro}_N_COLUMNS")
        prepare = _PREPARE % {"widest": self._widest, "body": self._body}
        if "next[" not in self._body:
            prepare = prepare.replace(f", next[{self._widest}]", "")
        needs_nan = "_nan()" in self._body or self._texts
        parts = [_NAN] if needs_nan else []
        parts += [_ROOT] if "_root(" in self._body else []
        return "".join([*parts, self._lookup(), prepare, inner, _WORKER])

    def prototypes(self, name: str) -> list[str]:
        """Return the declarations of what others may call."""
        if not self._texts:
            return []
        return [f"double {name}_category(int column, const char *text);"]

    def comment(self, name: str) -> list[str]:
        """Return what a caller has to know of the columns."""
        if not self._texts:
            return []
        lines = ["", f"Columns of text have numbers of categories, as {name}_category gives them:"]
        names = self._prepared.feature_names
        for source, texts in self._texts.items():
            called = "" if names is None else f" {_safe(names[source])}"
            known = [f"{number} {_safe(text)}" for number, text in enumerate(texts)]
            lines.append(f"  x[{source}]{called}: {', '.join(known)}")
        return lines

    def _lookup(self) -> str:
        if not self._texts:
            return ""
        cases = [
            _CASE % {"source": source, "count": len(texts)} for source, texts in self._texts.items()
        ]
        return _CATEGORY % {"cases": "".join(cases)}

    def _table(self, suffix: str, values: Any) -> str:
        """Add a table and return its name."""
        values = np.asarray(values)
        if values.dtype == np.float64:
            values = np.clip(values, -_LARGEST, _LARGEST)
        self._tables.append(Table.of(suffix, values))
        return f"${{name}}_{suffix}"

    def _reading(self) -> str:
        columns = self._prepared.columns
        sources = self._table("columns", unsigned([column.source for column in columns]))
        body = _loop(len(columns), f"now[column] = x[{sources}[column]];")
        for place, column in enumerate(columns):
            if column.categories is not None:
                texts = self._texts.get(column.source)
                body += self._codes(place, column.categories, texts)
        return body

    def _codes(self, place: int, categories: Categories, texts: list[str] | None) -> str:
        """Return the statement that makes a code of the number of a category, or of a number."""
        unknown = _constant(categories.code_of_unknown)
        missing = _constant(categories.code_of_missing)
        suffix = f"codes_{place}"
        if texts is not None:
            codes = [categories._table.get(text, categories.code_of_unknown) for text in texts]
            is_known = f"now[{place}] >= 0 && now[{place}] < {len(texts)}"
            if any(np.isnan(code) for code in codes):
                return self._searched(place, list(range(len(texts))), codes, missing, unknown)
            table = self._table(suffix, np.array(codes, dtype=np.float64))
            found = f"{is_known} ? {table}[(int)now[{place}]]\n        : {unknown}"
            return (
                f"    if (now[{place}] != now[{place}]) now[{place}] = {missing};\n"
                f"    else now[{place}] = {found};\n"
            )
        pairs = zip(categories.values, categories.codes.tolist(), strict=True)
        known = [(value, code) for value, code in pairs if value is not None]
        values = np.array([value for value, _ in known]).astype(self._dtype)
        codes = [code for _, code in known]
        return self._searched(place, values, codes, missing, unknown)

    def _searched(
        self, place: int, values: Any, codes: list[float], missing: str, unknown: str
    ) -> str:
        """Return statements that look for a number among others. NaN is a code of its own."""
        is_nan = np.isnan(np.array(codes, dtype=np.float64))
        known = self._table(f"values_{place}", np.array(values, dtype=np.float64)[~is_nan])
        table = self._table(f"codes_{place}", np.array(codes, dtype=np.float64)[~is_nan])
        nans = np.array(values, dtype=np.float64)[is_nan].tolist()
        to_nan = "".join(f" else if (value == {value!r}) code = ${{name}}_nan();" for value in nans)
        return (
            f"    {{\n        const double value = now[{place}];\n"
            f"        double code = {unknown};\n"
            f"        if (value != value) code = {missing};{to_nan}\n"
            f"        for (column = 0; column < {int((~is_nan).sum())}; ++column)\n"
            f"            if (value == {known}[column]) code = {table}[column];\n"
            f"        now[{place}] = code;\n    }}\n"
        )

    def _operation(self, operation: Operation, suffix: str) -> str:
        if isinstance(operation, Pick):
            return self._pick(operation, suffix)
        if isinstance(operation, Fill):
            return self._fill(operation, suffix)
        if isinstance(operation, Clip):
            low = self._table(f"{suffix}_low", operation.low)
            high = self._table(f"{suffix}_high", operation.high)
            return _loop(
                operation.width,
                f"if (now[column] < {low}[column]) now[column] = {low}[column];",
                f"if (now[column] > {high}[column]) now[column] = {high}[column];",
            )
        if isinstance(operation, Scale):
            centre = self._table(f"{suffix}_centre", operation.centre)
            factor = self._table(f"{suffix}_factor", operation.factor)
            return _loop(
                operation.width,
                f"now[column] = (now[column] - {centre}[column]) * {factor}[column];",
            )
        if isinstance(operation, Normalise):
            return _normalised(operation)
        return self._mapped(operation, suffix)

    def _pick(self, pick: Pick, suffix: str) -> str:
        columns = self._table(f"{suffix}_columns", unsigned(pick.columns))
        lines = [f"next[column] = now[{columns}[column]];"]
        if not pick.only_copies:
            tests = np.array([_TESTS[test] for test in pick.tests], dtype=np.uint8)
            kinds = self._table(f"{suffix}_tests", tests)
            values = self._table(f"{suffix}_values", pick.values)
            lines += [
                f"if ({kinds}[column] == 1)",
                f"    next[column] = (next[column] == {values}[column])"
                " + (next[column] - next[column]);",
                f"if ({kinds}[column] == 2) next[column] = next[column] != next[column];",
            ]
        return _loop(pick.width_out, *lines) + _copied(pick.width_out)

    def _fill(self, fill: Fill, suffix: str) -> str:
        places = np.flatnonzero(~np.isnan(fill.values))
        columns = self._table(f"{suffix}_columns", unsigned(places))
        values = self._table(f"{suffix}_values", fill.values[places])
        here = f"now[{columns}[column]]"
        missing = f"{here} != {here}"
        if not np.isnan(fill.missing):
            missing = f"{here} == {fill.missing!r}"
        return _loop(len(places), f"if ({missing}) {here} = {values}[column];")

    def _mapped(self, project: Project, suffix: str) -> str:
        """Return loops that map columns; those after them are moved to their new places."""
        n_mapped = project.matrix.shape[1]
        centre = self._table(f"{suffix}_centre", project.centre)
        shift = self._table(f"{suffix}_shift", project.shift)
        matrix = self._table(f"{suffix}_matrix", np.ascontiguousarray(project.matrix.T))
        first, last = project.first, project.first + project.count
        body = _loop(first, "next[column] = now[column];") if first else ""
        body += _loop(
            n_mapped,
            "int from;",
            f"double sum = {shift}[column];",
            f"for (from = 0; from < {project.count}; ++from)",
            f"    sum += (now[{first} + from] - {centre}[from])",
            f"        * {matrix}[{project.count}L * column + from];",
            f"next[{first} + column] = sum;",
        )
        if last < project.width:
            rest = f"next[{first + n_mapped} + column] = now[{last} + column];"
            body += _loop(project.width - last, rest)
        return body + _copied(project.width_out)


def _normalised(operation: Normalise) -> str:
    here = f"now[{operation.first} + column]" if operation.first else "now[column]"
    size = f"{here} < 0 ? -{here} : {here}"
    add = {
        "l1": f"norm += {size};",
        "l2": f"norm += {here} * {here};",
        "max": f"if (norm < ({size})) norm = {size};",
    }[operation.norm]
    root = "    norm = ${name}_root(norm);\n" if operation.norm == "l2" else ""
    inner = _loop(operation.count, add) + root
    divide = f"{_loop(operation.count, f'{here} /= norm;')}"
    body = f"    double norm = 0;\n{inner}    if (norm > 0 || norm != norm)\n{divide}"
    return "    {\n" + "".join(f"    {line}\n" for line in body.splitlines()) + "    }\n"


def texts_by_source(prepared: PreparedMachine) -> dict[int, list[str]]:
    """Return all texts that are known of a column, in the order of its tables."""
    found: dict[int, list[str]] = {}
    for column in prepared.columns:
        if column.categories is not None and column.categories.are_texts:
            texts = found.setdefault(column.source, [])
            values = [str(value) for value in column.categories.values if value is not None]
            texts += [value for value in values if value not in texts]
    return dict(sorted(found.items()))


def _loop(count: int, *lines: str) -> str:
    head = f"    for (column = 0; column < {count}; ++column)"
    if len(lines) == 1:
        return f"{head}\n        {lines[0]}\n"
    inner = "".join(f"        {line}\n" for line in lines)
    return f"{head} {{\n{inner}    }}\n"


def _copied(count: int) -> str:
    return _loop(count, "now[column] = next[column];")


def _constant(value: float) -> str:
    return "${name}_nan()" if np.isnan(value) else repr(float(value))


def _safe(text: str) -> str:
    """Return a text as it may stand in a comment."""
    return quoted(text.encode()).replace("/", "\\057")

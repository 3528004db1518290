"""The C text around an exported machine: one row in, one answer out, at fixed places."""

from __future__ import annotations

from string import Template

from widemargin.export._c._text import c_type
from widemargin.readouts import Readout

NAME = "machine"  # what the names of the included C file begin with

_OPENING = """\
#define MACHINE_NO_MATH_H
#include "${name}.h"

#define EXPORT(function) __attribute__((export_name(#function)))

static $real row[MACHINE_N_FEATURES];
static $real answer[$n_answers];

EXPORT(input) $real *input(void) { return row; }
EXPORT(output) $real *output(void) { return answer; }
EXPORT(scores) void scores(void) { ${name}_scores(row, answer); }
"""

_PREDICT_CLASS = "EXPORT(predict) int predict(void) { return ${name}_predict(row); }\n"

_PREDICT_LABELS = """\
EXPORT(predict) void predict(void)
{
    unsigned char labels[MACHINE_N_CLASSES];
    int label;
    ${name}_predict(row, labels);
    for (label = 0; label < MACHINE_N_CLASSES; ++label)
        answer[label] = labels[label];
}
"""

_PROBABILITIES = (
    "EXPORT(probabilities) void probabilities(void) { ${name}_probabilities(row, answer); }\n"
)


def wrapper_text(readout: Readout | None, dtype: str) -> str:
    """Return the C file that includes the machine and exports what it can do."""
    text = _OPENING
    n_answers = "MACHINE_N_OUTPUTS"
    if readout is not None:
        text += _PREDICT_LABELS if readout.tells_labels else _PREDICT_CLASS
        # Two classes have one score, and two probabilities.
        n_answers = "MACHINE_N_CLASSES"
        if readout.link is not None:
            text += _PROBABILITIES
    return Template(text).substitute(name=NAME, real=c_type(dtype), n_answers=n_answers)

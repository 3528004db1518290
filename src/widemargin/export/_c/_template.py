"""The functions of a C file: scores, labels and probabilities."""

from __future__ import annotations

from math import factorial
from string import Template
from textwrap import wrap

from widemargin.export._c._layout import Layout
from widemargin.export._c._preparation import Preparation
from widemargin.export._c._sums import sums_text
from widemargin.export._c._text import c_type, literal
from widemargin.kernels import RBF, AdaptiveRBF, ChiSquare, Laplacian, Polynomial, Sigmoid
from widemargin.readouts import Readout

# The largest argument is 0: kernels fall with the distance, probabilities are taken relative to the
# largest, and the hyperbolic tangent is odd. 2^-n is a product of 2^-1, 2^-2, 2^-4, ..., each
# exact.
_EXP = """\
/* The exponential of a number that is not positive. */
static inline $wide ${name}_exp($wide value)
{
#ifdef ${macro}_NO_MATH_H
    $wide rest, power = $half, result;
    int halvings;
    if (!(value >= $lowest)) return value < 0 ? 0 : value;
    halvings = (int)($half - value * $per_halving);
    rest = (value + ($wide)halvings * $log2_high) + ($wide)halvings * $log2_low;
    result = $series;
    for (; halvings; halvings >>= 1) {
        if (halvings & 1) result *= power;
        power *= power;
    }
    return result;
#else
    return $library_exp(value);
#endif
}

"""

_POWER = """\
static inline $wide ${name}_power($wide base)
{
    $wide result = 1;
    int degree = $degree;
    for (;;) {
        if (degree & 1) result *= base;
        degree >>= 1;
        if (!degree) return result;
        base *= base;
    }
}

"""

# Near 0, where 1 - exp(-2v) would lose digits, the continued fraction
# v / (1 + v^2 / (3 + v^2 / (5 + ...))).
_TANH = """\
static inline $wide ${name}_tanh($wide value)
{
    const $wide size = value < 0 ? -value : value;
    $wide result;
    if (size < $half) {
        const $wide square = value * value;
        $wide divisor = $deepest;
        int odd;
        for (odd = $deepest - 2; odd > 0; odd -= 2)
            divisor = ($wide)odd + square / divisor;
        return value / divisor;
    }
    result = ${name}_exp(-2 * size);
    result = (1 - result) / (1 + result);
    return value < 0 ? -result : result;
}

"""

_LOGISTIC = """\
static inline $wide ${name}_logistic($wide score)
{
    const $wide tail = ${name}_exp(score < 0 ? score : -score);
    return (score < 0 ? tail : 1) / (1 + tail);
}

"""

_SCORES_FROM_SUMS = """\
${public}void ${name}_scores(const $real x[], $real scores[])
{
    $wide sums[${macro}_N_OUTPUTS];
    int output;
    ${name}_sums(x, sums);
    for (output = 0; output < ${macro}_N_OUTPUTS; ++output)
        scores[output] = ($real)sums[output];
}

"""

_PREDICT = {
    "multiclass": """\
${public}int ${name}_predict(const $real x[])
{
    $wide sums[${macro}_N_OUTPUTS];
    int output, best = 0;
    ${worker}(x, sums);
    for (output = 1; output < ${macro}_N_OUTPUTS; ++output)
        if (sums[output] > sums[best]) best = output;
    return best;
}

""",
    "binary": """\
${public}int ${name}_predict(const $real x[])
{
    $wide sums[1];
    ${worker}(x, sums);
    return sums[0] > 0;
}

""",
    "multilabel": """\
${public}void ${name}_predict(const $real x[], unsigned char labels[])
{
    $wide sums[${macro}_N_OUTPUTS];
    int output;
    ${worker}(x, sums);
    for (output = 0; output < ${macro}_N_OUTPUTS; ++output)
        labels[output] = sums[output] > $threshold;
}

""",
    "two_step": """\
${public}void ${name}_predict(const $real x[], unsigned char labels[])
{
    $wide sums[2];
    int both;
    ${worker}(x, sums);
    both = sums[0] > ${name}_thresholds[0] && sums[0] < ${name}_thresholds[1];
    labels[0] = both || sums[1] > 0;
    labels[1] = both || !(sums[1] > 0);
}

""",
}

_PROBABILITIES = {
    "binary": """\
${public}void ${name}_probabilities(const $real x[], $real p[])
{
    $wide sums[1];
    ${worker}(x, sums);
    p[0] = ${to_real}${name}_logistic(-sums[0]);
    p[1] = ${to_real}${name}_logistic(sums[0]);
}

""",
    "multilabel": """\
${public}void ${name}_probabilities(const $real x[], $real p[])
{
    $wide sums[${macro}_N_OUTPUTS];
    int output;
    ${worker}(x, sums);
    for (output = 0; output < ${macro}_N_OUTPUTS; ++output)
        p[output] = ${to_real}${name}_logistic(sums[output]);
}

""",
    # Relative to the largest, so that not all vanish where every score is far below zero.
    "multiclass": """\
${public}void ${name}_probabilities(const $real x[], $real p[])
{
    $wide sums[${macro}_N_OUTPUTS], total = 0, top;
    int output;
    ${worker}(x, sums);
    top = sums[0];
    for (output = 1; output < ${macro}_N_OUTPUTS; ++output)
        if (sums[output] > top) top = sums[output];
$adjust\
    for (output = 0; output < ${macro}_N_OUTPUTS; ++output) {
        const $wide score = sums[output];
        sums[output] = $odds;
        total += sums[output];
    }
    for (output = 0; output < ${macro}_N_OUTPUTS; ++output)
        p[output] = ${to_real}(sums[output] / total);
}

""",
}


def needs_exp(layout: Layout, readout: Readout | None) -> bool:
    """Whether the code calls the exponential."""
    by_exp = isinstance(layout.kernel, (RBF, AdaptiveRBF, Laplacian, ChiSquare, Sigmoid))
    return (by_exp and layout.n_entries > 0) or (readout is not None and readout.link is not None)


def code(
    name: str,
    layout: Layout,
    readout: Readout | None,
    dtype: str,
    header: bool,
    before: Preparation | None = None,
) -> str:
    """Return the functions, without their tables.

    Parameters
    ----------
    name : str
        What all names begin with; macros with the same in capitals.
    layout : Layout
    readout : Readout or None
        Without one there are scores and nothing else.
    dtype : {"float32", "float64"}
        Type of rows and scores.
    header : bool
        Whether every function belongs to the file that includes it.
    before : Preparation or None
        What is done to a row before the machine gets it.
    """
    same = layout.sums == dtype
    public = "static inline " if header else ""
    words = {
        "name": name,
        "macro": name.upper(),
        "real": c_type(dtype),
        "wide": c_type(layout.sums),
        "public": public,
        "linkage": public if same or header else "static ",
        "worker": f"{name}_scores" if same else f"{name}_sums",
        "to_real": "" if same else f"({c_type(dtype)})",
        "to_wide": "" if same else f"({c_type(layout.sums)})",
    }
    kernel = layout.kernel
    parts = [_exp_text(layout)] if needs_exp(layout, readout) else []
    if isinstance(kernel, Polynomial) and layout.n_entries:
        parts.append(_POWER)
        words["degree"] = str(kernel.degree)
    if isinstance(kernel, Sigmoid) and layout.n_entries:
        parts.append(_TANH)
        words["half"] = literal(0.5, layout.sums)
        words["deepest"] = "9" if layout.sums == "float32" else "15"
    sums = sums_text(layout)
    parts.append(sums if before is None else before.text(sums))
    if not same:
        parts.append(_SCORES_FROM_SUMS)
    if readout is not None:
        parts += _readout_texts(readout)
    return Template("".join(parts)).substitute(words).rstrip() + "\n"


def prototypes(name: str, readout: Readout | None, dtype: str) -> list[str]:
    """Return the declarations of the functions that others call."""
    real = c_type(dtype)
    lines = [f"void {name}_scores(const {real} x[], {real} scores[]);"]
    if readout is not None and readout.tells_labels:
        lines.append(f"void {name}_predict(const {real} x[], unsigned char labels[]);")
    elif readout is not None:
        lines.append(f"int {name}_predict(const {real} x[]);")
    if readout is not None and readout.link is not None:
        lines.append(f"void {name}_probabilities(const {real} x[], {real} p[]);")
    return lines


def _exp_text(layout: Layout) -> str:
    single = layout.sums == "float32"
    # Beyond ``lowest`` the result is no normal number any more, and as good as zero.
    lowest, high, low, n_terms = (
        (-87.0, 0.693145751953125, 1.4286068203094172e-06, 7)
        if single
        else (-708.0, 6.93147180369123816490e-01, 1.90821492927058770002e-10, 13)
    )
    series = literal(1 / factorial(n_terms), layout.sums)
    for term in range(n_terms - 1, -1, -1):
        sum_ = f"{literal(1 / factorial(term), layout.sums)} + rest * "
        series = sum_ + (f"({series})" if term < n_terms - 1 else series)
    numbers = {
        "lowest": lowest,
        "half": 0.5,
        "per_halving": 1.4426950408889634,
        "log2_high": high,
        "log2_low": low,
    }
    words = {word: literal(value, layout.sums) for word, value in numbers.items()}
    words["series"] = "\n        ".join(wrap(series, 88, break_on_hyphens=False))
    words["library_exp"] = "expf" if single else "exp"
    return Template(_EXP).safe_substitute(words)


def _readout_texts(readout: Readout) -> list[str]:
    threshold = "0" if readout.thresholds is None else "${name}_thresholds[output]"
    texts = [Template(_PREDICT[readout.kind]).safe_substitute(threshold=threshold)]
    if readout.link is None:
        return texts
    if readout.kind != "multiclass":
        return [_LOGISTIC, *texts, _PROBABILITIES[readout.kind]]
    words = {"adjust": "", "odds": "${name}_exp(score - top)"}
    if readout.link == "one_against_rest":
        words["adjust"] = "    if (top > 0) top = 0;\n"
        words["odds"] = (
            "${name}_exp((score < 0 ? score : 0) - top)\n"
            "                       / (1 + ${name}_exp(score < 0 ? score : -score))"
        )
    return [*texts, Template(_PROBABILITIES["multiclass"]).safe_substitute(words)]

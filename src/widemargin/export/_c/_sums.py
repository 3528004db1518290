"""The loops of a C file: how a row becomes scores.

One basis vector is taken at a time: its kernel value, then its share of every score. So the only
memory is one array of sums, and the row as mapped where the kernel maps it.
"""

from __future__ import annotations

from string import Template

from widemargin.export._c._layout import Layout, Part
from widemargin.export._c._precision import (
    WithOneWidth,
    feature_weights,
    gap_scale,
    takes_gaps,
    width_after,
)
from widemargin.export._c._text import c_type, literal
from widemargin.kernels import RBF, AdaptiveRBF, ChiSquare, Laplacian, Polynomial, Sigmoid

# Of an entry of the row and one of a vector; the quotient first, as the square may overflow.
_CHI_SQUARE = """(here + there > 0
                ? (here - there) * ((here - there) / (here + there)) : 0)"""

_SUMS = """\
${linkage}void ${worker}(const $real x[], $wide sums[])
{
$locals\
    int output;
    for (output = 0; output < ${macro}_N_OUTPUTS; ++output)
        sums[output] = $start;
$body\
$finish\
$linear\
}

"""


_SUM_OF_PARTS = """\
${linkage}void ${worker}(const $real x[], $wide sums[])
{
    int output;
    for (output = 0; output < ${macro}_N_OUTPUTS; ++output)
        sums[output] = 0;
$parts\
}

"""


def sums_text(layout: Layout, dtype: str) -> str:
    """Return the function that computes the scores, with names left open as in the template."""
    if layout.parts:
        parts = (_part(number, part, dtype) for number, part in enumerate(layout.parts))
        return Template(_SUM_OF_PARTS).safe_substitute(parts="".join(parts))
    words = {
        "start": "0" if layout.quantized else "${name}_intercept[output]",
        "locals": "",
        "body": "    (void)x;\n",
        "finish": "",
        "linear": "",
    }
    if layout.quantized:
        words["finish"] = (
            "    for (output = 0; output < ${macro}_N_OUTPUTS; ++output)\n"
            "        sums[output] = sums[output] * ${name}_coef_scale[output]\n"
            "            + ${name}_intercept[output];\n"
        )
    if layout.n_entries:
        is_linear = layout.form == "linear"
        words["locals"], words["body"] = _linear(layout) if is_linear else _expansion(layout)
    if layout.has_linear_part:
        more, words["linear"] = _linear_part(layout)
        words["locals"] += more
    return Template(_SUMS).safe_substitute(words)


def worker_of(layout: Layout, dtype: str) -> str:
    """Return how the function ends that computes scores in the precision of sums."""
    return "scores" if layout.sums == dtype else "sums"


def _part(number: int, part: Part, dtype: str) -> str:
    """Return what adds the scores of one part, which are computed as those of a machine are."""
    row, picked = f"x + {part.first}" if part.first else "x", ""
    if part.first is None:
        count, row = len(part.columns), "row"
        picked = (
            f"        $real row[{count}];\n        {_counter(count)} column;\n"
            f"        for (column = 0; column < {count}; ++column)\n"
            f"            row[column] = x[${{name}}_columns{number}[column]];\n"
        )
    worker = f"${{name}}_part{number}_{worker_of(part.layout, dtype)}"
    return (
        f"    {{\n        {c_type(part.layout.sums)} part[${{macro}}_N_OUTPUTS];\n{picked}"
        f"        {worker}({row}, part);\n"
        "        for (output = 0; output < ${macro}_N_OUTPUTS; ++output)\n"
        "            sums[output] += part[output];\n    }\n"
    )


def _counter(count: int) -> str:
    return "int" if count < 1 << 15 else "long"  # int may be of 16 bits


def _linear(layout: Layout) -> tuple[str, str]:
    coef = "(${wide})*coef++" if layout.quantized else "*coef++"
    place = "${name}_features[entry]" if layout.skips_features else "entry"
    variables = (
        f"    const {layout.item_type('coef')} *coef = ${{name}}_coef;\n"
        f"    {_counter(layout.n_entries)} entry;\n"
    )
    body = (
        f"    for (entry = 0; entry < {layout.n_entries}; ++entry)"
        f" {{\n        const $wide value = x[{place}];\n"
        "        for (output = 0; output < ${macro}_N_OUTPUTS; ++output)\n"
        f"            sums[output] += value * {coef};\n    }}\n"
    )
    return variables, body


def _linear_part(layout: Layout) -> tuple[str, str]:
    """Return variables, and the loop that adds what features count by themselves."""
    value, entry = "x[column]", "*linear++"
    if layout.quantized:
        value = "${to_wide}x[column] * ${name}_linear_scale[column]"
        entry = f"(${{wide}}){entry}"
    variables = (
        f"    const {layout.item_type('linear')} *linear = ${{name}}_linear;\n"
        f"    {_counter(layout.model.n_features)} column;\n"
    )
    loop = (
        "    for (column = 0; column < ${macro}_N_FEATURES; ++column) {\n"
        f"        const $wide value = {value};\n"
        "        for (output = 0; output < ${macro}_N_OUTPUTS; ++output)\n"
        f"            sums[output] += value * {entry};\n    }}\n"
    )
    return variables, loop


def _expansion(layout: Layout) -> tuple[str, str]:
    coef = "(${wide})*coef++" if layout.quantized else "*coef++"
    variables = (
        f"    const {layout.item_type('coef')} *coef = ${{name}}_coef;\n"
        f"    {_counter(layout.n_entries)} vector;\n"
    )
    before = ""
    if layout.form == "precomputed":
        similarity = "        const $wide kernel = x[${name}_rows[vector]];\n"
    elif layout.form == "dense":
        variables += (
            f"    const {layout.item_type('basis')} *basis = ${{name}}_basis;\n"
            f"    {_counter(layout.model.n_features)} feature;\n"
        )
        if layout.n_mapped:
            more, before = _mapping(layout)
            variables += more
        similarity = _dense_similarity(layout)
    else:
        more, before, similarity = _sparse_similarity(layout)
        variables += more
    body = (
        f"{before}    for (vector = 0; vector < ${{macro}}_N_VECTORS; ++vector) {{\n{similarity}"
        "        for (output = 0; output < ${macro}_N_OUTPUTS; ++output)\n"
        f"            sums[output] += kernel * {coef};\n    }}\n"
    )
    return variables, body


def _mapping(layout: Layout) -> tuple[str, str]:
    """Return variables, and the loop that maps the row."""
    count = layout.n_mapped
    variables = (
        f"    const {layout.item_type('map')} *map = ${{name}}_map;\n"
        f"    $wide mapped[{count}];\n    {_counter(count)} place;\n"
    )
    loop = (
        f"    for (place = 0; place < {count}; ++place)\n        mapped[place] = 0;\n"
        "    for (feature = 0; feature < ${macro}_N_FEATURES; ++feature) {\n"
        "        const $wide moved = ${to_wide}x[feature] - ${name}_origin[feature];\n"
        f"        for (place = 0; place < {count}; ++place)\n"
        "            mapped[place] += moved * *map++;\n    }\n"
    )
    return variables, loop


def _dense_similarity(layout: Layout) -> str:
    feature, here, count = "feature", "${to_wide}x[feature]", "${macro}_N_FEATURES"
    if layout.n_mapped:
        feature, here, count = "place", "mapped[place]", str(layout.n_mapped)
    entry = "*basis++"
    if layout.quantized:
        entry = f"${{name}}_scale[{feature}] * (${{wide}})*basis++"
    kernel = layout.kernel
    if isinstance(kernel, (Polynomial, Sigmoid)):
        if layout.quantized:
            entry = f"(${{name}}_offset[{feature}] + {entry})"
        terms = f"            sum += {here}\n                * {entry};\n"
    elif isinstance(kernel, ChiSquare):
        if layout.quantized:
            entry = f"${{name}}_offset[{feature}]\n                + {entry}"
        # Rounding may leave a zero of the tables just below zero.
        clip = "            if (there < 0) there = 0;\n" if layout.quantized else ""
        terms = (
            f"            const $wide here = {here};\n            $wide there = {entry};\n{clip}"
            f"            sum += {_scaled(layout)}{_CHI_SQUARE};\n"
        )
    else:
        shift = f"${{name}}_offset[{feature}]\n                - " if layout.quantized else ""
        gap = f"{here} - {shift}{entry}"
        if feature_weights(kernel) is not None:
            gap = f"({gap})\n                * ${{name}}_weights[{feature}]"
        elif gap_scale(kernel) != 1:
            gap = f"({gap})\n                * {literal(gap_scale(kernel), layout.sums)}"
        square = "gap < 0 ? -gap : gap" if isinstance(kernel, Laplacian) else "gap * gap"
        terms = f"            const $wide gap = {gap};\n            sum += {square};\n"
    return (
        "        $wide sum = 0, kernel;\n"
        f"        for ({feature} = 0; {feature} < {count}; ++{feature}) {{\n"
        f"{terms}        }}\n        kernel = {_value_of_sum(layout)};\n"
    )


def _sparse_similarity(layout: Layout) -> tuple[str, str, str]:
    """Return variables, what all vectors have in common, and the kernel value of one.

    A row meets only the entries that are there; what it would have with zeros is summed once.
    """
    kernel = layout.kernel
    there = "${name}_basis[entry]"
    if layout.quantized:
        there = f"{literal(layout.basis_scale, layout.sums)} * (${{wide}}){there}"
    if takes_gaps(layout.model):
        return _sparse_gaps(layout, there)
    common, each, scale = "", "here * there", _scaled(layout)
    if isinstance(kernel, Laplacian):
        common = "here < 0 ? -here : here"
        each = "(here < there ? there - here : here - there) - (here < 0 ? -here : here)"
    elif isinstance(kernel, ChiSquare):
        common = "here"
        each = f"{_CHI_SQUARE} - here"
    elif isinstance(kernel, RBF):
        common = "here * here"
        each = "there * (there - 2 * here)"
    # Rounding may leave a distance just below zero, of which the exponential is not for us.
    clip = "        if (sum < 0) sum = 0;\n" if common else ""
    variables, before = "    uint32_t entry;\n", ""
    if common:
        variables += f"    {_counter(layout.model.n_features)} feature;\n    $wide alone = 0;\n"
        before = (
            "    for (feature = 0; feature < ${macro}_N_FEATURES; ++feature) {\n"
            f"        const $wide here = {scale}${{to_wide}}x[feature];\n"
            f"        alone += {common};\n    }}\n"
        )
    similarity = (
        f"        $wide sum = {'alone' if common else '0'}, kernel;\n"
        "        for (entry = ${name}_starts[vector];\n"
        "             entry < ${name}_starts[vector + 1]; ++entry) {\n"
        f"            const $wide here = {scale}x[${{name}}_features[entry]];\n"
        f"            const $wide there = {scale}{there};\n"
        f"            sum += {each};\n        }}\n{clip}"
        f"        kernel = {_value_of_sum(layout)};\n"
    )
    return variables, before, similarity


def _scaled(layout: Layout) -> str:
    """Return what scales gaps before they are summed, as a factor; nothing where it is 1."""
    scale = gap_scale(layout.kernel)
    return "" if scale == 1 else f"{literal(scale, layout.sums)} * "


def _sparse_gaps(layout: Layout, there: str) -> tuple[str, str, str]:
    """Return variables and the kernel value of one vector, by its gap from the row everywhere."""
    variables = f"    uint32_t entry;\n    {_counter(layout.model.n_features)} feature;\n"
    size = "gap < 0 ? -gap : gap" if isinstance(layout.kernel, Laplacian) else "gap * gap"
    entries, meeting = "$wide gap = x[feature]", f"gap -= {there}"
    term = f"            sum += {size};\n"
    if isinstance(layout.kernel, ChiSquare):
        entries, meeting = "$wide here = x[feature], there = 0", f"there = {there}"
        term = f"            sum += {_scaled(layout)}{_CHI_SQUARE};\n"
    elif gap_scale(layout.kernel) != 1:
        term = f"            gap *= {literal(gap_scale(layout.kernel), layout.sums)};\n{term}"
    similarity = (
        "        $wide sum = 0, kernel;\n"
        "        entry = ${name}_starts[vector];\n"
        "        for (feature = 0; feature < ${macro}_N_FEATURES; ++feature) {\n"
        f"            {entries};\n"
        "            if (entry < ${name}_starts[vector + 1]\n"
        "                    && ${name}_features[entry] == (uint32_t)feature) {\n"
        f"                {meeting};\n"
        "                ++entry;\n            }\n"
        f"{term}        }}\n"
        f"        kernel = {_value_of_sum(layout)};\n"
    )
    return variables, "", similarity


def _value_of_sum(layout: Layout) -> str:
    kernel = layout.kernel
    if isinstance(kernel, (Polynomial, Sigmoid)):
        function = "power" if isinstance(kernel, Polynomial) else "tanh"
        constant = literal(kernel.coef0, layout.sums)
        return f"${{name}}_{function}({literal(kernel.gamma, layout.sums)} * sum + {constant})"
    if isinstance(kernel, AdaptiveRBF):
        return "${name}_exp(-${name}_widths[vector] * sum)"
    assert isinstance(kernel, WithOneWidth)
    return f"${{name}}_exp({literal(-width_after(kernel), layout.sums)} * sum)"

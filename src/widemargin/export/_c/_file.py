"""A C file from top to bottom: opening comment, declarations, tables, code."""

from __future__ import annotations

import re

from widemargin.export._c._fidelity import ExportLoss
from widemargin.export._c._layout import Layout
from widemargin.export._c._mapped import MappedExpansion
from widemargin.export._c._precision import feature_weights
from widemargin.export._c._preparation import Preparation
from widemargin.export._c._template import code, needs_exp, prototypes
from widemargin.export._c._text import Table, c_type
from widemargin.kernels import RBF, AdaptiveRBF, ChiSquare, Laplacian, Polynomial, Sigmoid
from widemargin.models import KernelExpansion
from widemargin.readouts import Readout


def file_text(
    name: str,
    layout: Layout,
    readout: Readout | None,
    dtype: str,
    *,
    header: bool,
    classes: Table | None,
    loss: ExportLoss | None,
    before: Preparation | None = None,
) -> str:
    """Return the text of the file; the same for the same model.

    Parameters
    ----------
    name : str
        What all names begin with.
    layout : Layout
    readout : Readout or None
    dtype : {"float32", "float64"}
        Type of rows and scores.
    header : bool
        Whether the file is to be included, and all in it static.
    classes : Table or None
        Class labels.
    loss : ExportLoss or None
        To be told in the opening comment.
    before : Preparation or None
        What is done to a row before the machine gets it.
    """
    guard = f"{name.upper()}_H_INCLUDED"
    parts = [_opening(name, layout, readout, dtype, classes, loss, before)]
    if header:
        parts.append(f"#ifndef {guard}\n#define {guard}\n\n")
    parts += [_includes(name, layout, readout, before), _sizes(name, layout, readout, before)]
    if not header:
        parts.append(_declarations(name, readout, dtype, classes, before))
    used = layout.tables if layout.n_entries else _tables_of_constants(layout)
    used = [*used, *_tables_of_readout(layout, readout)]
    used += [] if before is None else before.tables
    parts += [table.declare(name) + "\n" for table in used]
    if classes is not None:
        parts.append(classes.declare(name, "static const " if header else "const ") + "\n")
    parts.append(code(name, layout, readout, dtype, header, before))
    if header:
        parts.append("\n#endif\n")
    return "".join(parts)


def _tables_of_constants(layout: Layout) -> list[Table]:
    """Return the tables that a model without vectors reads."""
    return [table for table in layout.tables if table.suffix in ("intercept", "coef_scale")]


def _tables_of_readout(layout: Layout, readout: Readout | None) -> list[Table]:
    """Return the thresholds of the labels, where they have any but zero."""
    if readout is None or readout.thresholds is None:
        return []
    return [Table.of("thresholds", readout.label_thresholds(layout.sums))]


def _includes(
    name: str, layout: Layout, readout: Readout | None, before: Preparation | None
) -> str:
    text = ""
    tables = [*layout.tables, *([] if before is None else before.tables)]
    if any(table.item_type.endswith("_t") for table in tables):
        text += "#include <stdint.h>\n"
    if needs_exp(layout, readout):
        text += f"#ifndef {name.upper()}_NO_MATH_H\n#include <math.h>\n#endif\n"
    return text + ("\n" if text else "")


def _sizes(name: str, layout: Layout, readout: Readout | None, before: Preparation | None) -> str:
    sizes = {"N_FEATURES": layout.model.n_features, "N_OUTPUTS": layout.model.n_outputs}
    if before is not None:
        sizes |= {"N_FEATURES": before.n_features, "N_COLUMNS": layout.model.n_features}
    if readout is not None:
        sizes["N_CLASSES"] = len(readout.classes)
    sizes["N_VECTORS"] = 0 if layout.form == "linear" else layout.n_entries
    lines = [f"#define {name.upper()}_{word} {size}\n" for word, size in sizes.items()]
    return "".join(lines) + "\n"


def _declarations(
    name: str,
    readout: Readout | None,
    dtype: str,
    classes: Table | None,
    before: Preparation | None,
) -> str:
    lines = prototypes(name, readout, dtype)
    lines += [] if before is None else before.prototypes(name)
    if classes is not None:
        n_classes = f"{name.upper()}_N_CLASSES"
        lines.append(f"extern const {classes.item_type} {name}_classes[{n_classes}];")
    inner = "\n".join(lines)
    return f'#ifdef __cplusplus\nextern "C" {{\n#endif\n{inner}\n#ifdef __cplusplus\n}}\n#endif\n\n'


def _opening(
    name: str,
    layout: Layout,
    readout: Readout | None,
    dtype: str,
    classes: Table | None,
    loss: ExportLoss | None,
    before: Preparation | None,
) -> str:
    from widemargin import __version__

    tables = [*layout.tables, *([] if classes is None else [classes])]
    tables += _tables_of_readout(layout, readout)
    tables += [] if before is None else before.tables
    n_bytes = sum(table.n_bytes for table in tables)
    lines = [
        f"{name}: a machine that widemargin {__version__} wrote. Export it again rather than edit.",
        "",
        *_model_lines(layout),
        *_precision_lines(layout, dtype),
        *([] if loss is None else _loss_lines(loss)),
        f"Memory: {n_bytes} bytes of constant tables; no allocation, and nothing that changes, so",
        f"that any number of threads may call. Stack: {_stack_bytes(layout, before)} bytes of "
        f"{'sums and the mapped row' if layout.n_mapped else 'sums and a few numbers'}.",
        "",
        *_call_lines(name, readout, dtype),
        *([] if before is None else before.comment(name)),
    ]
    if needs_exp(layout, readout):
        lines.append(f"With -D{name.upper()}_NO_MATH_H it brings its own exponential.")
    body = "\n   ".join(lines)
    return "/* " + re.sub(r"[ ]+\n", "\n", body) + "\n*/\n\n"


def _model_lines(layout: Layout) -> list[str]:
    model = layout.model.source if isinstance(layout.model, MappedExpansion) else layout.model
    if not isinstance(model, KernelExpansion):
        scores = f"{model.n_outputs} scores, linear in {model.n_features} features"
        if layout.skips_features:
            scores += f", of which {layout.n_entries} count"
        return [f"{scores}."]
    kernel = model.kernel
    if isinstance(kernel, RBF):
        formula = f"Kernel: exp(-{kernel.gamma:.9g} |x - b|^2)"
    elif isinstance(kernel, AdaptiveRBF):
        formula = f"Kernel: exp(-t {_distance(layout)}^2), with a width t for each vector b"
    elif isinstance(kernel, Laplacian):
        formula = f"Kernel: exp(-{kernel.gamma:.9g} |x - b|_1)"
    elif isinstance(kernel, ChiSquare):
        formula = (
            f"Kernel: exp(-{kernel.gamma:.9g} sum (x - b)^2 / (x + b)), of x that is not negative"
        )
    elif isinstance(kernel, Polynomial):
        formula = f"Kernel: ({kernel.gamma:.9g} x.b + {kernel.coef0:.9g})^{kernel.degree}"
    elif isinstance(kernel, Sigmoid):
        formula = f"Kernel: tanh({kernel.gamma:.9g} x.b + {kernel.coef0:.9g})"
    else:
        formula = "Kernel: computed by the caller; x holds the values with all training rows"
    vectors = f"{model.n_basis} vectors of {model.n_features} features, {layout.form}"
    if layout.n_mapped:
        vectors += f", mapped to {layout.n_mapped} numbers"
    if layout.form == "precomputed":
        vectors = f"{model.n_basis} of {model.n_features} training rows"
    beside = ["Beside the kernel, a part that is linear in the features."]
    sizes = f"Sizes: {vectors}; {model.n_outputs} scores."
    return [f"{formula}.", *(beside if layout.has_linear_part else []), sizes]


def _distance(layout: Layout) -> str:
    if layout.n_mapped:
        return "|(x - b) map|"  # the table of vectors holds b mapped
    return "|x - b|" if feature_weights(layout.kernel) is None else "|weights (x - b)|"


def _precision_lines(layout: Layout, dtype: str) -> list[str]:
    lines = []
    if layout.quantized:
        lines.append("Tables are of 16-bit integers with scales.")
    if layout.sums != dtype:
        lines.append("Sums are of double precision: large coefficients cancel, or may do so.")
    return lines


def _loss_lines(loss: ExportLoss) -> list[str]:
    lines = [
        f"Measured on {loss.n_rows} {loss.measured_on}, against the machine in double precision: "
        "scores differ",
        f"by {loss.score_difference:.1e} of the largest at the most",
    ]
    if loss.labels_changed is not None:
        lines[-1] += f"; {100 * loss.labels_changed:.3g}% of the labels changed"
    if loss.accuracy_before is not None and loss.accuracy_after is not None:
        lines[-1] += f"; accuracy {loss.accuracy_before:.4f} -> {loss.accuracy_after:.4f}"
    lines[-1] += "."
    return lines


def _stack_bytes(layout: Layout, before: Preparation | None) -> int:
    count = layout.model.n_outputs + (layout.n_mapped if layout.n_entries else 0)
    n_bytes = count * (4 if layout.sums == "float32" else 8)
    return n_bytes if before is None else n_bytes + before.stack_bytes


def _call_lines(name: str, readout: Readout | None, dtype: str) -> list[str]:
    macro, real = name.upper(), c_type(dtype)
    lines = [
        f"{real} x[{macro}_N_FEATURES], scores[{macro}_N_OUTPUTS];",
        f"{name}_scores(x, scores);",
    ]
    if readout is not None and readout.tells_labels:
        lines.append(f"unsigned char labels[{macro}_N_CLASSES];  0 or 1 each")
        lines.append(f"{name}_predict(x, labels);")
    elif readout is not None:
        lines.append(f"{name}_classes[{name}_predict(x)] is the label.")
    if readout is not None and readout.link is not None:
        lines.append(f"{real} p[{macro}_N_CLASSES];")
        lines.append(f"{name}_probabilities(x, p);")
    return ["  " + line for line in lines]

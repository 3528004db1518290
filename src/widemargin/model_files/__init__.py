"""Model files: a fitted estimator on disk, without pickle.

A model file is a safetensors file. Its metadata holds a JSON document that says which estimator it
is, with which parameters and attributes, and a checksum; its tensors hold the arrays. Reading one
runs no code from it: classes are looked up by name in the registries of the library, and whatever
is not as ``save`` would have written it raises :class:`ModelFileError`.
"""

from __future__ import annotations

import hashlib
import math
import mmap as memory_maps
import os
import stat
import struct
import sys
from collections.abc import Iterable
from copy import copy
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from sklearn.utils.validation import check_is_fitted

from widemargin._registry import ESTIMATORS
from widemargin._system.file_changes import brought_up_to_date, differing_names
from widemargin._system.files import replace_file
from widemargin.estimation.fitting import LAST_GOOD
from widemargin.model_files._checks import check_estimator, check_names
from widemargin.model_files._codec import CSR, DTYPES, OBJECTS, TENSOR_TYPES, Encoder, write_json
from widemargin.model_files._decoder import Decoder, read_json

__all__ = ["FORMAT", "ModelFileError", "load", "read_notes", "save", "trusted_types"]

Array: TypeAlias = npt.NDArray[Any]
Path: TypeAlias = str | os.PathLike[str]
Entry: TypeAlias = tuple[str, str, list[int]]  # of a tensor: name, type, shape

#: Version of the format that ``save`` writes. ``load`` reads this one and all before it: what they
#: lack, classes say in their ``_file_changes``.
FORMAT = 7

_NOTES = "notes"  # of the metadata; files without it are as they were before there were any
_ALIGNMENT = 64  # bytes; of the first tensor, so that mapped arrays start where a cache line does
_LONGEST_HEADER = 99_000_000  # bytes; safetensors reads 100 MB
_LONGEST_REASON = 500  # letters
_LONGEST_VERSION = 40  # letters
_ALL_PARAMETERS = 2  # the first version whose files have them all; before, defaults stand for them
_FIELDS = ("format", "library", "estimator", "parameters", "attributes")
_PIPELINE = "pipeline"  # one more field, where there are steps before the estimator
# No part of a model: what is scikit-learn's own, as callbacks; and a machine that goes on learning.
_LEFT_OUT = ("_skl_", "_callback_", "_metadata_request", "_sklearn_output_config", "_stream")
# What a file that breaks a rule not thought of may cause while values are put together.
_SYMPTOMS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class ModelFileError(ValueError):
    """A file that is no valid model file: not one at all, damaged, or of a newer version.

    The message names the file and the reason.
    """


def save(estimator: Any, path: Path, *, notes: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator, or a pipeline that ends in one, to a model file.

    The file appears whole or not at all: it is written beside ``path`` under another name, and
    takes its place at the end. The same estimator gives the same bytes.

    Parameters
    ----------
    estimator : estimator of this library, or Pipeline of scikit-learn
        A fitted one. Callbacks are left out. Of a pipeline the last step is an estimator of this
        library; see :func:`widemargin.compile` for the steps before it. Selectors that hold other
        estimators, such as SelectFromModel, become a
        :class:`widemargin.preparation.KeptColumns` that keeps the same columns.
    path : str or path-like
        The file to write; one that is there is replaced.
    notes : dict, default=None
        What a reader of the file may want to know, in types that JSON has: where the rows came
        from, names of labels. :func:`widemargin.model_files.read_notes` gives it back.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If it holds what a model file cannot: kernels that are Python functions, objects of classes
        that the library does not have, other steps. Pickle keeps these.
    ValueError
        If parameters or attributes were changed to what the estimator cannot work with.

    Examples
    --------
    >>> import tempfile, pathlib, widemargin
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = widemargin.SparseKernelClassifier(max_basis=5, random_state=0).fit(X, y)
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "iris.widemargin"
    >>> widemargin.save(machine, file)
    >>> again = widemargin.load(file, mmap=False)
    >>> bool((again.decision_function(X) == machine.decision_function(X)).all())
    True
    >>> folder.cleanup()
    """
    document, tensors = _describe(estimator)
    # Those without a number last, by name: readers cannot tell where among others they lie.
    layout = sorted(
        tensors, key=lambda name: _place(name, tensors[name].size, -tensors[name].itemsize)
    )
    arrays = [tensors[name] for name in layout]
    entries = [
        (name, TENSOR_TYPES[array.dtype.str], list(array.shape))
        for name, array in zip(layout, arrays, strict=True)
    ]
    header = _header(document, entries, arrays, "" if notes is None else write_json(notes))
    replace_file(path, [header, *map(_bytes_of, arrays)])


def load(path: Path, *, mmap: bool = True) -> Any:
    """Read a fitted estimator or pipeline from a model file.

    No code from the file runs, so files from strangers are safe to load.

    Parameters
    ----------
    path : str or path-like
        The file.
    mmap : bool, default=True
        Whether arrays stay in the file, mapped into memory read-only, so that processes share
        them. Replacing the file is then fine, except on Windows, which refuses; writing into it or
        cutting it short is not. False reads copies.

    Returns
    -------
    estimator : estimator of this library, or Pipeline
        It predicts what the one that was saved did, to the bit.

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged, or was written by a newer version.
    OSError
        If it cannot be read: FileNotFoundError, PermissionError, IsADirectoryError.

    Examples
    --------
    >>> import tempfile
    >>> import widemargin
    >>> with tempfile.NamedTemporaryFile("w+b") as file:
    ...     _ = file.write(b"not a model")
    ...     file.flush()
    ...     try:
    ...         widemargin.load(file.name)
    ...     except widemargin.ModelFileError:
    ...         print("refused")
    refused
    """
    path = os.fsdecode(path)
    content = _contents(path)
    try:
        metadata, entries = _read_header(path)
        document = _read_document(metadata)
        arrays = list(_arrays(entries, content))
        notes = metadata.get(_NOTES, "")
        if metadata["checksum"] != _checksum(metadata["widemargin"], entries, arrays, notes):
            raise ValueError("damaged: the checksum is that of other content.")
        names = [name for name, _, _ in entries]
        kept = [_as_kept(array, mmap) for array in arrays]
        return _build(document, dict(zip(names, kept, strict=True)))
    except _SYMPTOMS as error:
        # Cut short: a file must not fill the log with what it calls a parameter.
        raise ModelFileError(f"{path}: {str(error)[:_LONGEST_REASON]}") from error


def read_notes(path: Path) -> dict[str, Any]:
    """Return the notes that a model file was saved with; none if it has none.

    They are texts and figures that whoever wrote the file has chosen, and are trusted with nothing.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    notes : dict
    """
    path = os.fsdecode(path)
    _contents(path)
    try:
        metadata, _ = _read_header(path)
        notes = read_json(metadata[_NOTES]) if _NOTES in metadata else {}
        if not isinstance(notes, dict):
            raise ValueError("damaged: the notes have no names.")
    except _SYMPTOMS as error:
        raise ModelFileError(f"{path}: {str(error)[:_LONGEST_REASON]}") from error
    return notes


def trusted_types() -> list[str]:
    """Return the types that a fitted estimator may hold, as skops and MLflow want them named.

    Neither opens a file with types that it does not know, and they know those of scikit-learn
    alone. These types hold numbers, texts and each other, and run nothing when they are read. What
    the numbers are skops does not check; :func:`load` does.

    Returns
    -------
    names : list of str
        Of estimators, kernels, losses, models, solvers and CSR matrices: all that a model file
        holds too, so that an estimator which :func:`save` takes can be loaded by skops. Kernels
        that are Python functions are not among them.

    Examples
    --------
    >>> from widemargin.model_files import trusted_types
    >>> "widemargin.sparse_kernel.classifier.SparseKernelClassifier" in trusted_types()
    True
    """
    registries = (ESTIMATORS, *OBJECTS.values(), CSR)
    types = [known for registry in registries for known in registry.values()]
    return sorted(f"{known.__module__}.{known.__qualname__}" for known in types)


def _describe(estimator: Any) -> tuple[str, dict[str, Array]]:
    """Return the document of an estimator or a pipeline, and the arrays it refers to."""
    import widemargin  # its version is set once all its modules are there

    before = None
    if _is_pipeline(estimator):
        pipelines = import_module(f"{__name__}._pipelines")
        before, last, estimator = pipelines.split(estimator)
    name = type(estimator).__name__
    if ESTIMATORS.get(name) is not type(estimator):
        raise TypeError(
            f"A model file keeps estimators of widemargin ({', '.join(ESTIMATORS)}), and pipelines "
            "of scikit-learn that end in one, not a "
            f"{type(estimator).__module__}.{type(estimator).__qualname__}: pickle it with "
            "joblib.dump."
        )
    check_is_fitted(estimator)
    if LAST_GOOD in getattr(estimator, "history_", ()):
        estimator = copy(estimator)
        way = estimator.history_.items()
        estimator.history_ = {key: value for key, value in way if key != LAST_GOOD}
    parameters = estimator.get_params(deep=False)
    attributes = {
        name: value
        for name, value in estimator.__getstate__().items()
        if name not in parameters and not name.startswith(_LEFT_OUT)
    } | {name: getattr(estimator, name) for name in sorted(estimator._model_parts)}
    encoder = Encoder()
    encoded = {
        "parameters": {key: encoder.encode(parameters[key], key) for key in sorted(parameters)},
        # Public ones first, so that arrays are named by them.
        "attributes": {
            key: encoder.encode(attributes[key], key)
            for key in sorted(attributes, key=lambda key: (key.startswith("_"), key))
        },
    }
    check_names(type(estimator), set(attributes), FORMAT)
    check_estimator(estimator)
    if before is not None:
        encoded[_PIPELINE] = pipelines.describe(before, last, estimator, encoder)
    origin = {"format": FORMAT, "library": widemargin.__version__, "estimator": name}
    return write_json(origin | encoded), encoder.tensors


def _is_pipeline(source: Any) -> bool:
    """Whether this is a Pipeline of scikit-learn, whose module takes a while to import."""
    return (type(source).__module__, type(source).__name__) == ("sklearn.pipeline", "Pipeline")


def _header(document: str, entries: list[Entry], arrays: list[Array], notes: str = "") -> bytes:
    """Return a safetensors header, with its length before it."""
    checksum = _checksum(document, entries, arrays, notes)
    metadata = {"widemargin": document, "checksum": checksum}
    fields: dict[str, Any] = {"__metadata__": metadata | ({_NOTES: notes} if notes else {})}
    start = 0
    for (name, dtype, shape), array in zip(entries, arrays, strict=True):
        end = start + array.nbytes
        fields[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
        start = end
    text = write_json(fields).encode()
    if len(text) > _LONGEST_HEADER:
        raise ValueError(
            f"All that is not an array comes to {len(text)} bytes, more than the {_LONGEST_HEADER} "
            "that safetensors reads. Pickle the estimator with joblib.dump."
        )
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    return struct.pack("<Q", len(text)) + text


def _place(name: str, size: int, order: int = 0) -> tuple[bool, int, str]:
    return (False, order, "") if size else (True, 0, name)


def _checksum(document: str, entries: list[Entry], arrays: list[Array], notes: str = "") -> str:
    """Return the checksum of all that ``load`` makes use of.

    The list of tensors goes first, and with it the length of each, so that no two files with
    different content feed the same bytes.
    """
    digest = hashlib.blake2b(digest_size=32)
    digest.update(write_json([document, entries, *([notes] if notes else [])]).encode())
    for array in arrays:
        digest.update(_bytes_of(array))
    return f"blake2b-256:{digest.hexdigest()}"


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _contents(path: str) -> memoryview:
    """Map a file into memory."""
    # Looked at before it is opened: opening a pipe would wait for a writer.
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise ModelFileError(f"{path}: not a model file, and not a regular file at all.")
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise ModelFileError(f"{path}: not a model file: it is empty.")
        mapped = memory_maps.mmap(file.fileno(), 0, access=memory_maps.ACCESS_READ)
    return memoryview(mapped)


def _read_header(path: str) -> tuple[dict[str, str], list[Entry]]:
    """Return the metadata and the tensors, in the order in which they follow one another."""
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            views = [(name, file.get_slice(name)) for name in file.offset_keys()]
            entries = [(name, view.get_dtype(), view.get_shape()) for name, view in views]
            entries.sort(key=lambda entry: _place(entry[0], math.prod(entry[2])))
    except SafetensorError as error:
        raise ValueError(f"not a model file, or a truncated one ({error}).") from error
    if "widemargin" not in metadata or "checksum" not in metadata:
        raise ValueError("not a model file: safetensors, but not written by widemargin.")
    return metadata, entries


def _read_document(metadata: dict[str, str]) -> dict[str, Any]:
    try:
        document = read_json(metadata["widemargin"])
    except ValueError as error:
        raise ValueError(f"damaged: {error}.") from error
    version = document.get("format") if isinstance(document, dict) else None
    if type(version) is not int or version < 1:
        raise ValueError("damaged: it has no format version.")
    if version > FORMAT:
        writer = str(document.get("library"))[:_LONGEST_VERSION]
        raise ValueError(
            f"written by a newer widemargin ({writer}, format {version}; this version reads "
            f"{FORMAT} and older): upgrade."
        )
    if set(document) - {_PIPELINE} != set(_FIELDS):
        raise ValueError("damaged: fields of the document are missing or surplus.")
    return dict(document)


def _arrays(entries: list[Entry], content: memoryview) -> Iterable[Array]:
    """Yield the tensors as arrays that lie in the file.

    safetensors has made sure that they follow one another without a hole, to the end of the file.
    """
    (header,) = struct.unpack("<Q", content[:8])
    start = 8 + header
    for name, type_name, shape in entries:
        if type_name not in DTYPES:
            raise ValueError(f"tensor {name[:80]!r} is of the unknown type {type_name}.")
        dtype = DTYPES[type_name]
        count = math.prod(shape)
        # A memoryview in between, or joblib would take the arrays for np.memmap and ask their file.
        yield np.frombuffer(content, dtype=dtype, count=count, offset=start).reshape(shape)
        start += count * dtype.itemsize
    if start != len(content):
        raise ValueError("damaged: the tensors do not fill the file.")


def _as_kept(array: Array, mapped: bool) -> Array:
    if not mapped:
        return array.astype(array.dtype.newbyteorder("="))
    if sys.byteorder == "little" and array.flags.aligned:
        return array
    copy = array.astype(array.dtype.newbyteorder("="))
    copy.flags.writeable = False
    return copy


def _build(document: dict[str, Any], tensors: dict[str, Array]) -> Any:
    """Put the estimator together, and check that it is one."""
    version, name, parameters, attributes = (
        document[key] for key in ("format", "estimator", "parameters", "attributes")
    )
    if type(name) is not str or name not in ESTIMATORS:
        raise ValueError(f"unknown estimator {str(name)[:80]!r}.")
    if type(parameters) is not dict or type(attributes) is not dict:
        raise ValueError("damaged: no parameters or attributes.")
    estimator_class = ESTIMATORS[name]
    _check_parameter_names(estimator_class, parameters, version)
    check_names(estimator_class, set(attributes), version)
    decoder = Decoder(tensors, version)
    given = {key: decoder.decode(node, key) for key, node in (parameters | attributes).items()}
    values = brought_up_to_date(estimator_class, given, version)
    wanted = estimator_class._get_param_names()
    estimator = estimator_class(**{key: values.pop(key) for key in wanted if key in values})
    # Which the estimator reads from model_.
    parts = {key: values.pop(key) for key in estimator_class._model_parts}
    estimator.__dict__.update(values)
    check_names(estimator_class, set(values) | estimator_class._model_parts, FORMAT)
    check_estimator(estimator, parts)
    if _PIPELINE in document:
        pipelines = import_module(f"{__name__}._pipelines")
        estimator = pipelines.build(document[_PIPELINE], estimator, decoder)
    if decoder.unused:
        raise ValueError(f"tensors without use: {', '.join(sorted(decoder.unused))[:200]}.")
    return estimator


def _check_parameter_names(
    estimator_class: type[Any], parameters: dict[str, Any], version: int
) -> None:
    """Require the parameters that a file of this version has, and no others."""
    name, wanted = estimator_class.__name__, estimator_class._get_param_names()
    missing, unknown = differing_names(estimator_class, parameters, wanted, version)
    if unknown:
        raise ValueError(
            f"{name} of this version has no parameter {', '.join(sorted(unknown))[:200]}."
        )
    if missing and version >= _ALL_PARAMETERS:
        raise ValueError(f"parameters are missing: {', '.join(sorted(missing))[:200]}.")

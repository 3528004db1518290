"""Preparation: what steps of a scikit-learn pipeline do to rows, as data.

:func:`prepared` turns a fitted pipeline (or a bare machine) into a :class:`PreparedMachine`: which
columns are read, a short list of operations on the row of numbers, a model and a readout. That is
what :func:`widemargin.compile`, exports and pages compute from; nothing in it is code. The whole
vocabulary:

===============  ===================================================================================
``Column``       a value of the row: a number, or a category with a table of codes (``Categories``)
``Pick``         columns, or questions to them: is it equal to a number, is it missing
``Fill``         numbers in the place of missing ones
``Clip``         columns brought between bounds
``Normalise``    columns divided by their norm
``Project``      ``(x - centre) @ matrix + shift`` of some columns
``Scale``        ``(x - centre) * factor`` of each column
===============  ===================================================================================

The last two become part of the model where that is possible (``prepared(..., fold=True)``): then
``operations`` is empty after a StandardScaler, and vectors are rows as they come in.
"""

from widemargin.preparation.columns import Categories, Column
from widemargin.preparation.compiled import CompiledPipeline, compile
from widemargin.preparation.kept import KeptColumns
from widemargin.preparation.operations import Clip, Fill, Normalise, Operation, Pick, Project, Scale
from widemargin.preparation.prepared import PreparedMachine, is_pipeline, prepared

__all__ = [
    "Categories",
    "Clip",
    "Column",
    "CompiledPipeline",
    "Fill",
    "KeptColumns",
    "Normalise",
    "Operation",
    "Pick",
    "PreparedMachine",
    "Project",
    "Scale",
    "compile",
    "is_pipeline",
    "prepared",
]

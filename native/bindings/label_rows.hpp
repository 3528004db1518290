// Rows as the loops over labels and classes see them.
#pragma once

#include "arrays.hpp"
#include "widemargin/label_steps.hpp"

namespace widemargin::bindings {

template <class T>
LabelRows<T> view(const Array2<const T>& rows) {
  return {rows.data(), nullptr, nullptr, rows.shape(0), rows.shape(1), 0, nullptr, nullptr};
}
template <class T>
LabelRows<T> view(const CsrArrays<T>& rows) {
  const SparseMatrix<T> matrix = rows.view();
  return {matrix.values, matrix.indices, matrix.starts, matrix.rows, matrix.columns, 0,
          nullptr,       nullptr};
}

}  // namespace widemargin::bindings

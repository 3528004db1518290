// NumPy arrays as views. Nothing is converted or copied on the way in: an array of another type or
// layout is refused.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "widemargin/views.hpp"

namespace widemargin::bindings {

namespace nb = nanobind;

template <class T>
using Array1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array3 = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

template <class T>
Matrix<T> as_matrix(const Array2<T>& array) {
  return contiguous(array.data(), array.shape(0), array.shape(1));
}

// The first `columns` columns of an array that has room for more.
template <class T>
Matrix<T> first_columns(const Array2<T>& array, std::size_t columns) {
  if (columns > array.shape(1))
    throw std::invalid_argument("more columns asked for than the array has");
  return {array.data(), array.shape(0), columns, array.shape(1)};
}

template <class T>
std::span<const T> as_span(const Array1<const T>& array) {
  return {array.data(), array.shape(0)};
}

// A CSR matrix, by parts that its constructor has checked.
template <class T>
struct CsrArrays {
  Array1<const T> values;
  Array1<const std::int32_t> indices;
  Array1<const std::int64_t> starts;
  std::size_t columns;

  SparseMatrix<T> view() const {
    return {values.data(), indices.data(), starts.data(), starts.shape(0) - 1, columns};
  }
};

inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("widemargin._native: ") + what);
}

// Rows that may lie further apart than they are long: columns of an array that has others too.
template <class T>
using RowsOfArray = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

template <class T>
Matrix<const T> rows_of(const RowsOfArray<T>& array) {
  const std::size_t rows = array.shape(0), columns = array.shape(1);
  require(columns <= 1 || array.stride(1) == 1, "entries of a row are not side by side");
  require(rows <= 1 || array.stride(0) >= static_cast<std::int64_t>(columns), "rows overlap");
  const bool alone = rows <= 1 || columns == 0;
  return {array.data(), rows, columns, alone ? columns : static_cast<std::size_t>(array.stride(0))};
}

// Row numbers come from Python; one that is not there would be read from anywhere.
inline void require_rows(const Array1<const std::int32_t>& chosen, std::size_t n_rows) {
  const std::int32_t* numbers = chosen.data();
  for (std::size_t i = 0; i < chosen.shape(0); ++i) {
    require(numbers[i] >= 0 && static_cast<std::size_t>(numbers[i]) < n_rows,
            "a chosen row is not there");
  }
}

}  // namespace widemargin::bindings

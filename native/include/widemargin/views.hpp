// Non-owning views. Rows are contiguous; nothing here allocates or frees.
#pragma once

#include <cstddef>
#include <cstdint>

namespace widemargin {

// `columns` entries a row, `stride` >= `columns` elements from one row to the next.
template <class T>
struct Matrix {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;

  T* row(std::size_t i) const { return data + i * stride; }
};

template <class T>
Matrix<T> contiguous(T* data, std::size_t rows, std::size_t columns) {
  return {data, rows, columns, columns};
}

// Compressed sparse rows. Column indices fit 32 bits, positions may need 64.
template <class T>
struct SparseMatrix {
  const T* values = nullptr;
  const std::int32_t* indices = nullptr;
  const std::int64_t* starts = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
};

}  // namespace widemargin

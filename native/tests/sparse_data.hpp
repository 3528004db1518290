// Sparse rows that own their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "widemargin/views.hpp"

namespace widemargin::tests {

template <class T>
struct Csr {
  std::vector<T> values;
  std::vector<std::int32_t> indices;
  std::vector<std::int64_t> starts{0};
  std::size_t columns = 0;

  SparseMatrix<T> view() const {
    return {values.data(), indices.data(), starts.data(), starts.size() - 1, columns};
  }
};

}  // namespace widemargin::tests

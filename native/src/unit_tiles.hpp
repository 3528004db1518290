// The sums of units.hpp over one tile of rows. A pass over all rows adds up tiles, and a stochastic
// step has a single one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "widemargin/blas.hpp"
#include "widemargin/units.hpp"

namespace widemargin {

// sum_j weights_j values_j^2, as several sums side by side: without leave to reorder, a compiler
// would add to a single one, number by number.
template <class T>
T weighted_squares(const T* values, const T* weights, std::size_t count) {
  constexpr std::size_t kLanes = 16;
  std::array<T, kLanes> sums{};
  std::size_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l)
      sums[l] += weights[j + l] * values[j + l] * values[j + l];
  }
  T total = 0;
  for (; j < count; ++j) total += weights[j] * values[j] * values[j];
  for (const T sum : sums) total += sum;
  return total;
}

// How many numbers of each kind there are, and where each kind begins among all sums.
struct UnitSumsLayout {
  std::size_t units, dimensions, outputs, features;
  std::size_t seen;  // columns of [Z 1 l]
  std::size_t back;  // columns of [diag(w) C, w], or of w alone, or none
  std::size_t by_dimension, by_feature, size;

  template <class T>
  UnitSumsLayout(const UnitRows<T>& rows, const UnitParameters<T>& parameters, const UnitSums& out)
      : units(parameters.coefficients.rows),
        dimensions(rows.mapped.columns),
        outputs(parameters.coefficients.columns),
        features(out.by_feature != nullptr ? rows.unmapped.columns : 0),
        seen(dimensions + 2),
        back(out.by_feature != nullptr     ? dimensions + 1
             : out.by_dimension != nullptr ? 1
                                           : 0),
        by_dimension(units * seen),
        by_feature(by_dimension + (out.by_dimension != nullptr ? dimensions : 0)),
        size(by_feature + features * dimensions) {}
};

// Right operand of W [diag(w) C, w]: what it takes from rows back to dimensions, and v.
template <class T>
std::vector<T> back_columns(const UnitParameters<T>& units, const UnitSumsLayout& layout) {
  std::vector<T> columns(layout.units * layout.back);
  for (std::size_t j = 0; j < layout.units && layout.back > 0; ++j) {
    T* out = columns.data() + j * layout.back;
    for (std::size_t d = 0; d + 1 < layout.back; ++d) {
      out[d] = units.widths[j] * units.centres.row(j)[d];
    }
    out[layout.back - 1] = units.widths[j];
  }
  return columns;
}

// Works on the tiles of a chunk, one after the other.
template <class T>
class TileSums {
 public:
  TileSums(const UnitRows<T>& rows, const UnitParameters<T>& units, const std::vector<T>& back,
           const UnitSumsLayout& layout, const Blas& blas, std::size_t most)
      : rows_(rows),
        units_(units),
        back_columns_(back),
        layout_(layout),
        blas_(blas),
        pull_(most * layout.units),
        gradient_(most * layout.outputs),
        seen_(most * layout.seen),
        back_(most * layout.back),
        unmapped_(most * layout.features),
        part_(layout.size) {}

  // The sums over some rows.
  const std::vector<T>& over(RowIndices some) {
    const UnitSumsLayout& n = layout_;
    pull(some);
    see(some);
    blas_.gemm<T>(true, false, n.units, n.seen, some.size(), T(1), pull_.data(), n.units,
                  seen_.data(), n.seen, T(0), part_.data(), n.seen);
    if (n.back == 0) return part_;
    blas_.gemm<T>(false, false, some.size(), n.back, n.units, T(1), pull_.data(), n.units,
                  back_columns_.data(), n.back, T(0), back_.data(), n.back);
    if (n.by_feature > n.by_dimension) add_squares(some.size());
    if (n.features > 0) add_features(some);
    return part_;
  }

 private:
  // W
  void pull(RowIndices some) {
    for (std::size_t i = 0; i < some.size(); ++i) {
      std::copy_n(rows_.gradient.row(index(some, i)), layout_.outputs,
                  gradient_.data() + i * layout_.outputs);
    }
    blas_.gemm<T>(false, true, some.size(), layout_.units, layout_.outputs, T(1), gradient_.data(),
                  layout_.outputs, units_.coefficients.data, units_.coefficients.stride, T(0),
                  pull_.data(), layout_.units);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const T* values = rows_.values.row(index(some, i));
      T* out = pull_.data() + i * layout_.units;
      for (std::size_t j = 0; j < layout_.units; ++j) out[j] *= values[j];
    }
  }

  // [Z 1 l]: the sums of W and its products with l are two columns more of a product that there is
  // anyway, rather than two passes over W.
  void see(RowIndices some) {
    for (std::size_t i = 0; i < some.size(); ++i) {
      const std::size_t row = index(some, i);
      const T* z = rows_.mapped.row(row);
      T* out = seen_.data() + i * layout_.seen;
      std::copy_n(z, layout_.dimensions, out);
      T length = weighted_squares(z, units_.squares, layout_.dimensions);
      if (rows_.rest != nullptr) length += units_.squares[0] * rows_.rest[row];
      out[layout_.dimensions] = 1;
      out[layout_.dimensions + 1] = length;
    }
  }

  void add_squares(std::size_t count) {
    T* out = part_.data() + layout_.by_dimension;
    std::fill_n(out, layout_.dimensions, T(0));
    for (std::size_t i = 0; i < count; ++i) {
      const T v = back_[(i + 1) * layout_.back - 1];
      const T* z = seen_.data() + i * layout_.seen;
      for (std::size_t d = 0; d < layout_.dimensions; ++d) out[d] += v * z[d] * z[d];
    }
  }

  void add_features(RowIndices some) {
    const UnitSumsLayout& n = layout_;
    for (std::size_t i = 0; i < some.size(); ++i) {
      std::copy_n(rows_.unmapped.row(index(some, i)), n.features,
                  unmapped_.data() + i * n.features);
      T* back = back_.data() + i * n.back;
      const T* z = seen_.data() + i * n.seen;
      const T v = back[n.dimensions];
      for (std::size_t d = 0; d < n.dimensions; ++d) back[d] = v * z[d] - back[d];
    }
    blas_.gemm<T>(true, false, n.features, n.dimensions, some.size(), T(1), unmapped_.data(),
                  n.features, back_.data(), n.back, T(0), part_.data() + n.by_feature,
                  n.dimensions);
  }

  static std::size_t index(RowIndices some, std::size_t i) {
    return static_cast<std::size_t>(some[i]);
  }

  const UnitRows<T>& rows_;
  const UnitParameters<T>& units_;
  const std::vector<T>& back_columns_;
  const UnitSumsLayout& layout_;
  const Blas& blas_;
  std::vector<T> pull_, gradient_, seen_, back_, unmapped_, part_;
};

}  // namespace widemargin

// Kernel values of tiles of rows with basis vectors: sums over features, and what kernels make of
// them. Prediction weighs these values; fits take them as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "widemargin/aligned.hpp"
#include "widemargin/kernels.hpp"
#include "widemargin/vector_code.hpp"
#include "widemargin/views.hpp"

namespace widemargin {

constexpr std::size_t kTileRows = 32;  // with their kernel values they stay in the cache

// The right operand of VectorCode's sums: `inner` x `columns`, padded with zeros.
template <class T>
class PackedTable {
 public:
  // value(f, j) is the entry of row f and column j.
  template <class Value>
  PackedTable(std::size_t inner, std::size_t columns, const PanelShape& shape, const Value& value);

  T at(std::size_t f, std::size_t j) const { return values_[place(f, j)]; }
  void put(std::size_t f, std::size_t j, double value) {
    values_[place(f, j)] = static_cast<T>(value);
  }
  std::size_t inner() const { return inner_; }
  std::size_t columns() const { return columns_; }  // padded
  Sums<T> sums(const T* left, std::size_t left_stride, std::size_t rows, T* out) const {
    return {left, left_stride, rows, inner_, values_.data(), columns_, T(1), nullptr, nullptr, out};
  }

 private:
  std::size_t place(std::size_t f, std::size_t j) const {
    const PanelShape::Panel panel = shape_.panel_of(j, columns_);
    return panel.start * inner_ + f * panel.width + (j - panel.start);
  }

  PanelShape shape_;
  std::size_t inner_, columns_;
  AlignedVector<T> values_;
};

template <class T>
template <class Value>
PackedTable<T>::PackedTable(std::size_t inner, std::size_t columns, const PanelShape& shape,
                            const Value& value)
    : shape_(shape),
      inner_(inner),
      columns_(shape.padded(columns)),
      values_(inner * columns_, T(0)) {
  for (std::size_t f = 0; f < inner; ++f) {
    for (std::size_t j = 0; j < columns; ++j) values_[place(f, j)] = static_cast<T>(value(f, j));
  }
}

// Room for the tiles that one thread works on, one after the other.
template <class T>
struct Scratch {
  AlignedVector<T> rows, mapped, norms, sums, scores, linear;
  std::vector<std::int32_t> indices;  // and values, of the entries of a sparse row
  std::vector<T> values;
};

// A point amid rows, from which to see them: the median of each feature, as one far row would move
// the mean. Rounded to single precision, so that rows of either precision are moved by the same;
// zero where it is out of that range.
template <class In>
std::vector<double> middle_of(Matrix<const In> rows);

// Sums of a term over the features of rows and the columns of a table, a tile of rows at a time.
// Squared differences are taken by |x|^2 + |b|^2 - 2 x.b where that loses no digits: for columns of
// small norms, as rows of large ones are far from them.
//
// Rows are scaled feature by feature, and moved to an origin near the columns where that leaves the
// term as it is: so they lose no digits to a common offset of the data, and no square over- or
// underflows on the way. Products are those of rows that are moved to an origin, if one is given.
template <class T>
class FeatureSums {
 public:
  // `columns` has a row of features for each column of the table; `scales` is one number a feature.
  template <class In>
  FeatureSums(Term term, Matrix<const In> columns, std::vector<double> scales,
              const VectorCode<T>& code, std::vector<double> origin_of_products = {});
  // Squared distances once rows and columns have gone through a linear map, features x mapped.
  template <class In>
  FeatureSums(Matrix<const In> columns, Matrix<const double> map, const VectorCode<T>& code);

  std::size_t features() const { return scales_.size(); }
  std::size_t columns() const { return table_.columns(); }  // padded
  // Whether sparse rows of few entries are summed by these alone, and not made dense.
  bool by_entries() const { return by_products_; }

  // Puts another column in the place of one; not where there is a map.
  void replace(std::size_t j, const double* column);

  // out (count x columns()) for rows [first, first + count), plus column_start where it is given
  // (of products only). Returns the first row, counted from `first`, that has a number which is not
  // finite once it is moved, scaled and rounded to T, or negative where the term takes no such, or
  // `count`; not looked for unless `check`.
  template <class Rows>
  std::size_t add_up(const Rows& rows, std::size_t first, std::size_t count, bool check,
                     const T* column_start, Scratch<T>& scratch, T* out) const;

 private:
  double placed(std::size_t f, double value) const {
    return (origin_.empty() ? value : value - origin_[f]) * scales_[f];
  }
  // As the table has it: a distance is one between two that are moved alike.
  double entry(std::size_t f, double value) const {
    return term_ == Term::product ? value * scales_[f] : placed(f, value);
  }
  template <class In>
  T place(const Matrix<const In>& rows, std::size_t i, T* out) const;
  template <class In>
  T place(const SparseMatrix<In>& rows, std::size_t i, T* out) const;
  template <class In>
  bool place_entries(const SparseMatrix<In>& rows, std::size_t i, Scratch<T>& scratch,
                     T& norm) const;
  void sum_tile(Scratch<T>& scratch, std::size_t count, const T* column_start, T* out) const;
  void add_norms(Sums<T>& sums, const T* row_norms) const;

  Term term_;
  const VectorCode<T>* code_;
  std::vector<double> scales_;
  std::vector<T> scales_rounded_;
  bool rounds_exactly_;                       // whether these are the same numbers
  std::vector<double> origin_;                // empty: zeros
  std::vector<T> origin_rounded_;             // the same numbers
  std::vector<std::int32_t> origin_entries_;  // features where it is not zero
  std::optional<PackedTable<T>> map_;
  PackedTable<T> table_;
  AlignedVector<T> norms_;  // of the columns
  bool by_products_;
};

// Kernel values of tiles of rows with basis vectors.
template <class T>
class PreparedBasis {
 public:
  template <class In>
  PreparedBasis(const AnyKernel& kernel, Matrix<const In> basis, const VectorCode<T>& code);

  std::size_t features() const { return sums_.features(); }
  std::size_t columns() const { return sums_.columns(); }  // padded; values there mean nothing
  bool by_entries() const { return sums_.by_entries(); }
  // Puts another vector in the place of one; not for a kernel that belongs to its basis.
  void replace(std::size_t j, const double* vector);

  // As FeatureSums::add_up.
  template <class Rows>
  std::size_t values(const Rows& rows, std::size_t first, std::size_t count, bool check,
                     Scratch<T>& scratch, T* out) const;

 private:
  AnyKernel kernel_;
  const VectorCode<T>* code_;
  FeatureSums<T> sums_;
  AlignedVector<T> widths_;  // of an adaptive kernel; else empty
};

}  // namespace widemargin

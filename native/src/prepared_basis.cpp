#include "widemargin/prepared_basis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace widemargin {
namespace {

constexpr std::size_t kTileEntries = 1 << 18;  // of wide rows, from which a tile has fewer of them
constexpr std::size_t kRowsAtOnce = 8;         // then in multiples of what the loops take at a time
constexpr std::size_t kFewFeatures = 32;       // so few that differences cost no more than products
constexpr std::size_t kSparseShare = 4;  // sparse rows stay so with at most 1/4 of all entries

// Distances by products are off by a few units in the last place of the norms. What may be lost of
// a kernel value before differences are taken instead.
template <class T>
constexpr T kTolerated = sizeof(T) == 4 ? T(5e-6) : T(1e-10);

template <class T>
bool loses_digits(T norm) {
  return !(4 * std::numeric_limits<T>::epsilon() * norm <= kTolerated<T>);
}

template <class T>
bool all_finite(const T* values, std::size_t count) {
  return std::all_of(values, values + count, [](T value) { return std::isfinite(value); });
}

template <class T>
bool any_negative(const T* values, std::size_t count) {
  return std::any_of(values, values + count, [](T value) { return value < 0; });
}

// Rounded like the rows that they multiply, unless they are beyond the range of single precision.
template <class T>
std::vector<double> usable(std::vector<double> scales) {
  for (double& scale : scales) {
    const auto rounded = static_cast<T>(scale);
    if (std::isnormal(rounded)) scale = static_cast<double>(rounded);
  }
  return scales;
}

template <class T>
AlignedVector<T> table_norms(const PackedTable<T>& table) {
  AlignedVector<T> norms(table.columns());
  for (std::size_t j = 0; j < norms.size(); ++j) {
    double norm = 0;
    for (std::size_t f = 0; f < table.inner(); ++f) {
      const auto value = static_cast<double>(table.at(f, j));
      norm += value * value;
    }
    norms[j] = static_cast<T>(norm);
  }
  return norms;
}

}  // namespace

template <class In>
std::vector<double> middle_of(Matrix<const In> rows) {
  std::vector<double> medians(rows.columns, 0.0);
  std::vector<In> column(rows.rows);
  const auto middle = column.begin() + static_cast<std::ptrdiff_t>(rows.rows / 2);
  for (std::size_t f = 0; f < rows.columns && rows.rows > 0; ++f) {
    for (std::size_t j = 0; j < rows.rows; ++j) column[j] = rows.row(j)[f];
    std::nth_element(column.begin(), middle, column.end());
    if (std::abs(static_cast<double>(*middle)) <= std::numeric_limits<float>::max()) {
      medians[f] = static_cast<float>(*middle);
    }
  }
  return medians;
}

template <class T>
template <class In>
FeatureSums<T>::FeatureSums(Term term, Matrix<const In> columns, std::vector<double> scales,
                            const VectorCode<T>& code, std::vector<double> origin_of_products)
    : term_(term),
      code_(&code),
      scales_(usable<T>(std::move(scales))),
      scales_rounded_(scales_.begin(), scales_.end()),
      rounds_exactly_(std::equal(scales_.begin(), scales_.end(), scales_rounded_.begin())),
      origin_(is_movable(term) ? middle_of(columns) : std::move(origin_of_products)),
      origin_rounded_(origin_.begin(), origin_.end()),
      table_(columns.columns, columns.rows, code.shape,
             [&](std::size_t f, std::size_t j) { return entry(f, columns.row(j)[f]); }),
      norms_(table_norms(table_)),
      by_products_(term == Term::product) {
  for (std::size_t f = 0; f < origin_.size(); ++f) {
    if (origin_[f] != 0) origin_entries_.push_back(static_cast<std::int32_t>(f));
  }
  if (term == Term::squared_difference && features() > kFewFeatures) {
    by_products_ = !loses_digits(2 * *std::max_element(norms_.begin(), norms_.end()));
  }
}

template <class T>
template <class In>
FeatureSums<T>::FeatureSums(Matrix<const In> columns, Matrix<const double> map,
                            const VectorCode<T>& code)
    : term_(Term::squared_difference),
      code_(&code),
      scales_(columns.columns, 1.0),
      scales_rounded_(scales_.begin(), scales_.end()),
      rounds_exactly_(std::equal(scales_.begin(), scales_.end(), scales_rounded_.begin())),
      origin_(middle_of(columns)),
      origin_rounded_(origin_.begin(), origin_.end()),
      map_(PackedTable<T>(map.rows, map.columns, code.shape,
                          [&](std::size_t f, std::size_t d) { return map.row(f)[d]; })),
      // As many features as mapped rows have with their padding, which is zero.
      table_(map_->columns(), columns.rows, code.shape,
             [&](std::size_t d, std::size_t j) {
               double sum = 0;
               for (std::size_t f = 0; f < map.rows && d < map.columns; ++f) {
                 sum += placed(f, columns.row(j)[f]) * map.row(f)[d];
               }
               return sum;
             }),
      norms_(table_norms(table_)),
      by_products_(false) {
  for (std::size_t f = 0; f < origin_.size(); ++f) {
    if (origin_[f] != 0) origin_entries_.push_back(static_cast<std::int32_t>(f));
  }
}

template <class T>
void FeatureSums<T>::replace(std::size_t j, const double* column) {
  if (map_) throw std::logic_error("mapped columns are not replaced");
  double norm = 0;
  for (std::size_t f = 0; f < features(); ++f) {
    table_.put(f, j, entry(f, column[f]));
    const auto value = static_cast<double>(table_.at(f, j));
    norm += value * value;
  }
  norms_[j] = static_cast<T>(norm);
  if (term_ == Term::squared_difference && loses_digits(2 * norms_[j])) by_products_ = false;
}

template <class T>
template <class In>
T FeatureSums<T>::place(const Matrix<const In>& rows, std::size_t i, T* out) const {
  const In* const row = rows.row(i);
  if constexpr (std::is_same_v<In, float>) {
    // Two roundings of a coordinate are twice as many as the table has. That is nothing in squares
    // of differences, but in other sums of differences a row would be away from itself.
    const bool by_squares = term_ == Term::product || term_ == Term::squared_difference;
    if (rounds_exactly_ && by_squares) {
      return code_->place_float(row, origin_.empty() ? nullptr : origin_rounded_.data(),
                                scales_rounded_.data(), features(), out);
    }
    const std::vector<double> wide(row, row + features());
    return place(contiguous(wide.data(), 1, features()), 0, out);
  } else {
    return code_->place_double(row, origin_.empty() ? nullptr : origin_.data(), scales_.data(),
                               features(), out);
  }
}

template <class T>
template <class In>
T FeatureSums<T>::place(const SparseMatrix<In>& rows, std::size_t i, T* out) const {
  std::fill_n(out, features(), T(0));
  for (const auto f : origin_entries_) {
    out[f] = static_cast<T>(placed(static_cast<std::size_t>(f), 0.0));
  }
  for (auto e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
    const auto f = static_cast<std::size_t>(rows.indices[e]);
    out[f] = static_cast<T>(placed(f, static_cast<double>(rows.values[e])));
  }
  T norm = 0;
  for (std::size_t f = 0; f < features(); ++f) norm += out[f] * out[f];
  return norm;
}

// The entries of a row that are not zero once it is moved; false where there are too many for them
// to be the shorter way.
template <class T>
template <class In>
bool FeatureSums<T>::place_entries(const SparseMatrix<In>& rows, std::size_t i, Scratch<T>& scratch,
                                   T& norm) const {
  auto e = rows.starts[i];
  const auto end = rows.starts[i + 1];
  const auto most = static_cast<std::size_t>(end - e) + origin_entries_.size();
  if (most * kSparseShare > features()) return false;
  scratch.indices.clear();
  scratch.values.clear();
  norm = 0;
  const auto add = [&](std::int32_t f, double value) {
    const auto rounded = static_cast<T>(placed(static_cast<std::size_t>(f), value));
    scratch.indices.push_back(f);
    scratch.values.push_back(rounded);
    norm += rounded * rounded;
  };
  auto other = origin_entries_.begin();
  while (e < end || other != origin_entries_.end()) {
    if (other == origin_entries_.end() || (e < end && rows.indices[e] <= *other)) {
      if (other != origin_entries_.end() && rows.indices[e] == *other) ++other;
      add(rows.indices[e], static_cast<double>(rows.values[e]));
      ++e;
    } else {
      add(*other++, 0.0);
    }
  }
  return true;
}

template <class T>
void FeatureSums<T>::add_norms(Sums<T>& sums, const T* row_norms) const {
  if (term_ == Term::product) return;
  sums.factor = T(-2);
  sums.row_start = row_norms;
  sums.column_start = norms_.data();
}

template <class T>
void FeatureSums<T>::sum_tile(Scratch<T>& scratch, std::size_t count, const T* column_start,
                              T* out) const {
  const T* rows = scratch.rows.data();
  std::size_t stride = features();
  if (map_) {
    scratch.mapped.resize(count * map_->columns());
    code_->products(map_->sums(rows, stride, count, scratch.mapped.data()));
    rows = scratch.mapped.data();
    stride = map_->columns();
  }
  Sums<T> sums = table_.sums(rows, stride, count, out);
  sums.column_start = column_start;
  if (!by_products_) return add_up_terms(term_, sums, *code_);
  add_norms(sums, scratch.norms.data());
  code_->products(sums);
}

template <class T>
template <class Rows>
std::size_t FeatureSums<T>::add_up(const Rows& rows, std::size_t first, std::size_t count,
                                   bool check, const T* column_start, Scratch<T>& scratch,
                                   T* out) const {
  scratch.norms.resize(count);
  std::size_t bad = count;
  const auto is_bad = [&](T norm, const T* values, std::size_t length) {
    return check && ((!std::isfinite(norm) && !all_finite(values, length)) ||
                     (!takes_negative(term_) && any_negative(values, length)));
  };
  // Rows that stay sparse are summed at once; those between them in blocks.
  std::size_t waiting = 0, ready = 0;
  const auto sum_waiting = [&] {
    sum_tile(scratch, ready, column_start, out + waiting * columns());
    ready = 0;
  };
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Rows, SparseMatrix<float>> ||
                  std::is_same_v<Rows, SparseMatrix<double>>) {
      T norm;
      if (by_products_ && place_entries(rows, first + i, scratch, norm)) {
        if (is_bad(norm, scratch.values.data(), scratch.values.size())) bad = std::min(bad, i);
        if (ready > 0) sum_waiting();
        Sums<T> sums = table_.sums(nullptr, 0, 1, out + i * columns());
        sums.column_start = column_start;
        add_norms(sums, &norm);
        code_->sparse_products(
            {scratch.indices.data(), scratch.values.data(), scratch.values.size()}, sums);
        continue;
      }
    }
    if (ready == 0) waiting = i;
    // Room for no more rows than come to be dense: wide sparse ones mostly do not.
    const std::size_t end = (ready + 1) * features();
    if (scratch.rows.size() < end) scratch.rows.resize(end);
    T* const row = scratch.rows.data() + ready * features();
    scratch.norms[ready] = place(rows, first + i, row);
    if (is_bad(scratch.norms[ready], row, features())) bad = std::min(bad, i);
    ++ready;
    if (ready % kRowsAtOnce == 0 && end >= kTileEntries) sum_waiting();
  }
  if (ready > 0) sum_waiting();
  return bad;
}

namespace {

template <class T, class In>
FeatureSums<T> sums_for(const AnyKernel& kernel, Matrix<const In> basis,
                        const VectorCode<T>& code) {
  if (const auto* adaptive = std::get_if<AdaptiveRbfKernel>(&kernel)) {
    if (!adaptive->map.empty()) {
      return FeatureSums<T>(
          basis, contiguous(adaptive->map.data(), basis.columns, adaptive->mapped), code);
    }
    if (!adaptive->weights.empty()) {
      return FeatureSums<T>(Term::squared_difference, basis, adaptive->weights, code);
    }
  }
  return std::visit(
      [&](const auto& each) {
        return FeatureSums<T>(each.term, basis, std::vector<double>(basis.columns, each.scale()),
                              code);
      },
      kernel);
}

// The widths of an adaptive kernel, padded like the columns of its sums; else none.
template <class T>
AlignedVector<T> column_widths(const AnyKernel& kernel, std::size_t columns) {
  const auto* adaptive = std::get_if<AdaptiveRbfKernel>(&kernel);
  if (adaptive == nullptr) return {};
  AlignedVector<T> widths(columns, T(0));
  std::transform(adaptive->widths.begin(), adaptive->widths.end(), widths.begin(),
                 [](double width) { return static_cast<T>(width); });
  return widths;
}

}  // namespace

template <class T>
template <class In>
PreparedBasis<T>::PreparedBasis(const AnyKernel& kernel, Matrix<const In> basis,
                                const VectorCode<T>& code)
    : kernel_(kernel),
      code_(&code),
      sums_(sums_for<T>(kernel, basis, code)),
      widths_(column_widths<T>(kernel, sums_.columns())) {}

template <class T>
void PreparedBasis<T>::replace(std::size_t j, const double* vector) {
  if (!widths_.empty()) throw std::logic_error("this kernel belongs to its basis");
  sums_.replace(j, vector);
}

template <class T>
template <class Rows>
std::size_t PreparedBasis<T>::values(const Rows& rows, std::size_t first, std::size_t count,
                                     bool check, Scratch<T>& scratch, T* out) const {
  const std::size_t bad = sums_.add_up(rows, first, count, check, nullptr, scratch, out);
  for (std::size_t i = 0; i < count && !widths_.empty(); ++i) {
    for (std::size_t j = 0; j < columns(); ++j) out[i * columns() + j] *= widths_[j];
  }
  std::visit([&](const auto& each) { each.finish(out, count * columns(), *code_); }, kernel_);
  return bad;
}

#define WIDEMARGIN_INSTANTIATE_ROWS(T, ...)                                                       \
  template std::size_t FeatureSums<T>::add_up(const __VA_ARGS__&, std::size_t, std::size_t, bool, \
                                              const T*, Scratch<T>&, T*) const;                   \
  template std::size_t PreparedBasis<T>::values(const __VA_ARGS__&, std::size_t, std::size_t,     \
                                                bool, Scratch<T>&, T*) const;
#define WIDEMARGIN_INSTANTIATE(T)                                                       \
  template class PackedTable<T>;                                                        \
  template class FeatureSums<T>;                                                        \
  template class PreparedBasis<T>;                                                      \
  WIDEMARGIN_INSTANTIATE_ROWS(T, Matrix<const float>)                                   \
  WIDEMARGIN_INSTANTIATE_ROWS(T, Matrix<const double>)                                  \
  WIDEMARGIN_INSTANTIATE_ROWS(T, SparseMatrix<float>)                                   \
  WIDEMARGIN_INSTANTIATE_ROWS(T, SparseMatrix<double>)                                  \
  template FeatureSums<T>::FeatureSums(Term, Matrix<const double>, std::vector<double>, \
                                       const VectorCode<T>&, std::vector<double>);      \
  template PreparedBasis<T>::PreparedBasis(const AnyKernel&, Matrix<const float>,       \
                                           const VectorCode<T>&);                       \
  template PreparedBasis<T>::PreparedBasis(const AnyKernel&, Matrix<const double>,      \
                                           const VectorCode<T>&);
WIDEMARGIN_INSTANTIATE(float)
WIDEMARGIN_INSTANTIATE(double)
template std::vector<double> middle_of(Matrix<const float>);
template std::vector<double> middle_of(Matrix<const double>);

}  // namespace widemargin

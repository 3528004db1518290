#include "widemargin/machine.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "widemargin/parallel.hpp"

namespace widemargin {
namespace {

constexpr std::size_t kTaskRows = 1024;           // that a thread takes at a time, at the most
constexpr std::size_t kTaskProducts = 2'000'000;  // of a task, so that waking a thread is worth it
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

// Translation leaves a distance as it is. The median, as one far row would move the mean. Rounded
// to single precision, so that rows of either precision are moved by the same; none where it is out
// of that range.
template <class In>
std::vector<double> column_medians(Matrix<const In> rows) {
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

template <class T>
template <class In>
FeatureSums<T>::FeatureSums(Of of, Matrix<const In> columns, std::vector<double> scales,
                            const VectorCode<T>& code)
    : of_(of),
      code_(&code),
      scales_(usable<T>(std::move(scales))),
      scales_rounded_(scales_.begin(), scales_.end()),
      rounds_exactly_(std::equal(scales_.begin(), scales_.end(), scales_rounded_.begin())),
      origin_(of == Of::products ? std::vector<double>() : column_medians(columns)),
      origin_rounded_(origin_.begin(), origin_.end()),
      table_(columns.columns, columns.rows, code.shape,
             [&](std::size_t f, std::size_t j) { return placed(f, columns.row(j)[f]); }),
      norms_(table_norms(table_)),
      by_products_(of == Of::products) {
  for (std::size_t f = 0; f < origin_.size(); ++f) {
    if (origin_[f] != 0) origin_entries_.push_back(static_cast<std::int32_t>(f));
  }
  if (of == Of::squared_distances && features() > kFewFeatures) {
    by_products_ = !loses_digits(2 * *std::max_element(norms_.begin(), norms_.end()));
  }
}

template <class T>
template <class In>
FeatureSums<T>::FeatureSums(Matrix<const In> columns, Matrix<const double> map,
                            const VectorCode<T>& code)
    : of_(Of::squared_distances),
      code_(&code),
      scales_(columns.columns, 1.0),
      scales_rounded_(scales_.begin(), scales_.end()),
      rounds_exactly_(std::equal(scales_.begin(), scales_.end(), scales_rounded_.begin())),
      origin_(column_medians(columns)),
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
    table_.put(f, j, placed(f, column[f]));
    const auto value = static_cast<double>(table_.at(f, j));
    norm += value * value;
  }
  norms_[j] = static_cast<T>(norm);
  if (of_ == Of::squared_distances && loses_digits(2 * norms_[j])) by_products_ = false;
}

template <class T>
template <class In>
T FeatureSums<T>::place(const Matrix<const In>& rows, std::size_t i, T* out) const {
  const In* const row = rows.row(i);
  if constexpr (std::is_same_v<In, float>) {
    if (rounds_exactly_) {
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
  if (of_ == Of::products) return;
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
  if (of_ == Of::absolute_distances) return code_->absolute_differences(sums);
  if (!by_products_) return code_->squared_differences(sums);
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
    return check && !std::isfinite(norm) && !all_finite(values, length);
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
  using Of = typename FeatureSums<T>::Of;
  if (const auto* adaptive = std::get_if<AdaptiveRbfKernel>(&kernel)) {
    if (!adaptive->map.empty()) {
      return FeatureSums<T>(
          basis, contiguous(adaptive->map.data(), basis.columns, adaptive->mapped), code);
    }
    if (!adaptive->weights.empty()) {
      return FeatureSums<T>(Of::squared_distances, basis, adaptive->weights, code);
    }
  }
  return std::visit(
      [&](const auto& each) {
        using Kernel = std::decay_t<decltype(each)>;
        const Of of = !Kernel::is_distance    ? Of::products
                      : Kernel::sums_products ? Of::squared_distances
                                              : Of::absolute_distances;
        return FeatureSums<T>(of, basis, std::vector<double>(basis.columns, each.scale()), code);
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

namespace {

template <class T>
PackedTable<T> pack_coefficients(Matrix<const double> coef, const VectorCode<T>& code) {
  return PackedTable<T>(coef.rows, coef.columns, code.shape,
                        [&](std::size_t j, std::size_t r) { return coef.row(j)[r]; });
}

template <class T>
AlignedVector<T> pad_intercept(std::span<const double> intercept, const PanelShape& shape) {
  AlignedVector<T> out(shape.padded(intercept.size()), -std::numeric_limits<T>::infinity());
  std::transform(intercept.begin(), intercept.end(), out.begin(),
                 [](double value) { return static_cast<T>(value); });
  return out;
}

// A linear map has the features as rows; the sums want a row for each column of theirs.
std::vector<double> transposed(Matrix<const double> matrix) {
  std::vector<double> out(matrix.rows * matrix.columns);
  for (std::size_t i = 0; i < matrix.rows; ++i) {
    for (std::size_t j = 0; j < matrix.columns; ++j) out[j * matrix.rows + i] = matrix.row(i)[j];
  }
  return out;
}

}  // namespace

template <class T>
Machine<T>::Machine(Matrix<const double> coef, std::span<const double> intercept,
                    const InstructionSet& instructions)
    : code_(&code_of<T>(instructions)),
      outputs_(intercept.size()),
      intercept_(pad_intercept<T>(intercept, code_->shape)),
      way_([&] {
        const std::vector<double> columns = transposed(coef);
        return FeatureSums<T>(FeatureSums<T>::Of::products,
                              contiguous<const double>(columns.data(), coef.columns, coef.rows),
                              std::vector<double>(coef.rows, 1.0), *code_);
      }()) {}

template <class T>
Machine<T>::Machine(const AnyKernel& kernel, Matrix<const double> basis, Matrix<const double> coef,
                    std::span<const double> intercept, const InstructionSet& instructions)
    : code_(&code_of<T>(instructions)),
      outputs_(intercept.size()),
      intercept_(pad_intercept<T>(intercept, code_->shape)),
      way_(Weighing{PreparedBasis<T>(kernel, basis, *code_), pack_coefficients(coef, *code_)}) {}

template <class T>
std::size_t Machine<T>::features() const {
  const auto* weighing = std::get_if<Weighing>(&way_);
  return weighing ? weighing->basis.features() : std::get<FeatureSums<T>>(way_).features();
}

template <class T>
std::size_t Machine<T>::vectors() const {
  const auto* weighing = std::get_if<Weighing>(&way_);
  return weighing ? weighing->coef.inner() : 0;
}

template <class T>
std::size_t Machine<T>::products_per_row() const {
  const auto* weighing = std::get_if<Weighing>(&way_);
  if (weighing == nullptr) return features() * intercept_.size();
  return weighing->basis.columns() * (features() + intercept_.size());
}

template <class T>
bool Machine<T>::by_entries() const {
  const auto* weighing = std::get_if<Weighing>(&way_);
  return weighing ? weighing->basis.by_entries() : std::get<FeatureSums<T>>(way_).by_entries();
}

template <class T>
void Machine<T>::replace(std::size_t j, std::span<const double> vector,
                         std::span<const double> coef) {
  auto& weighing = std::get<Weighing>(way_);
  weighing.basis.replace(j, vector.data());
  for (std::size_t r = 0; r < coef.size(); ++r) weighing.coef.put(j, r, coef[r]);
}

template <class T>
void Machine<T>::replace_intercept(std::span<const double> intercept) {
  std::transform(intercept.begin(), intercept.end(), intercept_.begin(),
                 [](double value) { return static_cast<T>(value); });
}

// Calls emit(first row, rows, their padded scores) for each tile.
template <class T>
template <class Rows, class Emit>
std::ptrdiff_t Machine<T>::run(const Rows& rows, int n_threads, bool check,
                               const Emit& emit) const {
  constexpr auto none = std::numeric_limits<std::size_t>::max();
  std::atomic<std::size_t> first_bad = none;
  const std::size_t tiles = kTaskProducts / (products_per_row() * kTileRows + 1) + 1;
  const std::size_t task_rows = std::min(kTaskRows, tiles * kTileRows);
  const std::size_t tasks = (rows.rows + task_rows - 1) / task_rows;
  for_each_index_with<Scratch<T>>(tasks, n_threads, [&](std::size_t task, Scratch<T>& scratch) {
    const std::size_t end = std::min(rows.rows, (task + 1) * task_rows);
    for (std::size_t first = task * task_rows; first < end; first += kTileRows) {
      const std::size_t count = std::min(kTileRows, end - first);
      scratch.scores.resize(count * intercept_.size());
      T* const scores = scratch.scores.data();
      std::size_t bad;
      if (const auto* weighing = std::get_if<Weighing>(&way_)) {
        const std::size_t vectors = weighing->basis.columns();
        scratch.sums.resize(count * vectors);
        bad = weighing->basis.values(rows, first, count, check, scratch, scratch.sums.data());
        Sums<T> sums = weighing->coef.sums(scratch.sums.data(), vectors, count, scores);
        sums.column_start = intercept_.data();
        code_->products(sums);
      } else {
        bad = std::get<FeatureSums<T>>(way_).add_up(rows, first, count, check, intercept_.data(),
                                                    scratch, scores);
      }
      if (bad < count) {
        std::size_t seen = first_bad;
        while (first + bad < seen && !first_bad.compare_exchange_weak(seen, first + bad)) {
        }
      }
      emit(first, count, scores);
    }
  });
  return first_bad == none ? -1 : static_cast<std::ptrdiff_t>(first_bad.load());
}

template <class T>
template <class Rows, class Out>
std::ptrdiff_t Machine<T>::scores(const Rows& rows, Matrix<Out> out, int n_threads,
                                  bool check) const {
  return run(rows, n_threads, check, [&](std::size_t first, std::size_t count, T* scores) {
    for (std::size_t i = 0; i < count; ++i) {
      std::transform(scores + i * intercept_.size(), scores + i * intercept_.size() + outputs_,
                     out.row(first + i), [](T score) { return static_cast<Out>(score); });
    }
  });
}

template <class T>
template <class Rows>
std::ptrdiff_t Machine<T>::best(const Rows& rows, std::int64_t* out, int n_threads, bool check,
                                bool single) const {
  return run(rows, n_threads, check, [&](std::size_t first, std::size_t count, T* scores) {
    if (single && !std::is_same_v<T, float>) {
      std::transform(scores, scores + count * intercept_.size(), scores, [](T score) {
        // Beyond the range all would be infinite, and equal.
        const bool held = std::abs(score) <= static_cast<T>(std::numeric_limits<float>::max());
        return held ? static_cast<T>(static_cast<float>(score)) : score;
      });
    }
    if (outputs_ > 1) {
      return code_->largest(scores, count, intercept_.size(), outputs_, out + first);
    }
    for (std::size_t i = 0; i < count; ++i) out[first + i] = scores[i * intercept_.size()] > 0;
  });
}

#define WIDEMARGIN_INSTANTIATE_ROWS(T, ...)                                                        \
  template std::ptrdiff_t Machine<T>::scores(const __VA_ARGS__&, Matrix<float>, int, bool) const;  \
  template std::ptrdiff_t Machine<T>::scores(const __VA_ARGS__&, Matrix<double>, int, bool) const; \
  template std::ptrdiff_t Machine<T>::best(const __VA_ARGS__&, std::int64_t*, int, bool, bool)     \
      const;                                                                                       \
  template std::size_t PreparedBasis<T>::values(const __VA_ARGS__&, std::size_t, std::size_t,      \
                                                bool, Scratch<T>&, T*) const;
#define WIDEMARGIN_INSTANTIATE(T)                                                  \
  template class PackedTable<T>;                                                   \
  template class Machine<T>;                                                       \
  WIDEMARGIN_INSTANTIATE_ROWS(T, Matrix<const float>)                              \
  WIDEMARGIN_INSTANTIATE_ROWS(T, Matrix<const double>)                             \
  WIDEMARGIN_INSTANTIATE_ROWS(T, SparseMatrix<float>)                              \
  WIDEMARGIN_INSTANTIATE_ROWS(T, SparseMatrix<double>)                             \
  template PreparedBasis<T>::PreparedBasis(const AnyKernel&, Matrix<const float>,  \
                                           const VectorCode<T>&);                  \
  template PreparedBasis<T>::PreparedBasis(const AnyKernel&, Matrix<const double>, \
                                           const VectorCode<T>&);
WIDEMARGIN_INSTANTIATE(float)
WIDEMARGIN_INSTANTIATE(double)

}  // namespace widemargin

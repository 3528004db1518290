#include "widemargin/predictor.hpp"

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

// Sums of the features of rows, seen from an origin, each times its row of coefficients.
template <class T>
FeatureSums<T> linear_sums(Matrix<const double> coef, const VectorCode<T>& code,
                           std::vector<double> origin = {}) {
  const std::vector<double> columns = transposed(coef);
  return FeatureSums<T>(Term::product,
                        contiguous<const double>(columns.data(), coef.columns, coef.rows),
                        std::vector<double>(coef.rows, 1.0), code, std::move(origin));
}

}  // namespace

template <class T>
Predictor<T>::Predictor(Matrix<const double> coef, std::span<const double> intercept,
                        const InstructionSet& instructions)
    : code_(&code_of<T>(instructions)),
      outputs_(intercept.size()),
      intercept_(pad_intercept<T>(intercept, code_->shape)),
      way_(linear_sums(coef, *code_)) {}

template <class T>
Predictor<T>::Predictor(const AnyKernel& kernel, Matrix<const double> basis,
                        Matrix<const double> coef, std::span<const double> intercept,
                        const InstructionSet& instructions, Matrix<const double> linear)
    : code_(&code_of<T>(instructions)),
      outputs_(intercept.size()),
      intercept_(pad_intercept<T>(intercept, code_->shape)),
      way_(Weighing{PreparedBasis<T>(kernel, basis, *code_), pack_coefficients(coef, *code_),
                    std::nullopt}) {
  if (linear.rows == 0) return;
  // Seen from amid the vectors, features far from zero do not cancel against the intercepts.
  std::vector<double> origin = middle_of(basis);
  std::vector<double> there(intercept.begin(), intercept.end());
  for (std::size_t f = 0; f < linear.rows; ++f) {
    for (std::size_t r = 0; r < outputs_; ++r) there[r] += origin[f] * linear.row(f)[r];
  }
  intercept_ = pad_intercept<T>(there, code_->shape);
  std::get<Weighing>(way_).linear.emplace(linear_sums(linear, *code_, std::move(origin)));
}

template <class T>
std::size_t Predictor<T>::features() const {
  const auto* weighing = std::get_if<Weighing>(&way_);
  return weighing ? weighing->basis.features() : std::get<FeatureSums<T>>(way_).features();
}

template <class T>
std::size_t Predictor<T>::vectors() const {
  const auto* weighing = std::get_if<Weighing>(&way_);
  return weighing ? weighing->coef.inner() : 0;
}

template <class T>
std::size_t Predictor<T>::products_per_row() const {
  const auto* weighing = std::get_if<Weighing>(&way_);
  if (weighing == nullptr) return features() * intercept_.size();
  const std::size_t linear = weighing->linear ? features() * intercept_.size() : 0;
  return weighing->basis.columns() * (features() + intercept_.size()) + linear;
}

template <class T>
bool Predictor<T>::by_entries() const {
  const auto* weighing = std::get_if<Weighing>(&way_);
  return weighing ? weighing->basis.by_entries() : std::get<FeatureSums<T>>(way_).by_entries();
}

template <class T>
void Predictor<T>::replace(std::size_t j, std::span<const double> vector,
                           std::span<const double> coef) {
  auto& weighing = std::get<Weighing>(way_);
  if (weighing.linear) throw std::logic_error("a linear part belongs to its machine");
  weighing.basis.replace(j, vector.data());
  for (std::size_t r = 0; r < coef.size(); ++r) weighing.coef.put(j, r, coef[r]);
}

template <class T>
void Predictor<T>::replace_intercept(std::span<const double> intercept) {
  std::transform(intercept.begin(), intercept.end(), intercept_.begin(),
                 [](double value) { return static_cast<T>(value); });
}

// As FeatureSums::add_up, for the scores of a kernel expansion.
template <class T>
template <class Rows>
std::size_t Predictor<T>::weigh(const Weighing& weighing, const Rows& rows, std::size_t first,
                                std::size_t count, bool check, Scratch<T>& scratch,
                                T* scores) const {
  const std::size_t vectors = weighing.basis.columns();
  scratch.sums.resize(count * vectors);
  std::size_t bad = weighing.basis.values(rows, first, count, check, scratch, scratch.sums.data());
  Sums<T> sums = weighing.coef.sums(scratch.sums.data(), vectors, count, scores);
  sums.column_start = intercept_.data();
  code_->products(sums);
  if (weighing.linear) {
    scratch.linear.resize(count * intercept_.size());
    T* const linear = scratch.linear.data();
    bad =
        std::min(bad, weighing.linear->add_up(rows, first, count, check, nullptr, scratch, linear));
    for (std::size_t i = 0; i < scratch.linear.size(); ++i) scores[i] += linear[i];
  }
  return bad;
}

// Calls emit(first row, rows, their padded scores) for each tile.
template <class T>
template <class Rows, class Emit>
std::ptrdiff_t Predictor<T>::run(const Rows& rows, int n_threads, bool check,
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
        bad = weigh(*weighing, rows, first, count, check, scratch, scores);
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
std::ptrdiff_t Predictor<T>::scores(const Rows& rows, Matrix<Out> out, int n_threads,
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
std::ptrdiff_t Predictor<T>::best(const Rows& rows, std::int64_t* out, int n_threads, bool check,
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

#define WIDEMARGIN_INSTANTIATE_ROWS(T, ...)                                                      \
  template std::ptrdiff_t Predictor<T>::scores(const __VA_ARGS__&, Matrix<float>, int, bool)     \
      const;                                                                                     \
  template std::ptrdiff_t Predictor<T>::scores(const __VA_ARGS__&, Matrix<double>, int, bool)    \
      const;                                                                                     \
  template std::ptrdiff_t Predictor<T>::best(const __VA_ARGS__&, std::int64_t*, int, bool, bool) \
      const;
#define WIDEMARGIN_INSTANTIATE(T)                      \
  template class Predictor<T>;                         \
  WIDEMARGIN_INSTANTIATE_ROWS(T, Matrix<const float>)  \
  WIDEMARGIN_INSTANTIATE_ROWS(T, Matrix<const double>) \
  WIDEMARGIN_INSTANTIATE_ROWS(T, SparseMatrix<float>)  \
  WIDEMARGIN_INSTANTIATE_ROWS(T, SparseMatrix<double>)
WIDEMARGIN_INSTANTIATE(float)
WIDEMARGIN_INSTANTIATE(double)

}  // namespace widemargin

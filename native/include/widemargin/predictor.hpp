// Prediction: kernel values, coefficients and the choice of the best class in one pass over a few
// rows at a time, so that nothing but the answer leaves the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "widemargin/aligned.hpp"
#include "widemargin/kernels.hpp"
#include "widemargin/prepared_basis.hpp"
#include "widemargin/vector_code.hpp"
#include "widemargin/views.hpp"

namespace widemargin {

template <class T>
class Predictor {
 public:
  // Without a kernel: a linear map of `coef.rows` features.
  Predictor(Matrix<const double> coef, std::span<const double> intercept,
            const InstructionSet& instructions);
  // A kernel expansion, with a part beside it that is linear in the features, unless `linear` (a
  // row for each feature) has no rows.
  Predictor(const AnyKernel& kernel, Matrix<const double> basis, Matrix<const double> coef,
            std::span<const double> intercept, const InstructionSet& instructions,
            Matrix<const double> linear = {});

  std::size_t features() const;
  std::size_t outputs() const { return outputs_; }
  std::size_t vectors() const;  // 0 without a kernel
  std::size_t products_per_row() const;
  bool by_entries() const;  // as FeatureSums
  // Another vector in the place of one, with its coefficients, and other intercepts: so a predictor
  // follows one that learns. Nobody may predict meanwhile; not where there is a linear part.
  void replace(std::size_t j, std::span<const double> vector, std::span<const double> coef);
  void replace_intercept(std::span<const double> intercept);

  // Rows: Matrix<const float>, Matrix<const double>, SparseMatrix<float> or SparseMatrix<double>.
  // Returns the first row with a number that is not finite, or too large for T, or -1; rows are not
  // looked through unless `check`.
  template <class Rows, class Out>
  std::ptrdiff_t scores(const Rows& rows, Matrix<Out> out, int n_threads, bool check) const;
  // The number of the largest score, the first of equal ones; of a single score, whether it is
  // positive. If `single`, of scores that are rounded to that precision first, so that it is the
  // largest among what scores() gives in it.
  template <class Rows>
  std::ptrdiff_t best(const Rows& rows, std::int64_t* out, int n_threads, bool check,
                      bool single) const;

 private:
  template <class Rows, class Emit>
  std::ptrdiff_t run(const Rows& rows, int n_threads, bool check, const Emit& emit) const;

  // What becomes of kernel values, and of the features themselves.
  struct Weighing {
    PreparedBasis<T> basis;
    PackedTable<T> coef;
    std::optional<FeatureSums<T>> linear;
  };
  template <class Rows>
  std::size_t weigh(const Weighing& weighing, const Rows& rows, std::size_t first,
                    std::size_t count, bool check, Scratch<T>& scratch, T* scores) const;

  const VectorCode<T>* code_;
  std::size_t outputs_;
  AlignedVector<T> intercept_;  // padded with minus infinity
  std::variant<FeatureSums<T>, Weighing> way_;
};

}  // namespace widemargin

// Kernel values between rows and basis vectors, in blocks: out(i, j) = k(x_i, b_j).
//
// A kernel here is a sum over features (of products, or of distances of coordinates) and a function
// of that sum. Dense rows are summed a tile at a time, and the function is applied while the tile
// is in cache. Sparse rows meet a sparse basis through its transpose, so the work follows the
// entries that both have.
#pragma once

#include <cmath>
#include <cstddef>
#include <tuple>
#include <variant>
#include <vector>

#include "widemargin/type_list.hpp"
#include "widemargin/vector_code.hpp"
#include "widemargin/views.hpp"

namespace widemargin {

// What a kernel adds up over the features of a row x and a vector b. All but products are
// distances: they are 0 between a row and itself.
enum class Term {
  product,              // x b
  squared_difference,   // (x - b)^2
  absolute_difference,  // |x - b|
  chi_square            // (x - b)^2 / ((x + b) / 2) of coordinates that are not negative
};

constexpr bool is_distance(Term term) { return term != Term::product; }
// Whether it stays as it is when both coordinates are moved alike, so that an origin may be chosen.
constexpr bool is_movable(Term term) {
  return term == Term::squared_difference || term == Term::absolute_difference;
}
constexpr bool takes_negative(Term term) { return term != Term::chi_square; }

// The term of one feature, as the vector code adds it up.
template <Term term>
double term_of(double x, double b) {
  const double difference = x - b;
  if constexpr (term == Term::product) return x * b;
  if constexpr (term == Term::squared_difference) return difference * difference;
  if constexpr (term == Term::absolute_difference) return std::fabs(difference);
  const double mean = 0.5 * x + 0.5 * b;
  return difference * (difference / (mean > 0 ? mean : 1.0));
}

// The same for whole operands, by differences where there are any.
template <class T>
void add_up_terms(Term term, const Sums<T>& sums, const VectorCode<T>& code) {
  switch (term) {
    case Term::product:
      return code.products(sums);
    case Term::squared_difference:
      return code.squared_differences(sums);
    case Term::absolute_difference:
      return code.absolute_differences(sums);
    case Term::chi_square:
      return code.chi_squares(sums);
  }
}

struct LinearKernel {
  static constexpr const char* name = "LinearKernel";
  static constexpr Term term = Term::product;
  double scale() const { return 1.0; }  // of every coordinate, before anything else
  template <class T>
  void finish(T*, std::size_t, const VectorCode<T>&) const {}
};

// (gamma x.b + coef0)^degree. Coordinates are scaled by sqrt(gamma) first, here and below, so that
// neither products nor squares over- or underflow on the way.
struct PolynomialKernel {
  static constexpr const char* name = "PolynomialKernel";
  double gamma;
  double coef0;
  int degree;
  static auto parameters() {
    return std::tuple(parameter("gamma", &PolynomialKernel::gamma, {0.4, 0.7, 0.5, 0.5, 0.1}),
                      parameter("coef0", &PolynomialKernel::coef0, {1.0, 0.0, -0.5, 0.5, 0.5}),
                      parameter("degree", &PolynomialKernel::degree, {3, 2, 1, 0, 7}));
  }
  static constexpr Term term = Term::product;
  double scale() const { return std::sqrt(gamma); }
  template <class T>
  void finish(T* sums, std::size_t count, const VectorCode<T>&) const {
    for (std::size_t j = 0; j < count; ++j) {
      double base = static_cast<double>(sums[j]) + coef0, power = 1.0;
      for (int left = degree; left > 0; left /= 2, base *= base) {
        if (left % 2 == 1) power *= base;
      }
      sums[j] = static_cast<T>(power);
    }
  }
};

// tanh(gamma x.b + coef0), which is not positive semi-definite.
struct SigmoidKernel {
  static constexpr const char* name = "SigmoidKernel";
  double gamma;
  double coef0;
  static auto parameters() {
    return std::tuple(parameter("gamma", &SigmoidKernel::gamma, {0.4, 0.05}),
                      parameter("coef0", &SigmoidKernel::coef0, {0.0, -0.7}));
  }
  static constexpr Term term = Term::product;
  double scale() const { return std::sqrt(gamma); }
  template <class T>
  void finish(T* sums, std::size_t count, const VectorCode<T>& code) const {
    for (std::size_t j = 0; j < count; ++j) {
      sums[j] = static_cast<T>(static_cast<double>(sums[j]) + coef0);
    }
    code.tanh_of(sums, count);
  }
};

// exp(-gamma |x - b|^2)
struct RbfKernel {
  static constexpr const char* name = "RBFKernel";
  double gamma;
  static auto parameters() { return std::tuple(parameter("gamma", &RbfKernel::gamma, {0.3})); }
  static constexpr Term term = Term::squared_difference;
  double scale() const { return std::sqrt(gamma); }
  template <class T>
  void finish(T* sums, std::size_t count, const VectorCode<T>& code) const {
    code.exp_of_negative(sums, count);
  }
};

// exp(-gamma |x - b|_1)
struct LaplacianKernel {
  static constexpr const char* name = "LaplacianKernel";
  double gamma;
  static auto parameters() {
    return std::tuple(parameter("gamma", &LaplacianKernel::gamma, {0.2}));
  }
  static constexpr Term term = Term::absolute_difference;
  double scale() const { return gamma; }
  template <class T>
  void finish(T* sums, std::size_t count, const VectorCode<T>& code) const {
    code.exp_of_negative(sums, count);
  }
};

// exp(-gamma sum_f (x_f - b_f)^2 / (x_f + b_f)) of coordinates that are not negative; a feature
// that both lack adds nothing.
struct ChiSquareKernel {
  static constexpr const char* name = "ChiSquareKernel";
  double gamma;
  static auto parameters() {
    return std::tuple(parameter("gamma", &ChiSquareKernel::gamma, {0.3}));
  }
  static constexpr Term term = Term::chi_square;
  double scale() const { return gamma / 2; }  // the term has the mean where the formula has the sum
  template <class T>
  void finish(T* sums, std::size_t count, const VectorCode<T>& code) const {
    code.exp_of_negative(sums, count);
  }
};

// exp(-widths[j] |(x - b_j) metric|^2) for vector j, with a metric of weights, of a linear map
// (features x mapped), or none. It belongs to one basis.
struct AdaptiveRbfKernel {
  std::vector<double> widths;
  std::vector<double> weights;  // one a feature; empty: ones
  std::vector<double> map;      // empty: none
  std::size_t mapped = 0;       // its columns
  static constexpr Term term = Term::squared_difference;
  double scale() const { return 1.0; }
  // Of sums that have been multiplied by the widths.
  template <class T>
  void finish(T* sums, std::size_t count, const VectorCode<T>& code) const {
    code.exp_of_negative(sums, count);
  }
};

// All kernels that are a few numbers. Being on this list is all that it takes to be computed, bound
// and tested.
using Kernels = TypeList<LinearKernel, PolynomialKernel, SigmoidKernel, RbfKernel, LaplacianKernel,
                         ChiSquareKernel>;
template <class... Each>
using WithAdaptive = std::variant<Each..., AdaptiveRbfKernel>;
using AnyKernel = Kernels::In<WithAdaptive>;

// out (rows x basis.rows); coordinates are moved and scaled in the precision In that the data has,
// products are taken in the precision T of the result. Where the basis is dense, sparse rows are
// made so a tile at a time: they have the values of dense rows to the bit. (Those of an adaptive
// kernel are summed as prediction sums them; it takes no sparse basis.)
template <class T, class In>
void kernel_block(const AnyKernel& kernel, Matrix<const In> rows, Matrix<const In> basis,
                  Matrix<T> out, int n_threads);
template <class T, class In>
void kernel_block(const AnyKernel& kernel, const SparseMatrix<In>& rows, Matrix<const In> basis,
                  Matrix<T> out, int n_threads);
template <class T, class In>
void kernel_block(const AnyKernel& kernel, const SparseMatrix<In>& rows,
                  const SparseMatrix<In>& basis, Matrix<T> out, int n_threads);

}  // namespace widemargin

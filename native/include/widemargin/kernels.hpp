// Kernel values between rows and basis vectors, in blocks: out(i, j) = k(x_i, b_j).
//
// A kernel here is a sum over features (a dot product, or a distance of coordinates) and a function
// of that sum. Dense rows are summed a tile at a time, and the function is applied while the tile
// is in cache. Sparse rows meet a sparse basis through its transpose, so the work follows the
// entries that both have.
#pragma once

#include <cmath>
#include <cstddef>
#include <variant>
#include <vector>

#include "widemargin/vector_code.hpp"
#include "widemargin/views.hpp"

namespace widemargin {

struct LinearKernel {
  static constexpr bool is_distance = false;   // needs |x|^2 and |b|^2, and may move the origin
  static constexpr bool sums_products = true;  // otherwise absolute differences
  double scale() const { return 1.0; }         // of every coordinate, before anything else
  template <class T>
  void finish(T*, std::size_t, const VectorCode<T>&) const {}
};

// (gamma x.b + coef0)^degree. Coordinates are scaled by sqrt(gamma) first, here and below, so that
// neither products nor squares over- or underflow on the way.
struct PolynomialKernel {
  double gamma;
  double coef0;
  int degree;
  static constexpr bool is_distance = false;
  static constexpr bool sums_products = true;
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
  double gamma;
  double coef0;
  static constexpr bool is_distance = false;
  static constexpr bool sums_products = true;
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
  double gamma;
  static constexpr bool is_distance = true;
  static constexpr bool sums_products = true;
  double scale() const { return std::sqrt(gamma); }
  template <class T>
  void finish(T* sums, std::size_t count, const VectorCode<T>& code) const {
    code.exp_of_negative(sums, count);
  }
};

// exp(-gamma |x - b|_1)
struct LaplacianKernel {
  double gamma;
  static constexpr bool is_distance = true;
  static constexpr bool sums_products = false;
  double scale() const { return gamma; }
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
  static constexpr bool is_distance = true;
  static constexpr bool sums_products = true;
  double scale() const { return 1.0; }
  // Of sums that have been multiplied by the widths.
  template <class T>
  void finish(T* sums, std::size_t count, const VectorCode<T>& code) const {
    code.exp_of_negative(sums, count);
  }
};

using AnyKernel = std::variant<LinearKernel, PolynomialKernel, SigmoidKernel, RbfKernel,
                               LaplacianKernel, AdaptiveRbfKernel>;

// out (rows x basis.rows), of any kernel, dense basis and rows of any form.
template <class T, class Rows, class In>
void kernel_values(const AnyKernel& kernel, const Rows& rows, Matrix<const In> basis, Matrix<T> out,
                   int n_threads);

// out (rows x basis.rows); coordinates are moved and scaled in the precision In that the data has,
// products are taken in the precision T of the result. Where the basis is dense, sparse rows are
// made so a tile at a time: they have the values of dense rows to the bit.
template <class T, class In, class Kernel>
void kernel_block(const Kernel& kernel, Matrix<const In> rows, Matrix<const In> basis,
                  Matrix<T> out, int n_threads);
template <class T, class In, class Kernel>
void kernel_block(const Kernel& kernel, const SparseMatrix<In>& rows, Matrix<const In> basis,
                  Matrix<T> out, int n_threads);
template <class T, class In, class Kernel>
void kernel_block(const Kernel& kernel, const SparseMatrix<In>& rows, const SparseMatrix<In>& basis,
                  Matrix<T> out, int n_threads);

}  // namespace widemargin

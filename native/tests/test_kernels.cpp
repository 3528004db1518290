// Blocks of kernel values, dense and sparse.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "examples.hpp"
#include "random_data.hpp"
#include "sparse_data.hpp"
#include "widemargin/kernels.hpp"

namespace widemargin::tests {
namespace {

struct PairSums {
  double product = 0.0, squared = 0.0, absolute = 0.0, chi_square = 0.0;
};

template <class In>
PairSums pair_sums(const Padded<In>& rows, std::size_t i, const Padded<In>& basis, std::size_t j) {
  PairSums sums;
  for (std::size_t f = 0; f < rows.columns(); ++f) {
    const double x = rows(i, f), b = basis(j, f);
    sums.product += x * b;
    sums.squared += (x - b) * (x - b);
    sums.absolute += std::fabs(x - b);
    if (x + b > 0) sums.chi_square += (x - b) * (x - b) / (x + b);
  }
  return sums;
}

// What the kernel makes of a sum over features that is not scaled before: all that a kernel which
// has no formula of its own below is held to here. Tests in Python hold each to its formula.
template <class Kernel>
double finished_value(const Kernel& kernel, const PairSums& sums) {
  const double scale = kernel.scale();
  double value = 0.0;
  if (Kernel::term == Term::product) value = scale * scale * sums.product;
  if (Kernel::term == Term::squared_difference) value = scale * scale * sums.squared;
  if (Kernel::term == Term::absolute_difference) value = scale * sums.absolute;
  if (Kernel::term == Term::chi_square) value = 2 * scale * sums.chi_square;
  kernel.finish(&value, 1, vector_code<double>());
  return value;
}

template <class Kernel>
double naive_value(const Kernel& kernel, const PairSums& sums) {
  return finished_value(kernel, sums);
}
double naive_value(const LinearKernel&, const PairSums& sums) { return sums.product; }
double naive_value(const PolynomialKernel& kernel, const PairSums& sums) {
  return std::pow(kernel.gamma * sums.product + kernel.coef0, kernel.degree);
}
double naive_value(const SigmoidKernel& kernel, const PairSums& sums) {
  return std::tanh(kernel.gamma * sums.product + kernel.coef0);
}
double naive_value(const RbfKernel& kernel, const PairSums& sums) {
  return std::exp(-kernel.gamma * sums.squared);
}
double naive_value(const LaplacianKernel& kernel, const PairSums& sums) {
  return std::exp(-kernel.gamma * sums.absolute);
}
double naive_value(const ChiSquareKernel& kernel, const PairSums& sums) {
  return std::exp(-kernel.gamma * sums.chi_square);
}

// The rows, or their sizes where the kernel takes nothing negative.
template <class Kernel, class In>
Padded<In> suited(Padded<In> rows) {
  if (takes_negative(Kernel::term)) return rows;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    for (std::size_t f = 0; f < rows.columns(); ++f) rows(i, f) = std::fabs(rows(i, f));
  }
  return rows;
}

// `tolerance` is relative for values above 1, absolute below.
template <class T, class In, class Kernel>
void check_values(const Kernel& kernel, const Padded<In>& rows, const Padded<In>& basis,
                  const Padded<T>& got, double tolerance) {
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    for (std::size_t j = 0; j < basis.rows(); ++j) {
      const double expected = naive_value(kernel, pair_sums(rows, i, basis, j));
      CHECK_NEAR(got(i, j), expected, tolerance * std::max(1.0, std::fabs(expected)));
    }
  }
}

// Keeps one explicit zero a row, if there are zeros: their absence is not promised.
template <class T>
Csr<T> as_csr(const Padded<T>& dense) {
  Csr<T> out;
  out.columns = dense.columns();
  for (std::size_t i = 0; i < dense.rows(); ++i) {
    bool zero_kept = false;
    for (std::size_t f = 0; f < dense.columns(); ++f) {
      const T value = dense.view().row(i)[f];
      if (value == 0 && zero_kept) continue;
      zero_kept = zero_kept || value == 0;
      out.values.push_back(value);
      out.indices.push_back(static_cast<std::int32_t>(f));
    }
    out.starts.push_back(static_cast<std::int64_t>(out.values.size()));
  }
  return out;
}

template <class T>
void make_sparse(Padded<T>& dense, Random& random) {
  for (std::size_t i = 0; i < dense.rows(); ++i) {
    const bool empty = i % 7 == 3;
    for (std::size_t f = 0; f < dense.columns(); ++f) {
      if (empty || random.below(10) < 6) dense(i, f) = 0;
    }
  }
}

template <class T, class In, class Kernel>
Padded<T> dense_block(const Kernel& kernel, const Padded<In>& rows, const Padded<In>& basis,
                      int n_threads = 1) {
  Padded<T> out(rows.rows(), basis.rows(), 3);
  kernel_block<T>(kernel, rows.view(), basis.view(), out.view(), n_threads);
  CHECK(out.padding_intact());
  return out;
}

template <class T, class In, class Kernel>
Padded<T> sparse_block(const Kernel& kernel, const Padded<In>& rows, const Padded<In>& basis,
                       int n_threads = 1) {
  const Csr<In> sparse_rows = as_csr(rows), sparse_basis = as_csr(basis);
  Padded<T> out(rows.rows(), basis.rows(), 3);
  kernel_block<T>(kernel, sparse_rows.view(), sparse_basis.view(), out.view(), n_threads);
  CHECK(out.padding_intact());
  return out;
}

template <class T, class In, class Kernel>
Padded<T> tiled_block(const Kernel& kernel, const Padded<In>& rows, const Padded<In>& basis,
                      int n_threads = 1) {
  const Csr<In> sparse_rows = as_csr(rows);
  Padded<T> out(rows.rows(), basis.rows(), 3);
  kernel_block<T>(kernel, sparse_rows.view(), basis.view(), out.view(), n_threads);
  CHECK(out.padding_intact());
  return out;
}

template <class Function>
void for_each_kernel(const Function& function) {
  for_each_example<Kernels>(function);
}

struct Shape {
  std::size_t rows, basis, features;
};
// Fewer rows than a tile; several chunks; chunks of several tiles.
constexpr Shape kShapes[] = {{0, 3, 4},    {1, 1, 1},    {1, 5, 3},   {3, 1, 7},
                             {40, 17, 33}, {257, 3, 16}, {700, 9, 5}, {4700, 2, 3}};

std::string describe(const Shape& shape) {
  return std::to_string(shape.rows) + " rows, " + std::to_string(shape.basis) + " vectors, " +
         std::to_string(shape.features) + " features";
}

// Calls function(T, In) with a value of each: the precision of the result and that of the data.
template <class Function>
void for_each_precision(const Function& function) {
  const auto run = [&](auto result, auto data) {
    const Case where(type_name<decltype(result)>() + " from " + type_name<decltype(data)>());
    function(result, data);
  };
  run(float{}, float{});
  run(float{}, double{});
  run(double{}, float{});
  run(double{}, double{});
}

// In units of the result's precision; see check_values. The sums have up to 33 terms.
constexpr double kTolerance = 60.0;

TEST("kernel blocks, dense and sparse, agree with each other and with plain loops") {
  for_each_precision([](auto result, auto data) {
    using T = decltype(result);
    using In = decltype(data);
    const double tolerance = kTolerance * epsilon<T>();
    for (const Shape& shape : kShapes) {
      Random random(shape.rows + shape.features);
      Padded<In> any_rows(shape.rows, shape.features, 2, random, -1.5, 1.5);
      Padded<In> any_basis(shape.basis, shape.features, 5, random, -1.5, 1.5);
      for (const bool zeros : {false, true}) {
        if (zeros) make_sparse(any_rows, random), make_sparse(any_basis, random);
        for_each_kernel([&]<class Kernel>(const Kernel& kernel) {
          const Padded<In> rows = suited<Kernel>(any_rows), basis = suited<Kernel>(any_basis);
          const Case where(name_of(kernel) + (zeros ? ", zeros, " : ", no zeros, ") +
                           describe(shape));
          const Padded<T> dense = dense_block<T>(kernel, rows, basis);
          const Padded<T> sparse = sparse_block<T>(kernel, rows, basis);
          check_values(kernel, rows, basis, dense, tolerance);
          check_values(kernel, rows, basis, sparse, tolerance);
          CHECK(tiled_block<T>(kernel, rows, basis).entries() == dense.entries());
          CHECK(tiled_block<T>(kernel, rows, basis, 3).entries() == dense.entries());
          for (std::size_t i = 0; i < shape.rows; ++i) {
            for (std::size_t j = 0; j < shape.basis; ++j) {
              CHECK_NEAR(sparse(i, j), dense(i, j),
                         tolerance * std::max(1.0, std::fabs(dense(i, j))));
            }
          }
        });
      }
    }
  });
}

TEST("what a kernel makes of a plain sum is its formula") {
  Random random(4);
  const Padded<double> any_rows(20, 5, 1, random, -1.5, 1.5);
  for_each_kernel([&]<class Kernel>(const Kernel& kernel) {
    const Case where(name_of(kernel));
    const Padded<double> rows = suited<Kernel>(any_rows);
    for (std::size_t i = 0; i < rows.rows(); ++i) {
      const PairSums sums = pair_sums(rows, i, rows, 0);
      const double expected = naive_value(kernel, sums);
      CHECK_NEAR(finished_value(kernel, sums), expected,
                 1e-13 * std::max(1.0, std::fabs(expected)));
    }
  });
}

TEST("kernel blocks are the same to the bit for 1, 2 and 5 threads") {
  for_each_precision([](auto result, auto data) {
    using T = decltype(result);
    Random random(5);
    using In = decltype(data);
    Padded<In> any_rows(2000, 7, 1, random, -1, 1), any_basis(11, 7, 0, random, -1, 1);
    make_sparse(any_rows, random);
    for_each_kernel([&]<class Kernel>(const Kernel& kernel) {
      const Case where(name_of(kernel));
      const Padded<In> rows = suited<Kernel>(any_rows), basis = suited<Kernel>(any_basis);
      const auto dense = dense_block<T>(kernel, rows, basis).entries();
      const auto sparse = sparse_block<T>(kernel, rows, basis).entries();
      for (const int n_threads : {2, 5}) {
        CHECK(dense_block<T>(kernel, rows, basis, n_threads).entries() == dense);
        CHECK(sparse_block<T>(kernel, rows, basis, n_threads).entries() == sparse);
      }
    });
  });
}

// Of one width.
template <class Function>
void for_each_distance_kernel(double gamma, const Function& function) {
  Kernels::for_each([&]<class Kernel>() {
    if constexpr (is_distance(Kernel::term)) {
      Kernel kernel = examples<Kernel>().front();
      kernel.gamma = gamma;
      const Case where(name_of(kernel));
      function(kernel);
    }
  });
}

TEST("a kernel of distances is 1 between a row and itself, and never above") {
  Random random(6);
  const Padded<float> any_rows(300, 9, 1, random, -3, 3);
  for_each_distance_kernel(0.3, [&]<class Kernel>(const Kernel& kernel) {
    const Padded<float> rows = suited<Kernel>(any_rows);
    for (const Padded<float>& block :
         {dense_block<float>(kernel, rows, rows), sparse_block<float>(kernel, rows, rows)}) {
      for (std::size_t i = 0; i < rows.rows(); ++i) {
        CHECK_NEAR(block(i, i), 1.0, 1e-4);
        for (std::size_t j = 0; j < rows.rows(); ++j) CHECK(block(i, j) >= 0 && block(i, j) <= 1);
      }
    }
  });
}

template <class T, class In, class Kernel>
void check_both(const Kernel& kernel, const Padded<In>& any_rows, const Padded<In>& any_basis,
                double tolerance) {
  const Padded<In> rows = suited<Kernel>(any_rows), basis = suited<Kernel>(any_basis);
  check_values(kernel, rows, basis, dense_block<T>(kernel, rows, basis), tolerance);
  check_values(kernel, rows, basis, sparse_block<T>(kernel, rows, basis), tolerance);
}

TEST("an offset of all features by 1e6 leaves kernels of distances as they are") {
  for_each_precision([](auto result, auto data) {
    using T = decltype(result);
    using In = decltype(data);
    Random random(7);
    for (const std::size_t vectors : {1, 2, 20}) {
      const Padded<In> rows(300, 5, 1, random, 1e6 - 2, 1e6 + 2);
      const Padded<In> basis(vectors, 5, 0, random, 1e6 - 2, 1e6 + 2);
      for_each_distance_kernel(
          0.2, [&](const auto& kernel) { check_both<T>(kernel, rows, basis, 1e-3); });
    }
  });
}

TEST("kernels of distances are right within clusters that are far apart") {
  for_each_precision([](auto result, auto data) {
    using T = decltype(result);
    using In = decltype(data);
    Random random(9);
    Padded<In> rows(60, 5, 1, random, -1, 1), basis(9, 5, 0, random, -1, 1);
    for (Padded<In>* matrix : {&rows, &basis}) {
      for (std::size_t i = 0; i < matrix->rows(); ++i) {
        for (std::size_t f = 0; f < 5; ++f) {
          (*matrix)(i, f) += static_cast<In>(1e4 * (static_cast<double>(i % 3) - 1));
        }
      }
    }
    for_each_distance_kernel(0.2,
                             [&](const auto& kernel) { check_both<T>(kernel, rows, basis, 2e-3); });
  });
}

TEST("gamma 1e24 with features of 1e-12, and the like, neither over- nor underflow") {
  for_each_precision([](auto result, auto data) {
    using T = decltype(result);
    using In = decltype(data);
    for (const int exponent : {-100, -12, -6, 6, 12, 100}) {
      if (std::is_same_v<In, float> && std::abs(exponent) > 30) continue;
      const Case where("features of 1e" + std::to_string(exponent));
      const double size = std::pow(10.0, exponent);
      Random random(8);
      const Padded<In> rows(50, 3, 1, random, -size, size), basis(6, 3, 0, random, -size, size);
      check_both<T>(RbfKernel{1 / (size * size)}, rows, basis, kTolerance * epsilon<T>());
      check_both<T>(LaplacianKernel{1 / size}, rows, basis, kTolerance * epsilon<T>());
      check_both<T>(ChiSquareKernel{1 / size}, rows, basis, kTolerance * epsilon<T>());
      check_both<T>(PolynomialKernel{1 / (size * size), 1.0, 2}, rows, basis,
                    20 * kTolerance * epsilon<T>());
      check_both<T>(SigmoidKernel{1 / (size * size), -0.5}, rows, basis, kTolerance * epsilon<T>());
    }
  });
}

TEST("rows too far apart for their squares to be numbers have an rbf of 0, and of 1 if equal") {
  Random random(10);
  const Padded<float> rows(20, 2, 0, random, -1e25, 1e25);
  check_both<float>(RbfKernel{1.0}, rows, rows, 0.0);
}

TEST("chi squares of equal rows are 0 to the bit, of rows without a common entry their sums") {
  for_each_precision([](auto result, auto data) {
    using T = decltype(result);
    using In = decltype(data);
    Random random(11);
    const Padded<In> rows(20, 40, 1, random, 0, 1e3);
    const Padded<T> same = dense_block<T>(ChiSquareKernel{0.7}, rows, rows);
    for (std::size_t i = 0; i < rows.rows(); ++i) CHECK(same(i, i) == 1);
    Padded<In> left(1, 4, 0), right(1, 4, 0);
    for (std::size_t f = 0; f < 4; ++f) left(0, f) = f < 2 ? 1 : 0, right(0, f) = f == 3 ? 2 : 0;
    check_both<T>(ChiSquareKernel{0.25}, left, right, 4 * epsilon<T>());
    CHECK_NEAR(dense_block<T>(ChiSquareKernel{0.25}, left, right)(0, 0), std::exp(-1.0),
               4 * epsilon<T>());
  });
}

TEST("entries near the largest that there are have a chi-square value of 0, and of 1 if equal") {
  const float most = std::numeric_limits<float>::max();
  Padded<float> rows(3, 2, 1);
  for (std::size_t f = 0; f < 2; ++f) rows(0, f) = most, rows(1, f) = most / 3, rows(2, f) = 0;
  const Padded<float> values = dense_block<float>(ChiSquareKernel{2.0}, rows, rows);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) CHECK(values(i, j) == (i == j ? 1.0 : 0.0));
  }
}

}  // namespace
}  // namespace widemargin::tests

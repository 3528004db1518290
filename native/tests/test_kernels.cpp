// The exponential, and blocks of kernel values, dense and sparse.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "random_data.hpp"
#include "reference_blas.hpp"
#include "widemargin/kernels.hpp"
#include "widemargin/simd.hpp"

namespace widemargin::tests {
namespace {

// Above these exp_of_negative gives 0: nearly where exp stops being a normal number.
template <class T>
constexpr double last_exponent() {
  return sizeof(T) == 4 ? 87.0 : 708.0;
}

constexpr double kUlps = 2.0;  // as documented

// Error in units in the last place of the exact value.
template <class T>
double ulps_off(T got, T v) {
  const long double exact = std::exp(-static_cast<long double>(v));
  const auto rounded = static_cast<T>(exact);
  const T unit = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) /
                             static_cast<long double>(unit));
}

template <class T>
void check_exponentials(const std::vector<T>& values) {
  std::vector<T> got = values;
  exp_of_negative(got.data(), got.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = ulps_off(got[i], values[i]);
    worst = off <= worst ? worst : off;  // a NaN stays
  }
  CHECK_NEAR(worst, 0.0, kUlps);
}

template <class T>
void check_exp_accuracy() {
  Random random(1);
  check_exponentials(random.values<T>(100000, 0.0, last_exponent<T>()));
  check_exponentials(random.values<T>(20000, 0.0, 1.0));
  std::vector<T> over_all_magnitudes;
  for (double v = 1e-300; v < last_exponent<T>(); v *= 1.01) {
    over_all_magnitudes.push_back(static_cast<T>(v));
  }
  check_exponentials(over_all_magnitudes);
  // Halves of ln 2: where the argument is cut into a power of two and a rest.
  std::vector<T> borders;
  for (int half = 0; half * 0.34657359 < last_exponent<T>(); ++half) {
    const auto border = static_cast<T>(half * 0.346573590279972654709);
    for (const T towards : {T(0), std::numeric_limits<T>::infinity()}) {
      borders.push_back(std::nextafter(border, towards));
    }
    borders.push_back(border);
  }
  std::erase_if(borders, [](T v) { return !(static_cast<double>(v) < last_exponent<T>()); });
  check_exponentials(borders);
}

TEST("exp_of_negative is within 2 units in the last place, float") { check_exp_accuracy<float>(); }
TEST("exp_of_negative is within 2 units in the last place, double") {
  check_exp_accuracy<double>();
}

template <class T>
void check_exp_ends() {
  using limits = std::numeric_limits<T>;
  std::vector<T> ones = {T(0), -T(0), limits::denorm_min(), limits::min(), limits::epsilon() / 8};
  exp_of_negative(ones.data(), ones.size());
  for (const T value : ones) CHECK(value == 1);

  // Results that would be denormal, or no number at all, are 0.
  const auto end = static_cast<T>(last_exponent<T>());
  std::vector<T> zeros = {end + 1, end + 10, end + 17,      end + 38,
                          2 * end, T(1e30),  limits::max(), limits::infinity()};
  exp_of_negative(zeros.data(), zeros.size());
  for (const T value : zeros) CHECK(value == 0);

  // Between: off by less than the smallest result there is.
  for (int i = 0; i <= 100; ++i) {
    const T v = end + static_cast<T>(i) / 100;
    T got = v;
    exp_of_negative(&got, 1);
    CHECK_NEAR(got, std::exp(-static_cast<double>(v)), std::exp(-last_exponent<T>()));
  }
}

TEST("exp_of_negative at 0, near 0 and where it underflows, float") { check_exp_ends<float>(); }
TEST("exp_of_negative at 0, near 0 and where it underflows, double") { check_exp_ends<double>(); }

template <class T>
void check_exp_lengths() {
  constexpr std::size_t kMargin = 8;
  for (std::size_t start = 0; start < kMargin; ++start) {
    for (std::size_t count = 0; count <= 70; ++count) {
      const Case where("start " + std::to_string(start) + ", count " + std::to_string(count));
      Random random(start * 100 + count);
      const std::vector<T> before = random.values<T>(count + 2 * kMargin, 0.0, 50.0);
      std::vector<T> after = before;
      exp_of_negative(after.data() + start, count);
      bool inside = true, outside = true;
      for (std::size_t i = 0; i < after.size(); ++i) {
        if (i >= start && i < start + count) {
          inside = inside && ulps_off(after[i], before[i]) <= kUlps;
        } else {
          outside = outside && after[i] == before[i];
        }
      }
      CHECK(inside);
      CHECK(outside);
    }
  }
}

TEST("exp_of_negative of any length from any start, and nothing around it, float") {
  check_exp_lengths<float>();
}
TEST("exp_of_negative of any length from any start, and nothing around it, double") {
  check_exp_lengths<double>();
}

template <class T>
void check_absolute_differences() {
  for (std::size_t count = 0; count <= 40; ++count) {
    Random random(count);
    const T x = static_cast<T>(random.uniform(-1, 1));
    const std::vector<T> others = random.values<T>(count + 1, -1, 1);
    std::vector<T> sums = random.values<T>(count + 2, 0, 1);
    std::vector<T> expected = sums;
    for (std::size_t i = 0; i < count; ++i) expected[i + 1] += std::fabs(x - others[i + 1]);
    add_absolute_difference(x, others.data() + 1, sums.data() + 1, count);
    CHECK(sums == expected);
  }
}

TEST("add_absolute_difference is exact, for any length from an odd start") {
  check_absolute_differences<float>();
  check_absolute_differences<double>();
}

TEST("instruction_set names one of three") {
  const std::string name = instruction_set();
  CHECK(name == "avx512" || name == "avx2" || name == "baseline");
}

// ---- kernels

std::string name_of(const LinearKernel&) { return "linear"; }
std::string name_of(const PolynomialKernel& kernel) {
  return "polynomial of degree " + std::to_string(kernel.degree);
}
std::string name_of(const RbfKernel&) { return "rbf"; }
std::string name_of(const LaplacianKernel&) { return "laplacian"; }

struct PairSums {
  double product = 0.0, squared = 0.0, absolute = 0.0;
};

template <class In>
PairSums pair_sums(const Padded<In>& rows, std::size_t i, const Padded<In>& basis, std::size_t j) {
  PairSums sums;
  for (std::size_t f = 0; f < rows.columns(); ++f) {
    const double x = rows(i, f), b = basis(j, f);
    sums.product += x * b;
    sums.squared += (x - b) * (x - b);
    sums.absolute += std::fabs(x - b);
  }
  return sums;
}

double naive_value(const LinearKernel&, const PairSums& sums) { return sums.product; }
double naive_value(const PolynomialKernel& kernel, const PairSums& sums) {
  return std::pow(kernel.gamma * sums.product + kernel.coef0, kernel.degree);
}
double naive_value(const RbfKernel& kernel, const PairSums& sums) {
  return std::exp(-kernel.gamma * sums.squared);
}
double naive_value(const LaplacianKernel& kernel, const PairSums& sums) {
  return std::exp(-kernel.gamma * sums.absolute);
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
  kernel_block<T>(kernel, rows.view(), basis.view(), out.view(), reference_blas(), n_threads);
  CHECK(out.padding_intact());
  return out;
}

template <class T, class In, class Kernel>
Padded<T> sparse_block(const Kernel& kernel, const Padded<In>& rows, const Padded<In>& basis,
                       int n_threads = 1) {
  const Csr<In> sparse_rows = as_csr(rows), sparse_basis = as_csr(basis);
  Padded<T> out(rows.rows(), basis.rows(), 3);
  kernel_block<T>(kernel, sparse_rows.view(), sparse_basis.view(), out.view(), reference_blas(),
                  n_threads);
  CHECK(out.padding_intact());
  return out;
}

template <class Function>
void for_each_kernel(const Function& function) {
  function(LinearKernel{});
  function(PolynomialKernel{0.4, 1.0, 3});
  function(PolynomialKernel{0.7, 0.0, 2});
  function(PolynomialKernel{0.5, -0.5, 1});
  function(PolynomialKernel{0.5, 0.5, 0});
  function(PolynomialKernel{0.1, 0.5, 7});
  function(RbfKernel{0.3});
  function(LaplacianKernel{0.2});
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
      Padded<In> rows(shape.rows, shape.features, 2, random, -1.5, 1.5);
      Padded<In> basis(shape.basis, shape.features, 5, random, -1.5, 1.5);
      for (const bool zeros : {false, true}) {
        if (zeros) make_sparse(rows, random), make_sparse(basis, random);
        for_each_kernel([&](const auto& kernel) {
          const Case where(name_of(kernel) + (zeros ? ", zeros, " : ", no zeros, ") +
                           describe(shape));
          const Padded<T> dense = dense_block<T>(kernel, rows, basis);
          const Padded<T> sparse = sparse_block<T>(kernel, rows, basis);
          check_values(kernel, rows, basis, dense, tolerance);
          check_values(kernel, rows, basis, sparse, tolerance);
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

TEST("kernel blocks are the same to the bit for 1, 2 and 5 threads") {
  for_each_precision([](auto result, auto data) {
    using T = decltype(result);
    Random random(5);
    Padded<decltype(data)> rows(2000, 7, 1, random, -1, 1), basis(11, 7, 0, random, -1, 1);
    make_sparse(rows, random);
    for_each_kernel([&](const auto& kernel) {
      const Case where(name_of(kernel));
      const auto dense = dense_block<T>(kernel, rows, basis).entries();
      const auto sparse = sparse_block<T>(kernel, rows, basis).entries();
      for (const int n_threads : {2, 5}) {
        CHECK(dense_block<T>(kernel, rows, basis, n_threads).entries() == dense);
        CHECK(sparse_block<T>(kernel, rows, basis, n_threads).entries() == sparse);
      }
    });
  });
}

template <class Function>
void for_each_distance_kernel(double gamma, const Function& function) {
  const auto run = [&](const auto& kernel) {
    const Case where(name_of(kernel));
    function(kernel);
  };
  run(RbfKernel{gamma});
  run(LaplacianKernel{gamma});
}

TEST("a kernel of distances is 1 between a row and itself, and never above") {
  Random random(6);
  const Padded<float> rows(300, 9, 1, random, -3, 3);
  for_each_distance_kernel(0.3, [&](const auto& kernel) {
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
void check_both(const Kernel& kernel, const Padded<In>& rows, const Padded<In>& basis,
                double tolerance) {
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
    }
  });
}

TEST("rows too far apart for their squares to be numbers have an rbf of 0, and of 1 if equal") {
  Random random(10);
  const Padded<float> rows(20, 2, 0, random, -1e25, 1e25);
  check_both<float>(RbfKernel{1.0}, rows, rows, 0.0);
}

}  // namespace
}  // namespace widemargin::tests

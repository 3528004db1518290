// Threads, the BLAS calls, and each pass over the rows: against plain loops in double precision,
// and the same to the bit for any number of threads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "check.hpp"
#include "examples.hpp"
#include "random_data.hpp"
#include "random_targets.hpp"
#include "reference_blas.hpp"
#include "widemargin/parallel.hpp"
#include "widemargin/passes.hpp"

namespace widemargin::tests {
namespace {

using Numbers = std::vector<double>;
using Indices = std::vector<std::int32_t>;

constexpr int kThreads[] = {1, 2, 5};

// ---- threads

TEST("chunks cover all rows once, in order, whatever the number of threads") {
  for (const std::size_t rows : {0, 1, 255, 256, 257, 1000, 4096, 5000}) {
    for (const int n_threads : kThreads) {
      std::vector<std::pair<std::size_t, std::size_t>> ranges(kMaxChunks);
      std::atomic<std::size_t> calls = 0;
      for_each_chunk(rows, n_threads, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        ranges[chunk] = {begin, end};
        ++calls;
      });
      CHECK(calls == chunk_count(rows));
      std::size_t reached = 0;
      for (std::size_t chunk = 0; chunk < calls; ++chunk) {
        CHECK(ranges[chunk].first == reached);
        reached = ranges[chunk].second;
      }
      CHECK(reached == rows);
    }
  }
}

TEST("threads are woken for work that is worth it") {
  CHECK(threads_for(0, 100, 8) == 1);
  CHECK(threads_for(250, 100, 8) == 3);
  CHECK(threads_for(10'000, 100, 8) == 8);
  CHECK(threads_for(10'000, 100, 0) == 1);
}

TEST("an exception of a task reaches the caller, from one thread or several") {
  for (const int n_threads : kThreads) {
    for (const std::size_t count : {1, 2, 100}) {
      for (const std::size_t culprit : {std::size_t{0}, count - 1}) {
        std::string caught;
        try {
          for_each_index(count, n_threads, [&](std::size_t index) {
            if (index == culprit) throw std::runtime_error("task " + std::to_string(index));
          });
        } catch (const std::runtime_error& error) {
          caught = error.what();
        }
        CHECK(caught == "task " + std::to_string(culprit));
      }
    }
    bool caught = false;
    try {
      for_each_index(20, n_threads, [](std::size_t) { throw std::bad_alloc(); });
    } catch (const std::bad_alloc&) {
      caught = true;
    }
    CHECK(caught);
  }
}

// ---- BLAS

// Element (i, j) of a matrix or of its transpose.
template <class T>
double entry(const Padded<T>& matrix, bool transposed, std::size_t i, std::size_t j) {
  return transposed ? matrix(j, i) : matrix(i, j);
}

template <class T>
void check_gemm() {
  constexpr std::size_t m = 3, n = 4, k = 5;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Random random(1);
      const Padded<T> a(ta ? k : m, ta ? m : k, 1, random, -1, 1);
      const Padded<T> b(tb ? n : k, tb ? k : n, 2, random, -1, 1);
      const Padded<T> before(m, n, 3, random, -1, 1);
      for (const T beta : {T(0), T(0.5)}) {
        Padded<T> c = before;
        if (beta == 0) c = Padded<T>(m, n, 3);  // NaN, which must not be read
        reference_blas().gemm<T>(ta, tb, m, n, k, T(2), a.view().data, a.view().stride,
                                 b.view().data, b.view().stride, beta, c.view().data,
                                 c.view().stride);
        CHECK(c.padding_intact());
        for (std::size_t i = 0; i < m; ++i) {
          for (std::size_t j = 0; j < n; ++j) {
            double sum = 0.0;
            for (std::size_t l = 0; l < k; ++l) sum += entry(a, ta, i, l) * entry(b, tb, l, j);
            CHECK_NEAR(c(i, j), 2 * sum + static_cast<double>(beta) * before(i, j),
                       20 * epsilon<T>());
          }
        }
      }
    }
  }
}

TEST("Blas::gemm multiplies row-major matrices, transposed or not, with strides") {
  check_gemm<float>();
  check_gemm<double>();
}

TEST("Blas factorises and solves with the leading part of a row-major matrix with stride") {
  constexpr std::size_t n = 6, rows = 9;
  Random random(2);
  const Blas blas = reference_blas();
  const Padded<double> a(rows, n, 2, random, -1, 1), right(2, n, 1, random, -1, 1);
  Numbers gram(n * n, 0.0), full(n * n, 0.0);
  blas.add_gram<double>(n, rows, a.view().data, a.view().stride, gram.data());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t l = 0; l < rows; ++l) full[i * n + j] += a(l, i) * a(l, j);
      CHECK_NEAR(gram[i * n + j], i >= j ? full[i * n + j] : 0.0, 1e-14);
    }
  }

  Padded<double> wide(n, n, 3);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) wide(i, j) = gram[i * n + j];
  }
  CHECK(blas.cholesky(n, wide.view().data, wide.view().stride));
  CHECK(wide.padding_intact());
  CHECK(blas.cholesky(n, gram.data(), n));
  Padded<double> half = right, whole(2, n, 0);
  blas.forward_solve(n, 2, wide.view().data, wide.view().stride, half.view().data,
                     half.view().stride);
  CHECK(half.padding_intact());
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t i = 0; i < n; ++i) {
      whole(r, i) = right(r, i);
      double sum = 0.0;
      for (std::size_t j = 0; j <= i; ++j) sum += gram[i * n + j] * half(r, j);
      CHECK_NEAR(sum, right(r, i), 1e-12);
    }
  }
  blas.cholesky_solve(n, 2, gram.data(), whole.view().data);
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0.0;
      for (std::size_t j = 0; j < n; ++j) sum += full[i * n + j] * whole(r, j);
      CHECK_NEAR(sum, right(r, i), 1e-11);
    }
  }

  Numbers indefinite = {1, 0, 2, 1};
  CHECK(!blas.cholesky(2, indefinite.data(), 2));
}

TEST("Blas::subtract_outer takes A A' from the lower triangle") {
  constexpr std::size_t n = 4, columns = 3, stride = 7;
  Random random(3);
  const Padded<double> a(n, columns, stride - columns, random, -1, 1);
  Padded<double> c(n, n, stride - n, random, -1, 1);
  const Padded<double> before = c;
  reference_blas().subtract_outer(n, columns, a.view().data, c.view().data, stride);
  CHECK(c.padding_intact());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double expected = before(i, j);
      for (std::size_t l = 0; l < columns && j <= i; ++l) expected -= a(i, l) * a(j, l);
      CHECK_NEAR(c(i, j), expected, 1e-14);
    }
  }
}

// ---- passes

struct Shape {
  std::size_t rows, columns, outputs;
};
// Fewer rows than a tile; several chunks; several threads; chunks of several tiles.
constexpr Shape kShapes[] = {{0, 2, 3},    {1, 1, 2},    {100, 7, 3},
                             {1000, 5, 4}, {1500, 4, 3}, {5000, 3, 2}};

std::string describe(const Shape& shape) {
  return std::to_string(shape.rows) + " rows, " + std::to_string(shape.columns) + " columns, " +
         std::to_string(shape.outputs) + " outputs";
}

// The same numbers in double precision, which is what the plain loops see.
template <class T>
Numbers widened(Matrix<const T> matrix, std::size_t row) {
  return Numbers(matrix.row(row), matrix.row(row) + matrix.columns);
}

template <class T, class Loss>
struct Problem {
  Shape shape;
  Loss loss;
  Padded<T> columns, scores, direction, moved;
  std::vector<T> weights;
  RandomTargets drawn;

  Problem(const Loss& a_loss, const Shape& a_shape, Random random)
      : shape(a_shape),
        loss(a_loss),
        columns(shape.rows, shape.columns, 3, random, -1, 1),
        scores(shape.rows, shape.outputs, 2, random, -1.5, 1.5),
        direction(shape.columns, shape.outputs, 1, random, -1, 1),
        moved(shape.rows, shape.outputs, 4, random, -1, 1),
        weights(random.values<T>(shape.rows, 0.1, 3.0)),
        drawn(shape.rows, shape.outputs, random) {
    for (std::size_t i = 0; i < shape.rows; ++i) {
      if (i % 5 == 2) weights[i] = 0;
      if (i % 3 == 1) satisfy(i);
    }
  }

  // Gives a row scores at which a hinge has neither gradient nor curvature.
  void satisfy(std::size_t i) {
    for (std::size_t c = 0; c < shape.outputs; ++c) {
      const bool wanted = std::is_same_v<typename Loss::Targets, ClassTargets>
                              ? static_cast<std::size_t>(drawn.labels[i]) == c
                              : drawn.signs[i * shape.outputs + c] > 0;
      scores(i, c) = wanted ? T(3) : T(-3);
    }
  }

  typename Loss::Targets targets() const { return drawn.of<Loss>(); }

  ScoredRows<T> scored() const {
    return {Judge<Loss>{loss, targets()}, scores.view(), weights.data()};
  }

  double weight(std::size_t i) const { return static_cast<double>(weights[i]); }
  auto target(std::size_t i) const { return targets()(i, shape.outputs); }

  Indices all_rows() const {
    Indices rows(shape.rows);
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
  }
  std::vector<Indices> row_choices() const {
    Indices some, last;
    for (std::size_t i = 0; i < shape.rows; ++i) {
      if (i % 3 != 1) some.push_back(static_cast<std::int32_t>(i));
    }
    if (shape.rows > 0) last.push_back(static_cast<std::int32_t>(shape.rows - 1));
    return {all_rows(), some, last, {}};
  }
};

template <class T, class Function>
void for_each_problem_of(const Function& function) {
  for (const Shape& shape : kShapes) {
    for_each_example<Losses>([&](const auto& loss) {
      const Case where(type_name<T>() + ", " + name_of(loss) + ", " + describe(shape));
      function(Problem<T, std::decay_t<decltype(loss)>>(loss, shape, Random(shape.rows)));
    });
  }
}

template <class Function>
void for_each_problem(const Function& function) {
  for_each_problem_of<float>(function);
  for_each_problem_of<double>(function);
}

// For passes that know no loss.
template <class Function>
void for_each_plain_problem(const Function& function) {
  for (const Shape& shape : kShapes) {
    const Case where(describe(shape));
    function(Problem<float, WestonWatkins>({}, shape, Random(shape.rows)));
    function(Problem<double, WestonWatkins>({}, shape, Random(shape.rows)));
  }
}

template <class T, class Loss>
T number_type(const Problem<T, Loss>&);
template <class Problem>
using NumberType = decltype(number_type(std::declval<Problem>()));

// What `pass` (of a number of threads) gives, once it gave the same for each number of threads.
template <class Pass>
Numbers same_for_all_threads(const Pass& pass) {
  const Numbers first = pass(kThreads[0]);
  for (const int n_threads : kThreads) {
    const Case where(std::to_string(n_threads) + " threads");
    CHECK(pass(n_threads) == first);
  }
  return first;
}

// `scale` bounds the rounding error of sums of terms that cancel: the sum of their sizes.
template <class T>
void check_all_near(const Numbers& got, const Numbers& expected, double scale = 1.0) {
  CHECK(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size() && i < expected.size(); ++i) {
    CHECK_NEAR(got[i], expected[i], 50 * epsilon<T>() * (scale + std::fabs(expected[i])));
  }
}

Numbers joined(std::initializer_list<Numbers> parts) {
  Numbers out;
  for (const Numbers& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

TEST("derivatives: loss, weighted gradient and curvature, and the rows that have any") {
  for_each_problem([](const auto& problem) {
    using T = NumberType<decltype(problem)>;
    const std::size_t n = problem.shape.rows, k = problem.shape.outputs;
    const Numbers got = same_for_all_threads([&](int n_threads) {
      Padded<T> gradient(n, k, 1), curvature(n, k, 2);
      const auto active = std::make_unique<bool[]>(n + 1);
      const double value =
          derivatives(problem.scored(), gradient.view(), curvature.view(), active.get(), n_threads);
      CHECK(gradient.padding_intact() && curvature.padding_intact());
      return joined({gradient.entries(),
                     curvature.entries(),
                     Numbers(active.get(), active.get() + n),
                     {value}});
    });

    Numbers gradient, curvature, active, g(k), h(k);
    double value = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      const Numbers f = widened(problem.scores.view(), i);
      value += problem.weight(i) * problem.loss.gradient(f.data(), problem.target(i), k, g.data());
      problem.loss.hessian_diagonal(f.data(), problem.target(i), k, h.data());
      bool any = false;
      for (std::size_t c = 0; c < k; ++c) {
        gradient.push_back(problem.weight(i) * g[c]);
        curvature.push_back(problem.weight(i) * h[c]);
        any = any || gradient.back() != 0 || curvature.back() != 0;
      }
      active.push_back(any ? 1.0 : 0.0);
      CHECK(!any || problem.weight(i) > 0);
    }
    check_all_near<T>(got, joined({gradient, curvature, active, {value}}), 10.0);
  });
}

TEST("loss_value and along_step: the loss along a line, and its two derivatives") {
  for_each_problem([](const auto& problem) {
    using T = NumberType<decltype(problem)>;
    const std::size_t n = problem.shape.rows, k = problem.shape.outputs;
    for (const double step : {0.0, 0.75, -2.0}) {
      const Numbers got = same_for_all_threads([&](int n_threads) {
        const AlongStep along = along_step(problem.scored(), problem.moved.view(), step, n_threads);
        return Numbers{along.value, along.slope, along.curvature};
      });
      Numbers expected(3, 0.0), g(k), d(k);
      double scale = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        Numbers f = widened(problem.scores.view(), i);
        const Numbers u = widened(problem.moved.view(), i);
        for (std::size_t c = 0; c < k; ++c) f[c] += step * u[c];
        const double weight = problem.weight(i);
        expected[0] += weight * problem.loss.gradient(f.data(), problem.target(i), k, g.data());
        problem.loss.hessian_product(f.data(), problem.target(i), k, u.data(), d.data());
        for (std::size_t c = 0; c < k; ++c) {
          expected[1] += weight * g[c] * u[c];
          expected[2] += weight * d[c] * u[c];
          scale += weight * std::fabs(g[c]) + weight * std::fabs(d[c]);
        }
      }
      check_all_near<T>(got, expected, 1.0 + scale);

      if (step == 0.0) {
        const Numbers value = same_for_all_threads(
            [&](int n_threads) { return Numbers{loss_value(problem.scored(), n_threads)}; });
        check_all_near<T>(value, {expected[0]}, 1.0);
      }
    }
  });
}

TEST("curved_rows: the weighted Hessian of each row times its direction") {
  for_each_problem([](const auto& problem) {
    using T = NumberType<decltype(problem)>;
    const std::size_t n = problem.shape.rows, k = problem.shape.outputs;
    const Numbers got = same_for_all_threads([&](int n_threads) {
      Padded<T> out(n, k, 1);
      curved_rows(problem.scored(), problem.moved.view(), out.view(), n_threads);
      CHECK(out.padding_intact());
      return out.entries();
    });
    Numbers expected, d(k);
    for (std::size_t i = 0; i < n; ++i) {
      const Numbers f = widened(problem.scores.view(), i), u = widened(problem.moved.view(), i);
      problem.loss.hessian_product(f.data(), problem.target(i), k, u.data(), d.data());
      for (const double entry : d) expected.push_back(problem.weight(i) * entry);
    }
    check_all_near<T>(got, expected, 10.0);
  });
}

TEST("hessian_product: Z' W H Z V over the chosen rows") {
  for_each_problem([](const auto& problem) {
    using T = NumberType<decltype(problem)>;
    const std::size_t columns = problem.shape.columns, k = problem.shape.outputs;
    for (const Indices& chosen : problem.row_choices()) {
      const Case where(std::to_string(chosen.size()) + " chosen");
      const Numbers got = same_for_all_threads([&](int n_threads) {
        Numbers out(columns * k, std::numeric_limits<double>::quiet_NaN());
        hessian_product(problem.scored(), problem.columns.view(), RowIndices(chosen),
                        problem.direction.view(), out.data(), reference_blas(), n_threads);
        return out;
      });
      Numbers expected(columns * k, 0.0), u(k), d(k);
      double scale = 1.0;
      for (const std::int32_t index : chosen) {
        const auto i = static_cast<std::size_t>(index);
        for (std::size_t c = 0; c < k; ++c) {
          u[c] = 0.0;
          for (std::size_t j = 0; j < columns; ++j) {
            u[c] += problem.columns(i, j) * problem.direction(j, c);
          }
        }
        const Numbers f = widened(problem.scores.view(), i);
        problem.loss.hessian_product(f.data(), problem.target(i), k, u.data(), d.data());
        for (std::size_t c = 0; c < k; ++c) {
          scale += problem.weight(i) * std::fabs(d[c]);
          for (std::size_t j = 0; j < columns; ++j) {
            expected[j * k + c] += problem.weight(i) * problem.columns(i, j) * d[c];
          }
        }
      }
      check_all_near<T>(got, expected, scale);
    }
  });
}

TEST("scores: Z V") {
  for_each_plain_problem([](const auto& problem) {
    using T = NumberType<decltype(problem)>;
    const std::size_t n = problem.shape.rows, k = problem.shape.outputs;
    const Numbers got = same_for_all_threads([&](int n_threads) {
      Padded<T> out(n, k, 2);
      scores<T>(problem.columns.view(), problem.direction.view(), out.view(), reference_blas(),
                n_threads);
      CHECK(out.padding_intact());
      return out.entries();
    });
    Numbers expected;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t c = 0; c < k; ++c) {
        double sum = 0.0;
        for (std::size_t j = 0; j < problem.shape.columns; ++j) {
          sum += problem.columns(i, j) * problem.direction(j, c);
        }
        expected.push_back(sum);
      }
    }
    check_all_near<T>(got, expected);
  });
}

TEST("transposed_product: Z' G over the chosen rows") {
  for_each_plain_problem([](const auto& problem) {
    using T = NumberType<decltype(problem)>;
    const std::size_t columns = problem.shape.columns, k = problem.shape.outputs;
    for (const Indices& chosen : problem.row_choices()) {
      const Case where(std::to_string(chosen.size()) + " chosen");
      const Numbers got = same_for_all_threads([&](int n_threads) {
        Numbers out(columns * k, std::numeric_limits<double>::quiet_NaN());
        transposed_product<T>(problem.columns.view(), chosen, problem.moved.view(), out.data(),
                              reference_blas(), n_threads);
        return out;
      });
      Numbers expected(columns * k, 0.0);
      for (const std::int32_t index : chosen) {
        const auto i = static_cast<std::size_t>(index);
        for (std::size_t j = 0; j < columns; ++j) {
          for (std::size_t c = 0; c < k; ++c) {
            expected[j * k + c] += problem.columns(i, j) * problem.moved(i, c);
          }
        }
      }
      check_all_near<T>(got, expected, 1.0 + static_cast<double>(chosen.size()));
    }
  });
}

// Positive for most rows, 0 for some, of which a cutoff leaves out more.
template <class T>
Padded<T> random_curvature(std::size_t rows, std::size_t outputs) {
  Random random(9);
  Padded<T> curvature(rows, outputs, 2, random, 0.0, 2.0);
  for (std::size_t i = 0; i < rows; i += 4) curvature(i, i % outputs) = 0;
  return curvature;
}

// What is asked of candidate columns, all rows in one block.
template <class T>
struct CandidateProblem {
  Matrix<const T> columns;
  Matrix<const T> candidates;
  Matrix<const T> gradient;
  Matrix<const T> curvature;
  Matrix<const double> overlap;
  Matrix<const double> residual;
};

// The matrices of `add_weighted_grams` over two blocks of rows, factorised: sums that fail in
// single precision are taken again in double.
template <class T>
Numbers factorised(Matrix<const T> columns, Matrix<const T> candidates, const Indices& chosen,
                   Matrix<const T> curvature, const std::vector<T>& least, int n_threads) {
  const std::size_t width = columns.columns + candidates.columns, k = curvature.columns;
  const auto half = static_cast<std::ptrdiff_t>(chosen.size() / 2);
  const Indices blocks[] = {{chosen.begin(), chosen.begin() + half},
                            {chosen.begin() + half, chosen.end()}};
  for (const bool precise : {false, true}) {
    Numbers matrices(k * width * width, 0.0);
    for (const Indices& block : blocks) {
      add_weighted_grams<T>(columns, candidates, block, curvature, least, precise, matrices.data(),
                            reference_blas(), n_threads);
    }
    const bool last = precise || std::is_same_v<T, double>;
    const auto failed = std::make_unique<bool[]>(k);
    factorise(k, columns.columns, width, matrices.data(), last, failed.get(), reference_blas(),
              n_threads);
    if (std::none_of(failed.get(), failed.get() + k, [](bool one) { return one; })) return matrices;
  }
  return {};
}

template <class T>
void curvature_factors(Matrix<const T> columns, const Indices& chosen, Matrix<const T> curvature,
                       double cutoff, double* factors, int n_threads) {
  std::vector<T> least(curvature.columns, T(0));
  for (const std::int32_t index : chosen) {
    const T* row = curvature.row(static_cast<std::size_t>(index));
    for (std::size_t r = 0; r < least.size(); ++r) least[r] = std::max(least[r], row[r]);
  }
  for (T& entry : least) entry *= static_cast<T>(cutoff);
  const Matrix<const T> none{columns.data, columns.rows, 0, columns.stride};
  const Numbers found = factorised<T>(columns, none, chosen, curvature, least, n_threads);
  std::copy(found.begin(), found.end(), factors);
}

template <class T>
void candidate_model(const CandidateProblem<T>& problem, const Indices& chosen, double* slope,
                     double* bend, int n_threads) {
  const std::size_t count = problem.candidates.columns, k = problem.gradient.columns;
  Numbers slopes(count * k);
  transposed_product<T>(problem.candidates, chosen, problem.gradient, slopes.data(),
                        reference_blas(), n_threads);
  const std::vector<T> least(problem.curvature.columns, T(0));
  Numbers matrices = factorised<T>(problem.columns, problem.candidates, chosen, problem.curvature,
                                   least, n_threads);
  const CandidateSums sums{contiguous<const double>(slopes.data(), count, k), problem.overlap,
                           problem.residual};
  widemargin::candidate_model(sums, problem.curvature.columns, matrices.data(), slope, bend,
                              reference_blas(), n_threads);
}

// Checks that (I + Z' diag(h) Z) solution = right for output r.
template <class T, class Problem>
void check_solves(const Problem& problem, const Indices& chosen, const Padded<T>& curvature,
                  std::size_t r, double cutoff, const Padded<double>& solution,
                  const Padded<double>& right, std::size_t column) {
  const std::size_t columns = problem.shape.columns;
  double largest = 0.0, scale = 1.0;
  for (const std::int32_t index : chosen) {
    largest = std::max(largest, curvature(static_cast<std::size_t>(index), r));
  }
  Numbers product(columns);
  for (std::size_t j = 0; j < columns; ++j) product[j] = solution(j, column);
  for (const std::int32_t index : chosen) {
    const auto i = static_cast<std::size_t>(index);
    const double h = curvature(i, r);
    if (h <= cutoff * largest) continue;
    double along = 0.0;
    for (std::size_t j = 0; j < columns; ++j) along += problem.columns(i, j) * solution(j, column);
    for (std::size_t j = 0; j < columns; ++j) product[j] += h * problem.columns(i, j) * along;
    scale += h;
  }
  for (std::size_t j = 0; j < columns; ++j) {
    CHECK_NEAR(product[j], right(j, column), 50 * epsilon<T>() * scale);
  }
}

TEST("curvature_factors and precondition solve with I + Z' H Z, an H for each output") {
  for_each_plain_problem([](const auto& problem) {
    using T = NumberType<decltype(problem)>;
    const std::size_t columns = problem.shape.columns, k = problem.shape.outputs;
    const Padded<T> curvature = random_curvature<T>(problem.shape.rows, k);
    Random random(10);
    const Padded<double> right(columns, k, 1, random, -1, 1);
    for (const Indices& chosen : problem.row_choices()) {
      for (const double cutoff : {0.0, 0.5}) {
        const Case where(std::to_string(chosen.size()) + " chosen, cutoff " +
                         std::to_string(cutoff));
        const Numbers factors = same_for_all_threads([&](int n_threads) {
          Numbers out(k * columns * columns, std::numeric_limits<double>::quiet_NaN());
          curvature_factors<T>(problem.columns.view(), chosen, curvature.view(), cutoff, out.data(),
                               n_threads);
          return out;
        });
        Padded<double> solution(columns, k, 2);
        same_for_all_threads([&](int n_threads) {
          precondition(factors, right.view(), solution.view(), reference_blas(), n_threads);
          return solution.entries();
        });
        CHECK(solution.padding_intact());
        for (std::size_t r = 0; r < k; ++r) {
          check_solves<T>(problem, chosen, curvature, r, cutoff, solution, right, r);
        }
      }
    }
  });
}

TEST("precondition: a single factor serves all columns") {
  const Problem<double, WestonWatkins> problem({}, {300, 6, 4}, Random(11));
  const Padded<double> curvature = random_curvature<double>(300, 1);
  const Indices chosen = problem.all_rows();
  Numbers factor(36);
  curvature_factors<double>(problem.columns.view(), chosen, curvature.view(), 0.0, factor.data(),
                            2);
  Random random(12);
  const Padded<double> right(6, 4, 0, random, -1, 1);
  Padded<double> solution(6, 4, 0);
  precondition(factor, right.view(), solution.view(), reference_blas(), 2);
  for (std::size_t column = 0; column < 4; ++column) {
    check_solves<double>(problem, chosen, curvature, 0, 0.0, solution, right, column);
  }
}

TEST("a large curvature on fewer rows than columns is factorised in float as in double") {
  const Problem<float, WestonWatkins> problem({}, {20, 40, 1}, Random(16));
  const Indices chosen = problem.all_rows();
  Random random(17);
  const Padded<float> candidates(20, 3, 0, random, -1, 1);
  const Padded<double> residual(40, 1, 0, random, -1, 1);
  const Numbers overlap = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  for (const float h : {1e3f, 1e6f, 1e7f, 1e8f, 1e10f}) {
    const Case where("curvature " + std::to_string(h));
    const std::vector<float> curvature(20, h);
    const Matrix<const float> column = contiguous(curvature.data(), 20, 1);
    Numbers factor(40 * 40), slope(3), bend(9);
    curvature_factors<float>(problem.columns.view(), chosen, column, 0.01, factor.data(), 1);
    candidate_model<float>({problem.columns.view(), candidates.view(), problem.moved.view(), column,
                            contiguous(overlap.data(), 3, 3), residual.view()},
                           chosen, slope.data(), bend.data(), 1);
    for (const double entry : joined({factor, slope, bend})) CHECK(std::isfinite(entry));
  }
}

TEST("a curvature that leaves nothing of the 1 on the diagonal is factorised all the same") {
  // Columns that are multiples of one another but for a share below rounding.
  constexpr std::size_t rows = 200, columns = 12;
  Random random(18);
  Padded<double> drawn(rows, columns, 0, random, -1, 1);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 1; j < columns; ++j) {
      drawn(i, j) = (1.0 + static_cast<double>(j)) * drawn(i, 0) + 1e-9 * drawn(i, j);
    }
  }
  const Padded<double>& used = drawn;
  const Padded<double> candidates(rows, 2, 0, random, -1, 1), gradient(rows, 1, 0, random, -1, 1);
  const Padded<double> residual(columns, 1, 0, random, -1, 1);
  const Numbers overlap = {1, 0, 0, 1};
  const Indices chosen = [] {
    Indices all(rows);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }();
  for (const double h : {1e12, 1e16, 1e20, 1e30, 1e60}) {
    const Case where("curvature " + std::to_string(h));
    const Numbers curvature(rows, h);
    const Matrix<const double> column = contiguous(curvature.data(), rows, 1);
    Numbers factor(columns * columns), slope(2), bend(4);
    curvature_factors<double>(used.view(), chosen, column, 0.01, factor.data(), 1);
    candidate_model<double>({used.view(), candidates.view(), gradient.view(), column,
                             contiguous(overlap.data(), 2, 2), residual.view()},
                            chosen, slope.data(), bend.data(), 1);
    for (const double entry : joined({factor, slope, bend})) CHECK(std::isfinite(entry));
    // The factor is that of a matrix near the one that was meant.
    for (std::size_t j = 0; j < columns; ++j) {
      double squared = 0.0, meant = 1.0;
      for (std::size_t i = 0; i <= j; ++i) {
        squared += factor[j * columns + i] * factor[j * columns + i];
      }
      for (std::size_t i = 0; i < rows; ++i) meant += h * used(i, j) * used(i, j);
      CHECK_NEAR(squared / meant, 1.0, 1e-9);
    }
  }
}

TEST("curvature_factors says so where the curvature is no number") {
  const Problem<double, WestonWatkins> problem({}, {300, 6, 4}, Random(13));
  Padded<double> curvature = random_curvature<double>(300, 4);
  curvature(100, 2) = std::numeric_limits<double>::quiet_NaN();
  const Indices chosen = problem.all_rows();
  for (const int n_threads : kThreads) {
    Numbers factors(4 * 36);
    std::string message;
    try {
      curvature_factors<double>(problem.columns.view(), chosen, std::as_const(curvature).view(),
                                0.01, factors.data(), n_threads);
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    CHECK(message.find("not finite") != std::string::npos);
  }
}

TEST("orthogonalise: takes what the columns before express out of new columns") {
  for_each_plain_problem([](const auto& problem) {
    using T = NumberType<decltype(problem)>;
    constexpr std::size_t fresh = 3;
    const std::size_t n = problem.shape.rows;
    for (const std::size_t columns : {std::size_t{0}, problem.shape.columns}) {
      const Case where(std::to_string(columns) + " columns before");
      Random random(14);
      const Padded<T> coordinates(fresh, columns, columns == 0 ? 0 : 1, random, -1, 1);
      const Padded<T> before(n, fresh, 2, random, -1, 1);
      Matrix<const T> used = problem.columns.view();
      used.columns = columns;
      const Numbers got = same_for_all_threads([&](int n_threads) {
        Padded<T> out = before;
        orthogonalise<T>(used, coordinates.view(), out.view(), reference_blas(), n_threads);
        CHECK(out.padding_intact());
        return out.entries();
      });
      Numbers expected;
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < fresh; ++j) {
          double rest = before(i, j);
          for (std::size_t c = 0; c < columns; ++c) {
            rest -= problem.columns(i, c) * coordinates(j, c);
          }
          expected.push_back(rest);
        }
      }
      check_all_near<T>(got, expected);
    }
  });
}

// X (n x count) with A X = B for a positive definite A, by elimination.
Numbers solved(Numbers a, Numbers b, std::size_t n, std::size_t count) {
  for (std::size_t pivot = 0; pivot < n; ++pivot) {
    for (std::size_t i = 0; i < n; ++i) {
      if (i == pivot) continue;
      const double factor = a[i * n + pivot] / a[pivot * n + pivot];
      for (std::size_t j = 0; j < n; ++j) a[i * n + j] -= factor * a[pivot * n + j];
      for (std::size_t j = 0; j < count; ++j) b[i * count + j] -= factor * b[pivot * count + j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < count; ++j) b[i * count + j] /= a[i * n + i];
  }
  return b;
}

// sum over the chosen rows of left(i, a) h_i right(i, b), with h column r of `curvature`
template <class T>
Numbers weighted_products(Matrix<const T> left, Matrix<const T> right, const Indices& chosen,
                          const Padded<T>& curvature, std::size_t r) {
  Numbers out(left.columns * right.columns, 0.0);
  for (const std::int32_t index : chosen) {
    const auto i = static_cast<std::size_t>(index);
    for (std::size_t a = 0; a < left.columns; ++a) {
      for (std::size_t b = 0; b < right.columns; ++b) {
        out[a * right.columns + b] += static_cast<double>(left.row(i)[a]) * curvature(i, r) *
                                      static_cast<double>(right.row(i)[b]);
      }
    }
  }
  return out;
}

// slope_r, then bend_r, by the formulas of the header.
template <class T>
Numbers naive_candidate_model(const CandidateProblem<T>& problem, const Indices& chosen,
                              const Padded<T>& curvature, std::size_t r) {
  const std::size_t columns = problem.columns.columns, count = problem.candidates.columns;
  Numbers inner = weighted_products(problem.columns, problem.columns, chosen, curvature, r);
  for (std::size_t j = 0; j < columns; ++j) inner[j * columns + j] += 1.0;
  const Numbers cross =
      weighted_products(problem.columns, problem.candidates, chosen, curvature, r);
  Numbers bend = weighted_products(problem.candidates, problem.candidates, chosen, curvature, r);
  const Numbers solution = solved(inner, cross, columns, count);
  Numbers slope(count, 0.0);
  for (std::size_t a = 0; a < count; ++a) {
    for (const std::int32_t index : chosen) {
      const auto i = static_cast<std::size_t>(index);
      slope[a] += static_cast<double>(problem.candidates.row(i)[a]) *
                  static_cast<double>(problem.gradient.row(i)[r]);
    }
    for (std::size_t j = 0; j < columns; ++j) {
      slope[a] -= solution[j * count + a] * problem.residual.row(j)[r];
    }
    for (std::size_t b = 0; b < count; ++b) {
      bend[a * count + b] += problem.overlap.row(a)[b];
      for (std::size_t j = 0; j < columns; ++j) {
        bend[a * count + b] -= cross[j * count + a] * solution[j * count + b];
      }
    }
  }
  return joined({slope, bend});
}

TEST("candidate_model: slope and curvature of candidates, the columns solved for") {
  for_each_plain_problem([](const auto& problem) {
    using T = NumberType<decltype(problem)>;
    constexpr std::size_t count = 4;
    const std::size_t n = problem.shape.rows, k = problem.shape.outputs;
    const Padded<T> curvature = random_curvature<T>(n, k);
    Random random(15);
    const Padded<T> candidates(n, count, 1, random, -1, 1);
    Padded<double> overlap(count, count, 2, random, -0.2, 0.2);
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < a; ++b) overlap(b, a) = overlap(a, b);
      overlap(a, a) = 1;
    }
    const Padded<double> residual(problem.shape.columns, k, 3, random, -1, 1);
    for (const std::size_t columns : {std::size_t{0}, problem.shape.columns}) {
      Matrix<const T> used = problem.columns.view();
      used.columns = columns;
      Matrix<const double> left = residual.view();
      left.rows = columns;
      const CandidateProblem<T> question{used,
                                         candidates.view(),
                                         problem.moved.view(),
                                         curvature.view(),
                                         std::as_const(overlap).view(),
                                         left};
      for (const Indices& chosen : problem.row_choices()) {
        const Case where(std::to_string(columns) + " columns before, " +
                         std::to_string(chosen.size()) + " chosen");
        Numbers slope(k * count), bend(k * count * count);
        same_for_all_threads([&](int n_threads) {
          slope.assign(slope.size(), std::numeric_limits<double>::quiet_NaN());
          bend.assign(bend.size(), std::numeric_limits<double>::quiet_NaN());
          candidate_model<T>(question, chosen, slope.data(), bend.data(), n_threads);
          return joined({slope, bend});
        });
        for (std::size_t r = 0; r < k; ++r) {
          const auto first = static_cast<std::ptrdiff_t>(r * count);
          const auto last = static_cast<std::ptrdiff_t>((r + 1) * count);
          const auto size = static_cast<std::ptrdiff_t>(count);
          check_all_near<T>(
              joined({Numbers(slope.begin() + first, slope.begin() + last),
                      Numbers(bend.begin() + first * size, bend.begin() + last * size)}),
              naive_candidate_model(question, chosen, curvature, r),
              1.0 + static_cast<double>(chosen.size()));
        }
      }
    }
  });
}

TEST("candidate_model: a single column of curvature serves all outputs") {
  constexpr std::size_t n = 300, columns = 6, k = 4, count = 3;
  const Problem<double, WestonWatkins> problem({}, {n, columns, k}, Random(18));
  const Padded<double> one = random_curvature<double>(n, 1);
  Padded<double> repeated = random_curvature<double>(n, k);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t r = 0; r < k; ++r) repeated(i, r) = one(i, 0);
  }
  Random random(19);
  const Padded<double> candidates(n, count, 1, random, -1, 1);
  const Padded<double> residual(columns, k, 0, random, -1, 1);
  const Numbers overlap = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const auto ask = [&](Matrix<const double> curvature) {
    Numbers slope(k * count), bend(curvature.columns * count * count);
    candidate_model<double>({problem.columns.view(), candidates.view(), problem.moved.view(),
                             curvature, contiguous(overlap.data(), count, count), residual.view()},
                            problem.all_rows(), slope.data(), bend.data(), 2);
    return joined({slope, bend});
  };
  const Numbers alone = ask(one.view()), each = ask(std::as_const(repeated).view());
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK_NEAR(alone[i], each[i], 1e-12);
}

}  // namespace
}  // namespace widemargin::tests

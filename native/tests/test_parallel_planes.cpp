// Parallel hyperplanes: scores stay those of the coefficients, thresholds keep their sums, every
// step gains what it says, bounds are met exactly, the gap closes, and neither threads nor a small
// cache change anything.
#include <cmath>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "random_data.hpp"
#include "widemargin/parallel_planes.hpp"

namespace widemargin::tests {
namespace {

constexpr double kWidth = 0.7;

// Rows along a chain of levels, whose order the first feature tells, but for noise.
struct Chain {
  std::size_t rows;
  Padded<double> X;
  DenseSlots kernel;
  PlanesProblem problem;

  Chain(std::size_t n_rows, std::vector<std::size_t> thresholds, std::vector<std::size_t> machines)
      : Chain(n_rows, std::move(thresholds), std::move(machines), Random(n_rows)) {}
  Chain(std::size_t n_rows, std::vector<std::size_t> thresholds, std::vector<std::size_t> machines,
        Random random)
      : rows(n_rows),
        X(n_rows, 3, 0, random, -1, 1),
        kernel(RbfKernel{kWidth}, std::vector<double>(3, 0.25)),
        problem{n_rows, {}, {}, std::move(thresholds), std::move(machines)} {
    kernel.use_batch(AnyRows(static_cast<const Padded<double>&>(X).view()));
    const std::size_t copies = problem.copies();
    for (std::size_t c = 0; c < copies; ++c) {
      const double middle =
          static_cast<double>(c + 1) / static_cast<double>(copies + 1) * 2.0 - 1.0;
      for (std::size_t i = 0; i < rows; ++i) {
        problem.signs.push_back(X(i, 0) + random.uniform(-0.4, 0.4) > middle ? 1 : -1);
        problem.caps.push_back(i % 7 == 0 ? 0.0 : random.uniform(0.5, 3.0));
      }
    }
  }

  double value(std::size_t i, std::size_t j) const {
    double squared = 0;
    for (std::size_t f = 0; f < 3; ++f) squared += (X(i, f) - X(j, f)) * (X(i, f) - X(j, f));
    return std::exp(-kWidth * squared);
  }
  ParallelPlanes planes(int threads = 1, std::size_t bytes = 1 << 24) {
    return ParallelPlanes(kernel, problem, bytes, threads);
  }
};

std::vector<double> scores_of(const ParallelPlanes& planes) {
  std::vector<double> found(planes.n_machines() * planes.n_rows());
  planes.copy_scores(found.data());
  return found;
}

// Scores, bounds, sums, gap and dual from the coefficients alone, in double precision.
void check_consistent(const Chain& chain, const ParallelPlanes& planes) {
  const PlanesProblem& problem = chain.problem;
  const std::size_t n = chain.rows;
  const auto b = planes.coefficients();
  const auto scores = scores_of(planes);
  const auto shifts = planes.intercepts();
  std::vector<double> sums(planes.n_thresholds(), 0.0);
  double dual = 0, gap = 0;
  for (std::size_t c = 0; c < planes.n_copies(); ++c) {
    const std::size_t threshold = problem.thresholds[c], machine = problem.machines[threshold];
    for (std::size_t i = 0; i < n; ++i) {
      double score = 0;
      for (std::size_t d = 0; d < planes.n_copies(); ++d) {
        if (problem.machines[problem.thresholds[d]] != machine) continue;
        for (std::size_t j = 0; j < n; ++j) score += b[d * n + j] * chain.value(i, j);
      }
      CHECK_NEAR(scores[machine * n + i], score, 1e-4);
      const double sign = problem.signs[c * n + i], cap = problem.caps[c * n + i];
      const double size = sign * b[c * n + i];
      CHECK(size >= 0 && size <= cap);
      sums[threshold] += b[c * n + i];
      dual += size - 0.5 * b[c * n + i] * score;
      gap += b[c * n + i] * score - size;
      gap += cap * std::fmax(0.0, 1.0 - sign * (score + shifts[threshold]));
    }
  }
  for (const double sum : sums) CHECK_NEAR(sum, 0.0, 1e-10);
  CHECK_NEAR(planes.look().dual, dual, 1e-3);
  CHECK_NEAR(planes.look().gap, gap, 1e-3);
}

struct Form {
  std::vector<std::size_t> thresholds, machines;
};
const Form kForms[] = {{{0}, {0}}, {{0, 1}, {0, 0}}, {{0, 1, 2}, {0, 0, 0}}, {{0, 0, 1}, {0, 1}}};

TEST("parallel planes: scores follow the coefficients, and steps gain what they say") {
  for (const Form& form : kForms) {
    for (const std::size_t rows : {5, 31, 70}) {
      Chain chain(rows, form.thresholds, form.machines);
      ParallelPlanes planes = chain.planes();
      double dual = 0;
      for (int round = 0; round < 4; ++round) {
        dual += planes.move(10).gain;
        check_consistent(chain, planes);
        CHECK_NEAR(planes.look().dual, dual, 1e-6);
      }
    }
  }
}

TEST("parallel planes: the gap closes, and then no pair is left that could move") {
  for (const Form& form : kForms) {
    Chain chain(90, form.thresholds, form.machines);
    ParallelPlanes planes = chain.planes();
    CHECK(planes.look().gap > 1);
    const auto moved = planes.move(1'000'000);
    CHECK(moved.steps < 1'000'000);
    CHECK(planes.look().gap < 1e-9);
    CHECK(planes.move(10).steps == 0);
    check_consistent(chain, planes);
  }
}

TEST("parallel planes: machines that share nothing are those that are solved alone") {
  Chain both(60, {0, 1}, {0, 1});
  ParallelPlanes together = both.planes();
  together.move(1'000'000);
  double dual = 0;
  for (std::size_t c = 0; c < 2; ++c) {
    Chain one(60, {0}, {0});
    const auto first = static_cast<std::ptrdiff_t>(c * 60);
    one.problem.signs.assign(both.problem.signs.begin() + first,
                             both.problem.signs.begin() + first + 60);
    one.problem.caps.assign(both.problem.caps.begin() + first,
                            both.problem.caps.begin() + first + 60);
    ParallelPlanes alone(both.kernel, one.problem, 1 << 24, 1);
    alone.move(1'000'000);
    dual += alone.look().dual;
    CHECK_NEAR(alone.intercepts()[0], together.intercepts()[c], 1e-6);
  }
  CHECK_NEAR(together.look().dual, dual, 1e-8);
}

TEST("parallel planes: neither threads nor the size of the cache change a bit") {
  Chain chain(150, {0, 1}, {0, 0});
  ParallelPlanes alone = chain.planes();
  alone.move(400);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{150 * 40 * sizeof(float)}}) {
    for (const int threads : {1, 3}) {
      ParallelPlanes other = chain.planes(threads, bytes);
      other.move(400);
      CHECK(std::equal(other.coefficients().begin(), other.coefficients().end(),
                       alone.coefficients().begin()));
      CHECK(scores_of(other) == scores_of(alone));
      CHECK(other.computed() > alone.computed());
    }
  }
}

TEST("parallel planes: what was put away is gone on from, to the bit") {
  Chain chain(80, {0, 1, 2}, {0, 0, 0});
  ParallelPlanes whole = chain.planes(), first = chain.planes(), rest = chain.planes();
  whole.move(120);
  first.move(50);
  rest.put(first.coefficients(), scores_of(first));
  rest.move(70);
  CHECK(std::equal(rest.coefficients().begin(), rest.coefficients().end(),
                   whole.coefficients().begin()));
  CHECK(scores_of(rest) == scores_of(whole));
  CHECK(rest.look().gap == whole.look().gap);
}

TEST("parallel planes: rows on one side of a threshold keep their margin, and move nothing") {
  Chain chain(20, {0, 1}, {0, 0});
  std::fill_n(chain.problem.signs.begin() + 20, 20, std::int8_t{1});
  ParallelPlanes planes = chain.planes();
  planes.move(1'000'000);
  CHECK(planes.look().gap < 1e-9);
  const auto scores = scores_of(planes);
  double least = 1e300;
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(planes.coefficients()[20 + i] == 0);
    if (chain.problem.caps[20 + i] > 0) least = std::fmin(least, scores[i]);
  }
  CHECK_NEAR(planes.intercepts()[1] + least, 1.0, 1e-12);
}

TEST("parallel planes: a row with either sign of one threshold goes to its bounds") {
  Chain chain(30, {0, 0}, {0});
  for (std::size_t i = 0; i < 30; ++i) {
    chain.problem.caps[30 + i] = i == 3 ? 2.0 : 0.0;
    chain.problem.signs[30 + i] = static_cast<std::int8_t>(-chain.problem.signs[i]);
  }
  chain.problem.caps[3] = 2.0;
  ParallelPlanes planes = chain.planes();
  planes.move(1'000'000);
  CHECK(planes.look().gap < 1e-9);
  check_consistent(chain, planes);
}

}  // namespace
}  // namespace widemargin::tests

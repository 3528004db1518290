// Boxed coefficients of many labels: gradients stay those of the coefficients, every move gains
// what it says, bounds are met exactly, the gap closes, and neither threads nor a small cache
// change anything.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "random_data.hpp"
#include "widemargin/label_box.hpp"

namespace widemargin::tests {
namespace {

constexpr double kWidth = 0.7;

struct LabelSets {
  std::size_t rows, labels;
  Padded<double> X;
  DenseSlots kernel;
  LabelProblem problem;

  LabelSets(std::size_t n_rows, std::size_t n_labels, bool related, double offset)
      : LabelSets(n_rows, n_labels, related, offset, Random(n_rows + n_labels)) {}
  LabelSets(std::size_t n_rows, std::size_t n_labels, bool related, double offset, Random random)
      : rows(n_rows),
        labels(n_labels),
        X(n_rows, 3, 0, random, -1, 1),
        kernel(RbfKernel{kWidth}, std::vector<double>(3, 0.25)),
        problem{n_rows, n_labels, {}, {}, {}, std::vector<double>(n_labels * n_labels), offset} {
    kernel.use_batch(AnyRows(static_cast<const Padded<double>&>(X).view()));
    for (std::size_t l = 0; l < labels; ++l) {
      for (std::size_t i = 0; i < rows; ++i) {
        problem.signs.push_back(X(i, l % 3) + random.uniform(-0.5, 0.5) > 0 ? 1 : -1);
      }
      problem.label_caps.push_back(random.uniform(0.5, 2.0));
      problem.label_caps.push_back(random.uniform(0.5, 2.0));
    }
    for (std::size_t i = 0; i < rows; ++i) problem.row_caps.push_back(i % 7 == 0 ? 0.0 : 1.5);
    // R = A A' of a random A, or a diagonal.
    const auto root = random.values<double>(labels * labels, -1, 1);
    for (std::size_t l = 0; l < labels; ++l) {
      for (std::size_t m = 0; m < labels; ++m) {
        double& entry = problem.relation[l * labels + m];
        if (!related) entry = l == m ? 0.5 + std::fabs(root[l]) : 0.0;
        for (std::size_t t = 0; related && t < labels; ++t) {
          entry += root[l * labels + t] * root[m * labels + t];
        }
      }
    }
  }

  double value(std::size_t i, std::size_t j) const {
    double squared = 0;
    for (std::size_t f = 0; f < 3; ++f) squared += (X(i, f) - X(j, f)) * (X(i, f) - X(j, f));
    return std::exp(-kWidth * squared) + problem.offset;
  }
  LabelBox box(int threads = 1, std::size_t bytes = 1 << 24) {
    return LabelBox(kernel, problem, bytes, threads);
  }
};

std::vector<Slot> all_rows(std::size_t count) {
  std::vector<Slot> rows(count);
  std::iota(rows.begin(), rows.end(), Slot{0});
  return rows;
}

void refresh(LabelBox& box) {
  for (std::size_t next = 0; next < box.n_rows();) next = box.refresh(next);
}

// Gradients, gap and dual from the coefficients alone, in double precision.
void check_consistent(const LabelSets& sets, LabelBox& box) {
  const std::size_t n = sets.rows, k = sets.labels;
  const auto b = box.coefficients();
  double gap = 0, dual = 0;
  for (std::size_t l = 0; l < k; ++l) {
    for (std::size_t i = 0; i < n; ++i) {
      double score = 0;
      for (std::size_t m = 0; m < k; ++m) {
        for (std::size_t j = 0; j < n; ++j) {
          score += sets.problem.relation[l * k + m] * b[m * n + j] * sets.value(i, j);
        }
      }
      const double sign = sets.problem.sign(l, i), cap = sets.problem.cap(l, i);
      const double margin = sets.problem.margins.empty() ? 1 : sets.problem.margins[l * n + i];
      const double size = sign * b[l * n + i], slack = margin - sign * score;
      CHECK_NEAR(box.gradients()[l * n + i], sign * margin - score, 1e-4);
      CHECK(size >= 0 && size <= cap);
      gap += cap * std::fmax(0.0, slack) - size * slack;
      dual += margin * size - 0.5 * size * sign * score;
    }
  }
  const auto found = box.look();
  CHECK_NEAR(found.gap, gap, 1e-3);
  CHECK_NEAR(found.dual, dual, 1e-3);
}

TEST("label boxes: gradients follow the coefficients, and moves gain what they say") {
  for (const bool related : {false, true}) {
    for (const double offset : {0.0, 1.0}) {
      LabelSets sets(60, 4, related, offset);
      LabelBox box = sets.box();
      double dual = 0;
      for (int pass = 0; pass < 4; ++pass) {
        dual += box.move(all_rows(sets.rows));
        check_consistent(sets, box);
        CHECK_NEAR(box.look().dual, dual, 1e-3);
      }
      refresh(box);
      check_consistent(sets, box);
    }
  }
}

TEST("label boxes: margins that differ by row and label are what scores are to reach") {
  LabelSets sets(60, 4, true, 1.0);
  Random random(8);
  sets.problem.margins = random.values<double>(60 * 4, 0, 3);
  LabelBox box = sets.box();
  double dual = 0;
  for (int pass = 0; pass < 4; ++pass) {
    dual += box.move(all_rows(sets.rows));
    check_consistent(sets, box);
    CHECK_NEAR(box.look().dual, dual, 3e-3);
  }
  refresh(box);
  check_consistent(sets, box);
}

TEST("label boxes: the gap closes, and at the end no row promises anything") {
  for (const bool related : {false, true}) {
    LabelSets sets(150, 5, related, 1.0);
    LabelBox box = sets.box();
    const double first = box.look().gap;
    for (int pass = 0; pass < 400 && box.look().gap > 1e-4; ++pass) {
      box.move(box.promising(1e-3));
    }
    CHECK(first > 100);
    CHECK(box.look().gap <= 1e-4);
    refresh(box);
    CHECK(box.look().gap <= 1e-2);
    check_consistent(sets, box);
  }
}

TEST("label boxes: neither threads nor the size of the cache change a bit") {
  for (const bool related : {false, true}) {
    LabelSets sets(300, 5, related, 1.0);
    LabelBox alone = sets.box();
    for (int pass = 0; pass < 3; ++pass) alone.move(all_rows(sets.rows));
    for (const int threads : {2, 3}) {
      LabelBox many = sets.box(threads);
      for (int pass = 0; pass < 3; ++pass) many.move(all_rows(sets.rows));
      CHECK(std::equal(many.coefficients().begin(), many.coefficients().end(),
                       alone.coefficients().begin()));
      CHECK(
          std::equal(many.gradients().begin(), many.gradients().end(), alone.gradients().begin()));
    }
    // Room for half of the rows, so that those of the first blocks are gone at the next pass.
    LabelBox tight = sets.box(1, 300 * 170 * sizeof(float));
    CHECK(tight.block_rows() == alone.block_rows());
    for (int pass = 0; pass < 3; ++pass) tight.move(all_rows(sets.rows));
    CHECK(std::equal(tight.coefficients().begin(), tight.coefficients().end(),
                     alone.coefficients().begin()));
    CHECK(tight.computed() > alone.computed());
  }
}

TEST("label boxes: a cache for a single row will do") {
  LabelSets sets(40, 3, true, 0.0);
  LabelBox box = sets.box(1, 1);
  CHECK(box.block_rows() == 1);
  for (int pass = 0; pass < 3; ++pass) box.move(all_rows(sets.rows));
  check_consistent(sets, box);
}

TEST("label boxes: coefficients that are put in are gone on from after a refresh") {
  LabelSets sets(90, 4, true, 1.0);
  LabelBox box = sets.box(), other = sets.box();
  for (int pass = 0; pass < 3; ++pass) box.move(all_rows(sets.rows));
  std::copy(box.coefficients().begin(), box.coefficients().end(), other.coefficients().begin());
  refresh(other);
  check_consistent(sets, other);
  CHECK_NEAR(other.look().gap, box.look().gap, 1e-3);
}

TEST("label boxes: a row that has no kernel value of its own goes to its bound") {
  LabelSets sets(20, 2, false, 0.0);
  for (std::size_t f = 0; f < 3; ++f) sets.X(3, f) = 0;
  DenseSlots linear(LinearKernel{}, std::vector<double>(3, 0.0));
  linear.use_batch(AnyRows(static_cast<const Padded<double>&>(sets.X).view()));
  LabelBox box(linear, sets.problem, 1 << 20, 1);
  box.move(all_rows(sets.rows));
  for (std::size_t l = 0; l < 2; ++l) {
    CHECK(std::fabs(box.coefficients()[l * 20 + 3]) == sets.problem.cap(l, 3));
  }
}

}  // namespace
}  // namespace widemargin::tests

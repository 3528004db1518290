// Blocks of labels by dual coordinate ascent: the gap against plain loops over what the block has
// come to, dense rows against sparse ones, stops in the midst of a pass, and broken states.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "random_data.hpp"
#include "sparse_data.hpp"
#include "widemargin/dual_ascent.hpp"

namespace widemargin::tests {
namespace {

using Numbers = std::vector<double>;

constexpr std::size_t kRows = 60, kColumns = 5;
constexpr double kConstant = 0.5, kTol = 1e-4;
constexpr std::int64_t kPasses = 20000;
constexpr std::uint64_t kAll = ~std::uint64_t{0};

template <class T>
struct Example {
  std::size_t labels, width;
  std::vector<T> values;
  Csr<T> sparse;
  Numbers squares, caps;
  DualAscent::Problem problem;

  Example(std::size_t n_labels, bool is_coupled, std::uint64_t seed)
      : labels(n_labels), width(DualAscent::padded(n_labels)) {
    Random random(seed);
    values = random.values<T>(kRows * kColumns, -1, 1);
    for (std::size_t i = 0; i < values.size(); i += 3) values[i] = 0;
    std::fill_n(values.begin(), kColumns, T(0));  // a row of zeros
    caps = random.values<double>(kRows, 0.1, 2);
    caps[7] = 0;
    sparse.columns = kColumns;
    for (std::size_t i = 0; i < kRows; ++i) {
      double square = kConstant * kConstant;
      for (std::size_t f = 0; f < kColumns; ++f) {
        const T value = values[i * kColumns + f];
        square += static_cast<double>(value) * static_cast<double>(value);
        if (value == 0) continue;
        sparse.values.push_back(value);
        sparse.indices.push_back(static_cast<std::int32_t>(f));
      }
      sparse.starts.push_back(static_cast<std::int64_t>(sparse.values.size()));
      squares.push_back(square);
    }
    problem.rows = kRows;
    problem.columns = kColumns;
    problem.labels = labels;
    problem.signs.assign(kRows * (width / kLabelsAtOnce), 0);
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t l = 0; l < labels; ++l) {
        if (random.below(3) == 0) {
          problem.signs[i * (width / kLabelsAtOnce) + l / kLabelsAtOnce] |=
              static_cast<std::uint8_t>(1u << (l % kLabelsAtOnce));
        }
      }
    }
    problem.with_label.assign(width, 0.0);
    problem.without_label.assign(width, 0.0);
    problem.scale.assign(width, 0.0);
    for (std::size_t l = 0; l < labels; ++l) {
      problem.with_label[l] = random.uniform(0.5, 2);
      problem.without_label[l] = random.uniform(0.5, 2);
      problem.scale[l] = random.uniform(0.5, 2);
    }
    if (!is_coupled) return;
    // A root of random numbers, so that the prior is positive.
    const Numbers root = random.values<double>(labels * labels, -1, 1);
    problem.prior.assign(width * width, 0.0);
    for (std::size_t k = 0; k < labels; ++k) {
      for (std::size_t l = 0; l < labels; ++l) {
        for (std::size_t j = 0; j < labels; ++j) {
          problem.prior[k * width + l] += root[k * labels + j] * root[l * labels + j];
        }
      }
      problem.prior[k * width + k] += 0.1;
      problem.scale[k] = problem.prior[k * width + k];
    }
    // Some that differ, where the others are 1.
    problem.margins = random.values<double>(kRows * width, 0, 3);
  }

  LabelRows<T> dense_rows() const {
    return {values.data(), nullptr,   nullptr,        kRows,
            kColumns,      kConstant, squares.data(), caps.data()};
  }
  LabelRows<T> sparse_rows() const {
    return {sparse.values.data(),
            sparse.indices.data(),
            sparse.starts.data(),
            kRows,
            kColumns,
            kConstant,
            squares.data(),
            caps.data()};
  }
  bool has(std::size_t i, std::size_t l) const {
    const std::uint8_t bits = problem.signs[i * (width / kLabelsAtOnce) + l / kLabelsAtOnce];
    return ((bits >> (l % kLabelsAtOnce)) & 1) != 0;
  }
  double cap(std::size_t i, std::size_t l) const {
    return caps[i] * (has(i, l) ? problem.with_label[l] : problem.without_label[l]);
  }
  double margin(std::size_t i, std::size_t l) const {
    return problem.margins.empty() ? 1.0 : problem.margins[i * width + l];
  }
  double prior(std::size_t k, std::size_t l) const {
    if (!problem.prior.empty()) return problem.prior[k * width + l];
    return k == l ? problem.scale[l] : 0.0;
  }
  double feature(std::size_t i, std::size_t f) const {
    return f < kColumns ? static_cast<double>(values[i * kColumns + f]) : kConstant;
  }

  // Primal and dual objective of coefficients, with weights made of them.
  struct Objectives {
    double primal = 0, dual = 0;
    Numbers weights;
  };
  Objectives objectives(const Numbers& coefficients) const {
    const std::size_t features = kColumns + 1;
    Numbers z(features * labels, 0.0);
    Objectives out;
    out.weights.assign(features * labels, 0.0);
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t l = 0; l < labels; ++l) {
        const double a = coefficients[i * width + l];
        CHECK(a >= 0 && a <= cap(i, l));
        out.dual += margin(i, l) * a;
        for (std::size_t f = 0; f < features; ++f) {
          z[f * labels + l] += (has(i, l) ? a : -a) * feature(i, f);
        }
      }
    }
    double length = 0;
    for (std::size_t f = 0; f < features; ++f) {
      for (std::size_t k = 0; k < labels; ++k) {
        for (std::size_t l = 0; l < labels; ++l) {
          out.weights[f * labels + l] += prior(k, l) * z[f * labels + k];
          length += prior(k, l) * z[f * labels + k] * z[f * labels + l];
        }
      }
    }
    out.dual -= length / 2;
    out.primal = length / 2;
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t l = 0; l < labels; ++l) {
        double score = 0;
        for (std::size_t f = 0; f < features; ++f) {
          score += feature(i, f) * out.weights[f * labels + l];
        }
        out.primal += cap(i, l) * std::max(0.0, margin(i, l) - (has(i, l) ? score : -score));
      }
    }
    return out;
  }
};

struct Shape {
  const char* name;
  std::size_t labels;
  bool is_coupled;
};
constexpr Shape kShapes[] = {{"one label", 1, false},         {"a block", 8, false},
                             {"a block and more", 11, false}, {"two related", 2, true},
                             {"eleven related", 11, true},    {"forty related", 40, true}};

double sum(const Numbers& numbers) {
  double total = 0;
  for (const double each : numbers) total += each;
  return total;
}

template <class T>
void check_optimum() {
  for (const Shape& shape : kShapes) {
    const Case a_case(std::string(shape.name) + ", " + type_name<T>());
    const Example<T> example(shape.labels, shape.is_coupled, 3);
    DualAscent block(example.problem, 1);
    block.work(example.sparse_rows(), kTol, kPasses, kAll);
    CHECK(block.is_done());
    CHECK(block.state().is_exact);
    const auto found = example.objectives(block.state().coefficients);
    const double dual = sum(block.state().dual), gap = sum(block.state().gap);
    CHECK_NEAR(dual, found.dual, 1e-9 * found.dual);
    CHECK_NEAR(dual + gap, found.primal, 1e-9 * found.primal);
    CHECK(gap >= 0 && gap <= kTol * found.primal);
    CHECK_NEAR(sum(block.find_gaps(example.sparse_rows())), gap, 1e-9 * found.primal);
    for (std::size_t f = 0; f <= kColumns; ++f) {
      for (std::size_t l = 0; l < example.labels; ++l) {
        CHECK_NEAR(block.state().weights[f * example.width + l],
                   found.weights[f * example.labels + l], 1e-9);
      }
      for (std::size_t l = example.labels; l < example.width; ++l) {
        CHECK(block.state().weights[f * example.width + l] == 0);
      }
    }
  }
}

TEST("dual ascent ends at the optimum, with a gap that is that of all rows") {
  check_optimum<float>();
  check_optimum<double>();
}

TEST("dual ascent on dense rows is that on sparse ones") {
  for (const Shape& shape : kShapes) {
    const Case a_case(shape.name);
    const Example<double> example(shape.labels, shape.is_coupled, 4);
    DualAscent dense(example.problem, 1), sparse(example.problem, 1);
    dense.work(example.dense_rows(), kTol, kPasses, kAll);
    sparse.work(example.sparse_rows(), kTol, kPasses, kAll);
    CHECK(dense.state().passes == sparse.state().passes);
    for (std::size_t i = 0; i < dense.state().weights.size(); ++i) {
      CHECK_NEAR(dense.state().weights[i], sparse.state().weights[i], 1e-12);
    }
  }
}

TEST("dual ascent that is stopped and restored goes on to the bit") {
  for (const Shape& shape : kShapes) {
    const Case a_case(shape.name);
    const Example<double> example(shape.labels, shape.is_coupled, 5);
    DualAscent through(example.problem, 7);
    through.work(example.sparse_rows(), kTol, kPasses, kAll);
    DualAscent first(example.problem, 7);
    std::size_t calls = 0;
    while (!first.is_done()) {
      first.work(example.sparse_rows(), kTol, kPasses, 101);  // in the midst of a pass
      DualAscent next(example.problem, 0);
      next.restore(first.state());
      first = next;
      ++calls;
    }
    CHECK(calls > 5);
    CHECK(first.state().weights == through.state().weights);
    CHECK(first.state().coefficients == through.state().coefficients);
    CHECK(first.state().gap == through.state().gap);
    CHECK(first.state().passes == through.state().passes);
  }
}

TEST("dual ascent keeps the limit of passes") {
  const Example<double> example(9, true, 6);
  DualAscent block(example.problem, 1);
  block.work(example.dense_rows(), 1e-9, 3, kAll);
  CHECK(block.is_done());
  CHECK(!block.state().is_exact);
  CHECK(block.state().passes == 3);
  const auto found = example.objectives(block.state().coefficients);
  CHECK_NEAR(sum(block.state().gap), found.primal - found.dual, 1e-9 * found.primal);
}

TEST("dual ascent refuses what cannot be") {
  const auto refuses = [](const auto& action) {
    try {
      action();
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  const Example<double> example(9, false, 6);
  DualAscent block(example.problem, 1);
  const DualAscent::State good = block.state();
  CHECK(!refuses([&] { block.restore(good); }));
  const auto broken = [&](const auto& spoil) {
    DualAscent::State state = good;
    spoil(state);
    return refuses([&] { block.restore(state); });
  };
  CHECK(broken([](auto& state) { state.weights.pop_back(); }));
  CHECK(broken([](auto& state) { state.coefficients.clear(); }));
  CHECK(broken([](auto& state) { state.order[0] = state.order[1]; }));
  CHECK(broken([](auto& state) { state.order[0] = -1; }));
  CHECK(broken([](auto& state) { state.active = static_cast<std::int64_t>(kRows) + 1; }));
  CHECK(broken([](auto& state) { state.next = -1; }));
  CHECK(broken([](auto& state) { state.live.pop_back(); }));
  CHECK(broken([](auto& state) { state.phase = static_cast<DualAscent::Phase>(3); }));
  DualAscent::Problem other = example.problem;
  other.signs.pop_back();
  CHECK(refuses([&] { DualAscent(other, 1); }));
  LabelRows<double> fewer = example.dense_rows();
  fewer.rows = kRows - 1;
  CHECK(refuses([&] { block.work(fewer, kTol, kPasses, kAll); }));
}

}  // namespace
}  // namespace widemargin::tests

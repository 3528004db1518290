// Rules of a row: subgradients below the loss everywhere, and steps after which the row has no gap.
// Passes over rows: dense against sparse, single against double precision, and to the optimum.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "check.hpp"
#include "random_data.hpp"
#include "sparse_data.hpp"
#include "widemargin/row_rules.hpp"
#include "widemargin/subgradient.hpp"

namespace widemargin::tests {
namespace {

using Numbers = std::vector<double>;

template <class Task>
void for_each_rule(const Task& task) {
  task("worst hinge", WorstHinge{});
  task("summed hinge", SummedHinge{});
  task("softmax", Softmax{});
  task("worst mistake", WorstMistake{});
  task("hinge", AgainstRest<Hinge>{});
  task("binary entropy", AgainstRest<BinaryEntropy>{});
  task("mistake", AgainstRest<Mistake>{});
}

double dot(const Numbers& a, const Numbers& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

TEST("a pull is minus a subgradient") {
  Random random(1);
  for_each_rule([&](const std::string& name, auto rule) {
    const Case where(name);
    for (const std::size_t k : {2, 3, 20}) {
      for (int trial = 0; trial < 50; ++trial) {
        const std::size_t y = random.below(k);
        const Numbers f = random.values<double>(k, -2, 2), g = random.values<double>(k, -2, 2);
        Numbers pull(k), step(k);
        rule.pull(f.data(), y, k, pull.data());
        for (std::size_t c = 0; c < k; ++c) step[c] = g[c] - f[c];
        const double here = rule.value(f.data(), y, k), there = rule.value(g.data(), y, k);
        CHECK(there >= here - dot(pull, step) - 1e-9);
      }
    }
  });
}

TEST("a row has no gap after its exact step") {
  Random random(2);
  for_each_rule([&](const std::string& name, auto rule) {
    const Case where(name);
    if constexpr (decltype(rule)::has_dual) {
      for (const std::size_t k : {2, 3, 20, 70}) {
        for (int trial = 0; trial < 60; ++trial) {
          const std::size_t y = random.below(k);
          const double cap = random.uniform(0.1, 3);
          const double curvature = std::pow(10.0, random.uniform(-4, 6));
          Numbers scores = random.values<double>(k, -3, 3), now(k, 0.0), next(k);
          // From coefficients that are none, and from those of another step.
          for (int round = 0; round < 2; ++round) {
            rule.solve(scores.data(), y, k, cap, curvature, now.data(), next.data());
            Numbers after = scores;
            for (std::size_t c = 0; c < k; ++c) after[c] += curvature * (next[c] - now[c]);
            const double loss = cap * rule.value(after.data(), y, k);
            const double gap = loss - rule.dual(next.data(), y, k, cap) + dot(after, next);
            CHECK(gap >= -1e-6 * (1 + loss));
            CHECK(gap <= 1e-5 * (1 + loss));
            now = next;
            for (double& each : scores) each += random.uniform(-1, 1);
          }
        }
      }
    }
  });
}

template <class T>
struct Example {
  static constexpr std::size_t kRows = 80, kColumns = 6, kClasses = 3, kWidth = 8;
  std::vector<T> values;
  Csr<T> sparse;
  std::vector<std::int32_t> targets, order;
  Numbers weights;

  Example() {
    Random random(3);
    values = random.values<T>(kRows * kColumns, -1, 1);
    sparse.columns = kColumns;
    for (std::size_t i = 0; i < kRows; ++i) {
      targets.push_back(static_cast<std::int32_t>(i % kClasses));
      values[i * kColumns + i % kClasses] += T(1);
      for (std::size_t f = 0; f < kColumns; ++f) {
        T& value = values[i * kColumns + f];
        if (i == 5 || (i + f) % 4 == 0) value = 0;  // one row is of zeros
        if (value == 0) continue;
        sparse.values.push_back(value);
        sparse.indices.push_back(static_cast<std::int32_t>(f));
      }
      sparse.starts.push_back(static_cast<std::int64_t>(sparse.values.size()));
    }
    weights = random.values<double>(kRows, 0.5, 2);
    order.resize(kRows);
    std::iota(order.begin(), order.end(), 0);
  }

  ClassRows<T> rows(bool is_sparse, double constant) const {
    const LabelRows<T> dense{values.data(), nullptr,  nullptr, kRows,
                             kColumns,      constant, nullptr, weights.data()};
    const LabelRows<T> csr{sparse.values.data(),
                           sparse.indices.data(),
                           sparse.starts.data(),
                           kRows,
                           kColumns,
                           constant,
                           nullptr,
                           weights.data()};
    return {is_sparse ? csr : dense, targets.data(), kClasses, kWidth};
  }
};

template <class T>
struct Machine {
  StepTotals totals;
  std::vector<T> sums, earlier, coefficients;

  Machine()
      : sums((Example<T>::kColumns + 1) * Example<T>::kWidth, T(0)),
        earlier(sums.size(), T(0)),
        coefficients(Example<T>::kRows * Example<T>::kClasses, T(0)) {}

  void learn(const StepRule& rule, const Example<T>& example, bool is_sparse, int passes) {
    for (int pass = 0; pass < passes; ++pass) {
      learn_rows(rule, example.rows(is_sparse, 1.0), example.order, rule.is_exact && pass > 0,
                 totals, sums.data(), earlier.data(),
                 rule.is_exact ? coefficients.data() : nullptr);
    }
  }

  std::vector<T> last(const StepRule& rule) const {
    std::vector<T> out = sums;
    for (T& each : out) each *= static_cast<T>(totals.shrink / (rule.penalty * totals.weight));
    return out;
  }
};

template <class Task>
void for_each_step(const Task& task) {
  for (const RowLoss loss : {RowLoss::kCrammerSinger, RowLoss::kWestonWatkins, RowLoss::kLogistic,
                             RowLoss::kPerceptron}) {
    for (const bool is_joint : {true, false}) {
      for (const bool is_exact : {true, false}) {
        if (is_exact && loss == RowLoss::kPerceptron) continue;
        task(StepRule{loss, is_joint, is_exact, !is_exact && is_joint, 0.05,
                      is_exact ? std::size_t{1} : std::size_t{3}});
      }
    }
  }
}

TEST("sparse rows make the machine of dense ones, in either precision") {
  const Example<double> example;
  const Example<float> single;
  for_each_step([&](const StepRule& rule) {
    Machine<double> dense, sparse;
    Machine<float> rounded;
    dense.learn(rule, example, false, 3);
    sparse.learn(rule, example, true, 3);
    rounded.learn(rule, single, true, 3);
    for (std::size_t i = 0; i < dense.sums.size(); ++i) {
      CHECK_NEAR(dense.sums[i], sparse.sums[i], 1e-9);
      CHECK_NEAR(dense.earlier[i], sparse.earlier[i], 1e-6);
      // A hinge may be met by rounding, and then a row counts or not.
      if (rule.is_exact) CHECK_NEAR(dense.sums[i], static_cast<double>(rounded.sums[i]), 1e-2);
    }
  });
}

TEST("exact steps close the gap") {
  const Example<double> example;
  for_each_step([&](const StepRule& rule) {
    if (!rule.is_exact) return;
    Machine<double> machine;
    machine.learn(rule, example, true, 400);
    const std::vector<double> weights = machine.last(rule);
    const ClassRows<double> rows = example.rows(true, 1.0);
    const double whole = std::accumulate(example.weights.begin(), example.weights.end(), 0.0);
    const RowRecord found = judge_rows(rule, rows, weights.data(), machine.coefficients.data(), 2);
    const double square = rule.penalty * whole * dot(weights, weights);
    const double gap = found.loss + square - found.dual;
    CHECK(gap >= -1e-9);
    CHECK(gap <= 1e-4 * found.loss);
  });
}

TEST("projected weights are in the ball, and their length is known") {
  const Example<double> example;
  const StepRule rule{RowLoss::kCrammerSinger, true, false, true, 0.05, 3};
  Machine<double> machine;
  for (int pass = 0; pass < 5; ++pass) {
    machine.learn(rule, example, true, 1);
    double square = 0;
    for (const double each : machine.sums) square += each * each;
    CHECK_NEAR(machine.totals.square / square, 1.0, 1e-9);
    const Numbers weights = machine.last(rule);
    CHECK(dot(weights, weights) <= 1 / rule.penalty * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace widemargin::tests

// Dual machines: kernel rows that stay right while rows come and go, gradients that stay those of
// the coefficients, steps that gain what they say, and solvers that respect the bounds.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "dual_problem.hpp"
#include "widemargin/larank.hpp"
#include "widemargin/online.hpp"
#include "widemargin/row_sweeps.hpp"

namespace widemargin::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Gradients, dual and gap from the coefficients alone.
void check_consistent(const Problem& problem, const ZeroSumSet& set, double margin = 1) {
  double dual = 0;
  std::size_t n_vectors = 0;
  for (std::size_t i = 0; i < set.n_slots(); ++i) {
    const auto slot = static_cast<Slot>(i);
    if (!set.is_held(slot)) continue;
    const auto row = static_cast<std::size_t>(set.id(slot));
    std::vector<double> expected(Problem::kClasses, 0.0);
    expected[set.label(slot)] = margin;
    for (const Slot other : set.supports()) {
      const double similarity =
          problem.value(row, static_cast<std::size_t>(set.id(other))) + problem.offset;
      for (const auto& each : set.coefficients(other)) {
        expected[each.label] -= each.value * similarity;
      }
    }
    for (std::size_t c = 0; c < Problem::kClasses; ++c) {
      CHECK_NEAR(set.gradient(slot, c), expected[c], 1e-4);
    }
    for (const auto& each : set.coefficients(slot)) {
      const double own = each.label == set.label(slot) ? margin : 0.0;
      dual += 0.5 * each.value * (own + expected[each.label]);
    }
    n_vectors += set.coefficients(slot).size();
  }
  CHECK_NEAR(set.gap().dual, dual, 1e-3);
  CHECK_NEAR(set.dual(), dual, 1e-3);
  CHECK(set.n_vectors() == n_vectors);
}

void check_feasible(const ZeroSumSet& set) {
  for (const Slot slot : set.supports()) {
    double sum = 0;
    for (const auto& each : set.coefficients(slot)) {
      sum += each.value;
      if (each.label != set.label(slot)) CHECK(each.value <= 0);
      if (!set.sums_slacks()) CHECK(each.value <= set.cap(slot));
      if (set.sums_slacks() && each.label != set.label(slot)) {
        CHECK(each.value >= -set.cap(slot));
      }
    }
    CHECK_NEAR(sum, 0, 1e-14 * set.cap(slot));
  }
}

TEST("a projection to sum zero is feasible, and no other feasible point is nearer") {
  Random random(3);
  std::vector<double> breaks;
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t count = 2 + random.below(6);
    const auto targets = random.values<double>(count, -3, 3);
    std::vector<double> lower(count, -kInfinity), upper(count, 0.0);
    upper[0] = trial % 3 == 0 ? kInfinity : random.uniform(0, 2);
    if (trial % 2 == 0) {
      for (std::size_t c = 1; c < count; ++c) lower[c] = -random.uniform(0, 1);
    }
    auto found = targets;
    project_to_zero_sum(found, lower, upper, breaks);
    double sum = 0;
    for (std::size_t c = 0; c < count; ++c) {
      sum += found[c];
      CHECK(found[c] >= lower[c] && found[c] <= upper[c]);
    }
    CHECK_NEAR(sum, 0, 1e-9);
    // Moving any pair a little, as far as the bounds allow, does not bring it nearer.
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < count; ++b) {
        const double step = std::min({1e-4, upper[a] - found[a], found[b] - lower[b]});
        if (a == b || step <= 0) continue;
        const double slope = (found[a] - targets[a]) - (found[b] - targets[b]);
        CHECK(slope * step + step * step >= -1e-12);
      }
    }
  }
}

TEST("a projection of large numbers sums to zero as well as one of small ones") {
  Random random(4);
  std::vector<double> breaks;
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t count = 3 + random.below(6);
    const auto scale = std::pow(10.0, random.uniform(0, 14));
    auto found = random.values<double>(count, -scale, scale);
    for (double& target : found) target = found[0] + random.uniform(-2, 2);
    std::vector<double> lower(count, -1.0), upper(count, 1.0);
    project_to_zero_sum(found, lower, upper, breaks);
    double sum = 0;
    for (const double value : found) sum += value;
    CHECK_NEAR(sum, 0, 1e-14);
  }
}

TEST("kernel rows are right while rows move in and out, whatever the cache holds") {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4000}, std::size_t{1} << 24}) {
    const Case size(std::to_string(bytes) + " bytes");
    Problem problem(120, 5, 11);
    KernelRows rows(problem.kernel, bytes, 1);
    Random random(5);
    std::vector<std::size_t> lives;  // row by slot
    for (int turn = 0; turn < 400; ++turn) {
      const std::size_t row = random.below(problem.rows);
      const std::size_t slot = lives.size() < 60 ? lives.size() : random.below(lives.size());
      if (slot == lives.size()) lives.push_back(row);
      lives[slot] = row;
      problem.kernel.put(static_cast<Slot>(slot), row);
      const std::size_t columns = rows.slots();
      const std::uint64_t moves = rows.moves();
      rows.move_in(static_cast<Slot>(slot));
      if (turn % 3 == 0) {
        const auto fresh = static_cast<Slot>(slot);
        rows.stage(std::span(&fresh, 1), columns, columns, moves);
        if (turn % 2 == 0) rows.spread_staged();
      }
      const std::size_t asked = random.below(lives.size());
      const auto values = rows.row(static_cast<Slot>(asked));
      CHECK(values.size() == lives.size());
      for (std::size_t j = 0; j < lives.size(); ++j) {
        CHECK_NEAR(values[j], problem.value(lives[asked], lives[j]), 1e-5);
      }
      if (turn % 3 == 0) rows.unstage();
      const std::size_t longest = 2 * (lives.size() + 48) * sizeof(float);
      CHECK(rows.bytes() <= std::max(bytes, longest));
    }
  }
}

TEST("a kernel value is computed once, if the cache holds all") {
  Problem problem(200, 4, 12);
  ZeroSumSet set = problem.make_set(DualLoss::crammer_singer);
  LaRank solver(set, {}, {}, 1);
  solver.take(problem.order, 0, problem.labels, problem.caps);
  CHECK(set.kernel_rows().computed() <= problem.rows * problem.rows);
}

TEST("gradients and dual follow every change of coefficients") {
  for (const auto& [loss, offset] : kMachines) {
    const Case which(std::string(name_of(loss)) + (offset > 0 ? ", intercepts" : ""));
    Problem problem(60, 3, 21);
    problem.offset = offset;
    ZeroSumSet set = problem.make_set(loss, 2000);
    problem.admit(set, 0, 40);
    Random random(9);
    for (int turn = 0; turn < 300; ++turn) {
      const auto slot = static_cast<Slot>(random.below(set.n_slots()));
      if (!set.is_held(slot)) continue;
      const double before = set.dual();
      double gain = 0;
      if (turn % 3 == 0) {
        gain = set.solve_row(slot, ZeroSumSet::Scope::all);
      } else {
        gain = set.step(slot, set.worst_pair(slot, ZeroSumSet::Scope::all, 0.0));
      }
      CHECK(gain >= -1e-12);
      CHECK_NEAR(set.dual() - before, gain, 1e-9);
      if (turn % 50 == 49) set.remove(slot);
      if (turn == 150) problem.admit(set, 40, 20);
    }
    check_consistent(problem, set);
    check_feasible(set);
    release_all(set);
    CHECK(set.supports().size() > 0);
    for (std::size_t slot = 0; slot < set.n_slots(); ++slot) {
      CHECK(set.is_held(static_cast<Slot>(slot)) == set.is_support(static_cast<Slot>(slot)));
    }
  }
}

TEST("a row that is solved has no pair to move") {
  for (const DualLoss loss : kLosses) {
    const Case which(name_of(loss));
    Problem problem(50, 3, 22);
    ZeroSumSet set = problem.make_set(loss);
    problem.admit(set, 0, 50);
    for (Slot slot = 0; slot < 50; ++slot) {
      set.solve_row(slot, ZeroSumSet::Scope::all);
      CHECK_NEAR(set.worst_pair(slot, ZeroSumSet::Scope::all, 0.0).violation, 0, 1e-6);
    }
    check_feasible(set);
  }
}

TEST("sweeps close the gap, and all ways to hold rows end at one dual") {
  for (const auto& [loss, offset] : kMachines) {
    const Case which(std::string(name_of(loss)) + (offset > 0 ? ", intercepts" : ""));
    std::vector<double> duals;
    for (const bool online : {false, true}) {
      Problem problem(150, 3, 23);
      problem.offset = offset;
      ZeroSumSet set = problem.make_set(loss);
      if (online) {
        LaRank solver(set, {}, {}, 7);
        solver.take(problem.order, 0, problem.labels, problem.caps);
        check_consistent(problem, set);
        check_feasible(set);
      }
      const Inspection seen =
          inspect(set, problem.order, 0, problem.labels, problem.caps, -kInfinity);
      CHECK(seen.loss == 0);
      RowSweeps sweeps(set, ZeroSumSet::Scope::all, 1);
      double violation = 1;
      for (int i = 0; i < 2000 && violation > 1e-7; ++i)
        violation = sweeps.sweep(1e-9, ~0ull).violation;
      CHECK(set.gap().gap >= -1e-6);
      CHECK(set.gap().gap <= 1e-3);
      duals.push_back(set.gap().dual);
      check_consistent(problem, set);
      check_feasible(set);
    }
    CHECK_NEAR(duals[0], duals[1], 1e-3);
  }
}

TEST("working sets end at the optimum of all classes") {
  for (const DualLoss loss : kLosses) {
    const Case which(name_of(loss));
    Problem all(90, 3, 24), some(90, 3, 24);
    ZeroSumSet full = all.make_set(loss), cut = some.make_set(loss);
    all.admit(full, 0, 90);
    RowSweeps of_all(full, ZeroSumSet::Scope::all, 1),
        of_cut(cut, ZeroSumSet::Scope::working_set, 1);
    for (int i = 0; i < 500; ++i) of_all.sweep(1e-9, ~0ull);
    for (int pass = 0; pass < 50; ++pass) {
      add_constraints(cut, some.order, 0, some.labels, some.caps, 1e-6);
      for (int i = 0; i < 100; ++i) of_cut.sweep(1e-9, ~0ull);
    }
    CHECK_NEAR(cut.gap().dual, full.gap().dual, 1e-3);
    check_feasible(cut);
  }
}

TEST("rows sum to zero after very many steps, of rows that are nearly dependent too") {
  for (const auto& [loss, offset] : kMachines) {
    Problem problem(40, 1, 29);  // many rows on a line, far wider than their distances
    problem.kernel = DenseSlots(RbfKernel{1e-4}, {0.0});
    problem.kernel.use_batch(AnyRows(static_cast<const Padded<double>&>(problem.X).view()));
    problem.offset = offset;
    ZeroSumSet set = problem.make_set(loss);
    problem.admit(set, 0, 40);
    RowSweeps sweeps(set, ZeroSumSet::Scope::all, 1);
    for (int i = 0; i < 200; ++i) {
      sweeps.sweep(1e-12, ~0ull);
      sweeps.conjugate_steps(50);
      check_feasible(set);
    }
  }
}

TEST("slots whose coefficients change are named once") {
  Problem problem(60, 3, 30);
  ZeroSumSet set = problem.make_set(DualLoss::crammer_singer);
  std::vector<std::vector<double>> known;  // coefficients by slot
  const auto now = [&](std::size_t slot) {
    std::vector<double> values(Problem::kClasses, 0.0);
    for (const auto& each : set.coefficients(static_cast<Slot>(slot))) {
      values[each.label] = each.value;
    }
    return values;
  };
  LaRank solver(set, {}, {10, Budget::Policy::drop, true}, 3);
  for (std::size_t first = 0; first < 60; first += 5) {
    solver.take(std::span(problem.order).subspan(first, 5), 0, problem.labels, problem.caps);
    const std::vector<Slot> changed = set.take_changed();
    CHECK(std::set<Slot>(changed.begin(), changed.end()).size() == changed.size());
    known.resize(set.n_slots(), std::vector<double>(Problem::kClasses, 0.0));
    for (const Slot slot : changed) known[slot] = now(slot);
    for (std::size_t slot = 0; slot < known.size(); ++slot) CHECK(known[slot] == now(slot));
  }
  CHECK(set.take_changed().empty());
}

TEST("the same seed repeats to the bit, another does not") {
  std::vector<double> duals;
  for (const std::uint64_t seed : {1, 1, 2}) {
    Problem problem(200, 4, 25);
    ZeroSumSet set = problem.make_set(DualLoss::crammer_singer);
    LaRank solver(set, {}, {}, seed);
    for (std::size_t first = 0; first < 200; first += 50) {
      solver.take(std::span(problem.order).subspan(first, 50), 0, problem.labels, problem.caps);
    }
    duals.push_back(set.dual());
  }
  CHECK(duals[0] == duals[1]);
  CHECK(duals[0] != duals[2]);
}

TEST("operations that are switched off are not done") {
  for (const bool old : {false, true}) {
    Problem problem(100, 3, 26);
    ZeroSumSet set = problem.make_set(DualLoss::crammer_singer);
    LaRank::Settings settings;
    settings.allowed = {true, old, !old};
    LaRank solver(set, settings, {}, 3);
    solver.take(problem.order, 0, problem.labels, problem.caps);
    CHECK(solver.counts().operations[LaRank::kNew] == 100);
    CHECK((solver.counts().operations[LaRank::kOld] > 0) == old);
    CHECK((solver.counts().operations[LaRank::kOptimize] > 0) == !old);
  }
}

TEST("a budget is kept by all learners, and what is left is a machine") {
  using Policy = Budget::Policy;
  for (const Policy policy : {Policy::drop, Policy::merge, Policy::redundant}) {
    const Case number(std::to_string(static_cast<int>(policy)));
    const Budget budget{20, policy, true};
    Problem problem(300, 3, 27);
    problem.offset = policy == Policy::merge ? 1 : 0;
    ZeroSumSet set = problem.make_set(DualLoss::crammer_singer);
    LaRank solver(set, {}, budget, 3);
    for (std::size_t first = 0; first < 300; first += 30) {
      solver.take(std::span(problem.order).subspan(first, 30), 0, problem.labels, problem.caps);
      CHECK(set.supports().size() <= 20);
      CHECK(set.n_slots() <= 20 + 30 + 2);
    }
    check_consistent(problem, set);
    check_feasible(set);
    for (const auto rule : {OnlineLearner::Rule::perceptron, OnlineLearner::Rule::mira}) {
      Problem again(300, 3, 27);
      again.offset = problem.offset;
      ZeroSumSet other = again.make_set(DualLoss::crammer_singer, 1 << 20, 0.5);
      OnlineLearner learner(other, rule, false, {20, policy, false});
      learner.take(again.order, 0, again.labels, again.caps);
      CHECK(other.supports().size() <= 20);
      CHECK(learner.rows_seen == 300);
      check_consistent(again, other, 0.5);
    }
  }
}

TEST("the perceptron adds its mistakes, and remembers when") {
  Problem problem(80, 3, 28);
  ZeroSumSet set = problem.make_set(DualLoss::crammer_singer, 1 << 20, 0.0);
  OnlineLearner learner(set, OnlineLearner::Rule::perceptron, true, {});
  for (std::size_t first = 0; first < 80; first += 16) {
    learner.take(std::span(problem.order).subspan(first, 16), 0, problem.labels, problem.caps);
  }
  std::vector<double> beta(80 * 3, 0.0), earlier(80 * 3, 0.0);
  for (std::size_t i = 0; i < 80; ++i) {
    std::vector<double> scores(3, 0.0);
    for (std::size_t j = 0; j < i; ++j) {
      for (std::size_t c = 0; c < 3; ++c) scores[c] += beta[j * 3 + c] * problem.value(i, j);
    }
    const auto own = static_cast<std::size_t>(problem.labels[i]);
    std::size_t worst = own == 0 ? 1 : 0;
    for (std::size_t c = 0; c < 3; ++c) {
      if (c != own && scores[c] > scores[worst]) worst = c;
    }
    if (scores[own] > scores[worst]) continue;
    beta[i * 3 + own] += problem.caps[i];
    beta[i * 3 + worst] -= problem.caps[i];
    earlier[i * 3 + own] = static_cast<double>(i) * problem.caps[i];
    earlier[i * 3 + worst] = -static_cast<double>(i) * problem.caps[i];
  }
  std::size_t nonzero = 0;
  for (const double each : beta) nonzero += each != 0;
  CHECK(set.n_vectors() == nonzero);
  for (const Slot slot : set.supports()) {
    for (const auto& each : set.coefficients(slot)) {
      const auto place = static_cast<std::size_t>(set.id(slot)) * 3 + each.label;
      CHECK(each.value == beta[place]);
      CHECK(each.earlier == earlier[place]);
    }
  }
}

TEST("sparse rows are as dense ones, and every kernel of the library has slots") {
  Problem problem(40, 6, 29);
  std::vector<double> values;
  std::vector<std::int32_t> indices;
  std::vector<std::int64_t> starts = {0};
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t f = 0; f < 6; ++f) {
      // Numbers that every kernel takes.
      problem.X(i, f) = (i + f) % 3 == 0 ? 0.0 : std::fabs(problem.X(i, f));
      if (problem.X(i, f) == 0) continue;
      values.push_back(problem.X(i, f));
      indices.push_back(static_cast<std::int32_t>(f));
    }
    starts.push_back(static_cast<std::int64_t>(values.size()));
  }
  const SparseMatrix<double> sparse{values.data(), indices.data(), starts.data(), 40, 6};
  const std::vector<double> origin(6, 0.0);
  for (const AnyKernel& kernel :
       {AnyKernel(LinearKernel{}), AnyKernel(PolynomialKernel{0.5, 1, 2}),
        AnyKernel(SigmoidKernel{0.3, -0.5}), AnyKernel(RbfKernel{0.3}),
        AnyKernel(LaplacianKernel{0.2}), AnyKernel(ChiSquareKernel{0.4})}) {
    DenseSlots one(kernel, origin), other(kernel, origin);
    one.use_batch(AnyRows(static_cast<const Padded<double>&>(problem.X).view()));
    other.use_batch(AnyRows(sparse));
    std::vector<Slot> slots;
    for (Slot slot = 0; slot < 40; ++slot) {
      one.put(slot, slot);
      other.put(slot, slot);
      slots.push_back(slot);
    }
    const std::size_t stride = one.stride(40);
    std::vector<float> left(40 * stride), right(40 * stride), some(40);
    one.rows(slots, 40, left.data(), stride, 2);
    other.rows(slots, 40, right.data(), stride, 1);
    for (std::size_t i = 0; i < 40; ++i) {
      one.some(slots[i], slots, some.data());
      CHECK_NEAR(one.diagonal(slots[i]), left[i * stride + i], 1e-5);
      for (std::size_t j = 0; j < 40; ++j) {
        CHECK(left[i * stride + j] == right[i * stride + j]);
        CHECK(left[i * stride + j] == some[j]);
        CHECK(left[i * stride + j] == left[j * stride + i]);
      }
    }
  }
}

TEST("values that fail to be computed leave a machine that goes on") {
  Problem problem(60, 3, 30);
  bool fails = false;
  CalledSlots kernel(
      [&](Slot slot, std::size_t row) { problem.kernel.put(slot, row); },
      [&](std::span<const Slot> left, std::span<const Slot> right, float* out, std::size_t stride) {
        if (fails) throw std::runtime_error("no value");
        for (std::size_t i = 0; i < left.size(); ++i) {
          problem.kernel.some(left[i], right, out + i * stride);
        }
      },
      [&](Slot slot) { return problem.kernel.diagonal(slot); }, 3);
  ZeroSumSet set(kernel, 3, DualLoss::crammer_singer, 1, 0, 1 << 20, 1);
  LaRank solver(set, {}, {}, 1);
  const std::span<const std::int64_t> order(problem.order);
  solver.take(order.first(30), 0, problem.labels, problem.caps);
  fails = true;
  bool failed = false;
  try {
    solver.take(order.subspan(30, 20), 0, problem.labels, problem.caps);
  } catch (const std::runtime_error&) {
    failed = true;
  }
  CHECK(failed);
  fails = false;
  release_all(set);
  check_consistent(problem, set);
  solver.take(order.subspan(30), 0, problem.labels, problem.caps);
  check_consistent(problem, set);
  check_feasible(set);
}

// Machines of the same coefficients: one knew a class without any from the start, the other took it
// on later. Classes from the position on have moved up by one.
TEST("a class that joins later leaves the machine that had it from the start") {
  for (const auto& [loss, offset] : kMachines) {
    for (std::size_t position = 0; position <= Problem::kClasses; ++position) {
      const Case which(std::string(name_of(loss)) + ", place " + std::to_string(position));
      Problem problem(90, 4, 31);
      problem.offset = offset;
      ZeroSumSet late = problem.make_set(loss);
      LaRank(late, {}, {}, 5).take(problem.order, 0, problem.labels, problem.caps);
      add_constraints(late, problem.order, 0, problem.labels, problem.caps, 0.01);
      late.take_changed();
      const auto moved = [&](std::size_t label) { return label + (label >= position ? 1 : 0); };
      std::vector<std::int32_t> labels;
      for (const std::int32_t label : problem.labels) {
        labels.push_back(static_cast<std::int32_t>(moved(static_cast<std::size_t>(label))));
      }
      Problem twin(90, 4, 31);  // whose slots are its own
      ZeroSumSet early(twin.kernel, 4, loss, 1, offset, 1 << 24, 1);
      std::vector<Slot> slots;
      for (std::size_t j = 0; j < late.n_slots(); ++j) {
        if (!late.is_held(static_cast<Slot>(j))) continue;
        const std::int64_t row = late.id(static_cast<Slot>(j));
        early.admit(std::span(&row, 1), 0, labels, problem.caps, slots);
        early.release_staged();
        std::vector<double> values(4, 0.0);
        for (const auto& each : late.coefficients(static_cast<Slot>(j))) {
          values[moved(each.label)] = each.value;
        }
        early.SupportSet::restore(slots[0], values, std::vector<double>(4, 0.0));
      }
      late.add_class(position);
      CHECK(late.n_classes() == 4);
      CHECK(late.take_changed().size() == late.supports().size());
      // From here on the same rows are learned by both; the class that is new has rows now.
      for (std::size_t i = 0; i < 30; ++i) labels[i] = static_cast<std::int32_t>(position);
      for (const bool before : {true, false}) {
        for (std::size_t j = 0; j < late.n_slots(); ++j) {
          const auto slot = static_cast<Slot>(j);
          if (!late.is_held(slot)) continue;
          const std::int64_t other = early.find(late.id(slot));
          CHECK(other >= 0);
          if (other < 0) continue;
          CHECK(early.label(static_cast<Slot>(other)) == late.label(slot));
          for (std::size_t c = 0; c < 4; ++c) {
            CHECK_NEAR(late.gradient(slot, c), early.gradient(static_cast<Slot>(other), c), 1e-5);
          }
        }
        CHECK_NEAR(late.gap().dual, early.gap().dual, 1e-4);
        CHECK_NEAR(late.gap().gap, early.gap().gap, 1e-3);
        if (!before) break;
        for (ZeroSumSet* const set : {&late, &early}) {
          for (std::int64_t row = 0; row < 30; ++row) {
            set->admit(std::span(&row, 1), 1000, labels, problem.caps, slots);
            set->solve_row(slots[0], ZeroSumSet::Scope::all);
          }
          set->release_staged();
        }
      }
      check_feasible(late);
      const SupportSet::Snapshot snapshot = late.snapshot();
      SupportSet::check(snapshot, 4);
    }
  }
}

TEST("slots give the rows back that they were told to keep, as these came") {
  Problem problem(20, 3, 41);
  std::vector<double> rows(3 * 3);
  const std::vector<std::int64_t> kept = {5, 0, 2}, taken = {19, 7, 3}, asked = {2, 5, 9};
  problem.kernel.kept_rows(kept, rows.data());
  for (const double value : rows) CHECK(value == 0);
  problem.kernel.keep(kept, taken);
  problem.kernel.kept_rows(asked, rows.data());
  for (std::size_t f = 0; f < 3; ++f) {
    CHECK(rows[f] == problem.X(3, f));
    CHECK(rows[3 + f] == problem.X(19, f));
    CHECK(rows[6 + f] == 0);
  }
  Random random(3);
  const Padded<float> single(4, 3, 0, random, -1, 1);
  problem.kernel.use_batch(AnyRows(single.view()));
  bool is_refused = false;
  try {
    problem.kernel.keep(kept, std::vector<std::int64_t>{0, 1, 2});
  } catch (const std::invalid_argument&) {
    is_refused = true;
  }
  CHECK(is_refused);
}

}  // namespace
}  // namespace widemargin::tests

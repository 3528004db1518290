// Snapshots: a machine and its solver that go on from plain numbers do so to the bit, and numbers
// that no machine can have left are refused.
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "dual_problem.hpp"
#include "widemargin/larank.hpp"
#include "widemargin/online.hpp"
#include "widemargin/random.hpp"
#include "widemargin/row_sweeps.hpp"

namespace widemargin::tests {
namespace {

// Another machine at the same place, which shares no memory with the first.
struct Copy {
  Problem problem;
  ZeroSumSet set;

  Copy(std::size_t n_rows, const ZeroSumSet& from, DualLoss loss)
      : problem(n_rows, 4, 71), set(problem.make_set(loss)) {
    const SupportSet::Snapshot snapshot = from.snapshot();
    set.restore(snapshot, snapshot.ids);
  }
};

void check_same(const ZeroSumSet& one, const ZeroSumSet& other) {
  const SupportSet::Snapshot a = one.snapshot(), b = other.snapshot();
  CHECK(a.held == b.held && a.ids == b.ids && a.labels == b.labels && a.caps == b.caps);
  CHECK(a.diagonals == b.diagonals && a.ages == b.ages && a.gradients == b.gradients);
  CHECK(a.coefficients.slots == b.coefficients.slots);
  CHECK(a.coefficients.labels == b.coefficients.labels);
  CHECK(a.coefficients.places == b.coefficients.places);
  CHECK(a.coefficients.values == b.coefficients.values);
  CHECK(a.coefficients.earlier == b.coefficients.earlier);
  CHECK(a.working_sets.slots == b.working_sets.slots);
  CHECK(a.working_sets.labels == b.working_sets.labels);
  CHECK(a.supports == b.supports && a.free == b.free);
  CHECK(a.admitted == b.admitted && a.n_shifts == b.n_shifts);
  CHECK(a.dual == b.dual && a.moment == b.moment);
  CHECK(one.n_vectors() == other.n_vectors());
}

bool is_refused(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

TEST("random numbers are those of the standard library, and go on from their state") {
  Twister random(5489);
  std::mt19937_64 standard(5489);
  for (int i = 0; i < 2000; ++i) CHECK(random() == standard());
  Twister other(1);
  other.restore(random.state());
  for (int i = 0; i < 700; ++i) CHECK(other() == random());
  Twister::State zeros{};
  CHECK(is_refused([&] { other.restore(zeros); }));
  zeros.words[5] = 1;
  zeros.next = Twister::kWords + 1;
  CHECK(is_refused([&] { other.restore(zeros); }));
}

TEST("LaRank goes on to the bit") {
  for (const DualLoss loss : kLosses) {
    Problem problem(160, 4, 71);
    ZeroSumSet set = problem.make_set(loss);
    LaRank solver(set, {}, {40, Budget::Policy::merge, true}, 3);
    const auto rows = std::span<const std::int64_t>(problem.order);
    solver.take(rows.first(100), 0, problem.labels, problem.caps);
    Copy copy(160, set, loss);
    LaRank again(copy.set, {}, {40, Budget::Policy::merge, true}, 99);
    again.restore(solver.snapshot());
    check_same(set, copy.set);
    CHECK(copy.set.take_changed().size() == set.supports().size());
    for (std::size_t first = 100; first < 160; first += 20) {
      solver.take(rows.subspan(first, 20), 0, problem.labels, problem.caps);
      again.take(rows.subspan(first, 20), 0, problem.labels, problem.caps);
    }
    check_same(set, copy.set);
    CHECK(solver.counts().steps == again.counts().steps);
    LaRank::Snapshot forged = solver.snapshot();
    forged.rates[1] = std::numeric_limits<double>::quiet_NaN();
    CHECK(is_refused([&] { again.restore(forged); }));
  }
}

TEST("sweeps go on to the bit, from the middle of one too") {
  for (const DualLoss loss : kLosses) {
    for (const auto scope : {ZeroSumSet::Scope::all, ZeroSumSet::Scope::working_set}) {
      Problem problem(80, 4, 71);
      ZeroSumSet set = problem.make_set(loss);
      if (scope == ZeroSumSet::Scope::all) {
        problem.admit(set, 0, 80);
      } else {
        CHECK(add_constraints(set, problem.order, 0, problem.labels, problem.caps, 0.1) > 0);
      }
      RowSweeps sweeps(set, scope, 4);
      sweeps.sweep(1e-6, 1'000'000);
      sweeps.conjugate_steps(50);
      CHECK(!sweeps.sweep(1e-6, 5).is_over);
      Copy copy(80, set, loss);
      RowSweeps again(copy.set, scope, 77);
      again.restore(sweeps.snapshot());
      for (int turn = 0; turn < 4; ++turn) {
        const auto expected = sweeps.sweep(1e-6, 1'000'000);
        const auto found = again.sweep(1e-6, 1'000'000);
        CHECK(found.violation == expected.violation && found.gain == expected.gain);
        CHECK(found.looked_at == expected.looked_at && found.is_over);
        CHECK(sweeps.conjugate_steps(30) == again.conjugate_steps(30));
      }
      check_same(set, copy.set);
      RowSweeps::Snapshot forged = sweeps.snapshot();
      forged.order = {static_cast<Slot>(set.n_slots())};
      forged.lowest.assign(set.n_slots() + 1, 0.0);
      CHECK(is_refused([&] { again.restore(forged); }));
    }
  }
}

TEST("online learners go on to the bit, with what averages are made of") {
  for (const auto rule : {OnlineLearner::Rule::perceptron, OnlineLearner::Rule::mira}) {
    Problem problem(120, 4, 71);
    ZeroSumSet set = problem.make_set(DualLoss::crammer_singer);
    OnlineLearner learner(set, rule, true, {30, Budget::Policy::redundant, false});
    const auto rows = std::span<const std::int64_t>(problem.order);
    learner.take(rows.first(70), 0, problem.labels, problem.caps);
    Copy copy(120, set, DualLoss::crammer_singer);
    OnlineLearner again(copy.set, rule, true, {30, Budget::Policy::redundant, false});
    again.restore(learner.snapshot());
    learner.take(rows.subspan(70), 0, problem.labels, problem.caps);
    again.take(rows.subspan(70), 0, problem.labels, problem.caps);
    check_same(set, copy.set);
    CHECK(learner.mistakes == again.mistakes && learner.rows_seen == again.rows_seen);
    CHECK(is_refused([&] { again.restore({-1.0, 0}); }));
  }
}

TEST("a snapshot that no machine can have left is refused") {
  Problem problem(60, 4, 71);
  ZeroSumSet set = problem.make_set(DualLoss::crammer_singer);
  LaRank(set, {}, {}, 3).take(problem.order, 0, problem.labels, problem.caps);
  add_constraints(set, problem.order, 0, problem.labels, problem.caps, 1e-3);
  const SupportSet::Snapshot good = set.snapshot();
  SupportSet::check(good, Problem::kClasses);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::size_t held = static_cast<std::size_t>(good.supports.front());
  const std::vector<std::function<void(SupportSet::Snapshot&)>> forgeries = {
      [](auto& each) { each.ids.pop_back(); },
      [](auto& each) { each.gradients.pop_back(); },
      [&](auto& each) { each.gradients[0] = nan; },
      [&](auto& each) { each.labels[held] = 3; },
      [&](auto& each) { each.caps[held] = nan; },
      [&](auto& each) { each.caps[held] = -1; },
      [&](auto& each) { each.ages[held] = each.admitted; },
      [&](auto& each) { each.held[held] = 0; },
      [](auto& each) { each.ids[0] = each.ids[1]; },
      [](auto& each) { each.supports.pop_back(); },
      [](auto& each) { each.supports[0] = each.supports[1]; },
      [](auto& each) { each.supports[0] = -1; },
      [](auto& each) { each.supports[0] = 1000; },
      [](auto& each) { each.free.push_back(0); },
      [](auto& each) { each.coefficients.slots[0] = -1; },
      [](auto& each) { each.coefficients.labels[0] = 3; },
      [](auto& each) { each.coefficients.labels[1] = each.coefficients.labels[0]; },
      [](auto& each) { each.coefficients.places[0] = 1000; },
      [](auto& each) { each.coefficients.places[0] += 1; },
      [&](auto& each) { each.coefficients.values[0] = nan; },
      [](auto& each) { each.coefficients.earlier.pop_back(); },
      [](auto& each) {
        each.working_sets.slots.push_back(1000), each.working_sets.labels.push_back(0);
      },
      [](auto& each) { each.working_sets.labels.push_back(0); },
      [&](auto& each) { each.dual = nan; },
  };
  for (std::size_t i = 0; i < forgeries.size(); ++i) {
    const Case which("forgery " + std::to_string(i));
    SupportSet::Snapshot forged = good;
    forgeries[i](forged);
    CHECK(is_refused([&] { SupportSet::check(forged, Problem::kClasses); }));
    ZeroSumSet other = problem.make_set(DualLoss::crammer_singer);
    CHECK(is_refused([&] { other.restore(forged, forged.ids); }));
    CHECK(other.n_slots() == 0);
  }
  CHECK(is_refused([&] { set.restore(good, good.ids); }));
}

}  // namespace
}  // namespace widemargin::tests

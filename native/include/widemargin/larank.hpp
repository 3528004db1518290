// LaRank: rows come one after the other, and between them those that are known are looked at again.
//
// Problem      as SupportSet
// Operations   new       the next row: a step of its own class against the worst one
//              old       a support pattern: a step of its worst pair of classes
//              optimize  the same, of classes that have coefficients already; ten at a time
//              The pattern is the worst of a few that are drawn at random.
// Schedule     an operation is drawn with odds of what it lately gained for the dual, over what it
//              cost; none has less than `least_odds`. The cost is counted and not timed, so that a
//              seed repeats to the bit.
// Stops        when the rows of the block have all been new
//
// Rows are taken a block at a time, so that their kernel values are computed together; gradients of
// the rows of a block are kept up to date until it is their turn.
//
// Source: Bordes, Bottou, Gallinari and Weston (2007), algorithms 1 to 5. There gradients are held
// for support vectors alone, as classes may be too many to count; here for all classes of support
// patterns, which costs no more for classes in the hundreds, and spares `old` its kernel values. So
// looking at a pattern is cheap beside a step, and a few are looked at for each step; one candidate
// is the paper's way.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "widemargin/budget.hpp"
#include "widemargin/random.hpp"
#include "widemargin/zero_sum.hpp"

namespace widemargin {

class LaRank {
 public:
  enum Operation : std::size_t { kNew, kOld, kOptimize };
  struct Settings {
    double tau = 0.1;     // violations that are no larger are left
    double kappa = 1e-6;  // of a row's largest coefficient, that one must be off its bound to move
    double least_odds = 0.05;    // the paper's eta, which it does not give
    double forgetting = 0.05;    // the paper's mu
    std::size_t candidates = 5;  // patterns that are looked at for a step
    std::array<bool, 3> allowed = {true, true, true};
  };
  struct Counts {
    std::array<std::uint64_t, 3> operations = {0, 0, 0};
    std::uint64_t arg_max = 0;  // searches over all classes
    std::uint64_t steps = 0;
    double loss = 0;  // of new rows before they were learned, times their caps
  };

  LaRank(ZeroSumSet& set, const Settings& settings, const Budget& budget, std::uint64_t seed);

  // Numbers of rows of the batch; the rest as SupportSet::admit.
  void take(std::span<const std::int64_t> rows, std::int64_t first_id,
            std::span<const std::int32_t> labels, std::span<const double> caps);

  const Counts& counts() const { return counts_; }

  // All that later operations depend on, besides the support set.
  struct Snapshot {
    Twister::State random;
    std::array<double, 3> rates;
    Counts counts;
  };
  Snapshot snapshot() const { return {random_.state(), rates_, counts_}; }
  // Goes on from there; std::invalid_argument if no solver can have been there.
  void restore(const Snapshot& snapshot);

 private:
  Operation draw();
  void perform(Operation operation, Slot slot);
  ZeroSumSet::Pair look_at(Slot slot, ZeroSumSet::Scope scope);
  double step(Slot slot, const ZeroSumSet::Pair& pair);
  double step_of_a_support(ZeroSumSet::Scope scope);
  void clear_out(std::span<const Slot> slots);

  ZeroSumSet* set_;
  Settings settings_;
  Budget budget_;
  Twister random_;
  std::array<double, 3> rates_ = {1, 1, 1};
  Counts counts_;
  double cost_ = 0;  // of the operation that is under way
  std::vector<Slot> slots_;
  std::vector<Slot> emptied_;  // that may have lost their last coefficient
};

}  // namespace widemargin

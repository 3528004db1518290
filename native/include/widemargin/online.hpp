// Learners that look at each row once: the kernel perceptron and MIRA.
//
//   perceptron   a row whose class does not have the largest score adds its weight to its own
//                class, and takes it from the worst one
//   mira         the row is moved to where the machine changes least and all classes keep their
//                margin, as far as the cap allows
//
// Source: Collins (2002), with the averages of Freund and Schapire (1998); Crammer and Singer,
// "Ultraconservative Online Algorithms for Multiclass Problems" (2003).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "widemargin/budget.hpp"
#include "widemargin/zero_sum.hpp"

namespace widemargin {

class OnlineLearner {
 public:
  enum class Rule { perceptron, mira };

  // With `averages`, coefficients keep what their average over all rows so far is made of.
  OnlineLearner(ZeroSumSet& set, Rule rule, bool averages, const Budget& budget)
      : set_(&set), rule_(rule), averages_(averages), budget_(budget) {}

  // As LaRank::take; caps are the weights of the perceptron.
  void take(std::span<const std::int64_t> rows, std::int64_t first_id,
            std::span<const std::int32_t> labels, std::span<const double> caps);

  double rows_seen = 0;
  std::uint64_t mistakes = 0;

  // All that later rows depend on, besides the support set.
  struct Snapshot {
    double rows_seen = 0;
    std::uint64_t mistakes = 0;
  };
  Snapshot snapshot() const { return {rows_seen, mistakes}; }
  // Goes on from there; std::invalid_argument if no learner can have been there.
  void restore(const Snapshot& snapshot);

 private:
  void learn(Slot slot, double cap);

  ZeroSumSet* set_;
  Rule rule_;
  bool averages_;
  Budget budget_;
  std::vector<Slot> slots_;
};

}  // namespace widemargin

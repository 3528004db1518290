// The rule of a legal step where the coefficients of each row sum to zero, and lie between bounds
// that are the loss's; and the steps themselves, on the storage of a SupportSet.
//
// Problem      maximise  sum_i margin beta_i(y_i) - 1/2 sum_ij sum_c beta_i(c) beta_j(c) k_ij
//              where each row of beta sums to zero, and lies between bounds that are the loss's:
//                crammer_singer   beta_i(c) <= cap_i [c = y_i]
//                weston_watkins   -cap_i <= beta_i(c) <= 0 for c != y_i
// Step         moves the coefficients of one row to where the dual is largest, of two classes or of
//              several, the others fixed. Rows sum to zero after each, but for the rounding of a
//              single addition: what a step leaves, its own row takes up.
//
// Another rule (a box for each label, constraints across rows) is another header beside this one.
//
// Source: Crammer and Singer (2001); Bordes, Bottou, Gallinari and Weston (2007), equations 7 to
// 11, where line 7 of algorithm 1 has its signs reversed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "widemargin/support_set.hpp"

namespace widemargin {

enum class DualLoss { crammer_singer, weston_watkins };

// All that the rule knows of a loss: the bounds of a coefficient, and how slacks add up to the loss
// of a row. `is_own` says that the coefficient is of the row's own class.
struct CrammerSingerBounds {
  static double upper(double cap, bool is_own) { return is_own ? cap : 0.0; }
  static double lower(double, bool) { return -std::numeric_limits<double>::infinity(); }
  static constexpr bool has_lower = false;  // whether any is finite
  // Whether the cap limits the size of the coefficient, by its bounds or by the sum of zero.
  static bool is_capped(bool) { return true; }
  static double with_slack(double loss, double slack) { return std::max(loss, slack); }
  static constexpr bool sums_slacks = false;  // no class stands for the others
};

struct WestonWatkinsBounds {
  static double upper(double, bool is_own) {
    return is_own ? std::numeric_limits<double>::infinity() : 0.0;
  }
  static double lower(double cap, bool is_own) {
    return is_own ? -std::numeric_limits<double>::infinity() : -cap;
  }
  static constexpr bool has_lower = true;
  static bool is_capped(bool is_own) { return !is_own; }
  static double with_slack(double loss, double slack) { return loss + std::max(0.0, slack); }
  static constexpr bool sums_slacks = true;
};

class ZeroSumSet : public SupportSet {
 public:
  // Which classes of a row a step may move.
  enum class Scope { all, supports, working_set };
  struct Pair {
    std::size_t up = 0, down = 0;
    double violation = 0;  // g(up) - g(down), or 0 where nothing may move
  };
  struct Gap {
    double gap = 0;   // of the rows that are held
    double dual = 0;  // of the machine
  };

  ZeroSumSet(SlotKernel& kernel, std::size_t n_classes, DualLoss loss, double margin, double offset,
             std::size_t cache_bytes, int n_threads);

  // Best pair of classes to move for this row. Of gradients within `tie` of one another the first
  // counts: a step leaves two equal but for rounding, and that is not to choose.
  Pair worst_pair(Slot slot, Scope scope, double kappa, double tie = 0) const;
  // Moves a pair. Returns what the dual gains.
  double step(Slot slot, const Pair& pair);
  // Moves all classes of the scope to their joint optimum; with `anew`, as if the row had no
  // coefficients yet, to which the result is added. Returns the gain.
  double solve_row(Slot slot, Scope scope, bool anew = false);
  // Whether a coefficient is strictly between its bounds.
  bool is_free(Slot slot, std::size_t c) const;
  // Moves coefficients along a direction as far as it gains and the bounds allow; `change` as
  // gradient_change() gives it. Returns the gain, and in `is_blocked` whether a bound was in the
  // way.
  double move_along(std::span<const double> direction, std::span<const double> change,
                    bool& is_blocked);
  // Coefficients of one row are added to those of another, as far as it is alike; with `bounded`,
  // these are then scaled down to its bounds.
  void merge(Slot from, Slot into, bool bounded);
  // The support pattern whose own class would be ahead by most if its coefficients were gone.
  Slot most_redundant_support();

  // The highest gradient of classes that can go up: no pair of the row violates by more than its
  // difference to the lowest of all.
  double highest_to_raise(Slot slot) const;
  // cap times the loss of the row by the scores as they are.
  double loss_of(Slot slot) const;
  Gap gap() const;
  // Whether the slacks of all classes count, and not the largest alone.
  bool sums_slacks() const;

 private:
  template <class Work>
  decltype(auto) by_rule(const Work& work) const {
    return std::visit(work, bounds_);
  }
  template <class Bounds>
  Pair find_worst_pair(Slot slot, Scope scope, double kappa, double tie) const;
  void list_classes(const Pattern& pattern, Scope scope, std::vector<std::uint32_t>& classes) const;
  double upper(const Pattern& pattern, std::size_t c) const;
  double lower(const Pattern& pattern, std::size_t c) const;
  double step_to_cap(Slot slot);
  // What every step of a row ends with.
  void settle(Slot slot);
  void drop_residue(Slot slot);
  void balance(Slot slot);
  void find_losses(std::vector<double>& losses) const;  // of all slots, caps apart

  std::variant<CrammerSingerBounds, WestonWatkinsBounds> bounds_;
  // Room for one step.
  std::vector<std::uint32_t> classes_;
  std::vector<double> targets_, uppers_, lowers_, breaks_;
  std::vector<double> lowest_;  // gradients by slot
};

// Numbers nearest to `targets` between the bounds that sum to zero; these overwrite the targets.
// Each finite bound is met exactly, and the sum but for the rounding of the numbers themselves,
// however large the targets are.
void project_to_zero_sum(std::span<double> targets, std::span<const double> lower,
                         std::span<const double> upper, std::vector<double>& breaks);

}  // namespace widemargin

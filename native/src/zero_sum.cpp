#include "widemargin/zero_sum.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace widemargin {
namespace {

constexpr double kFlat = 1e-10;  // curvature times cap: a row that can change its own score by no
                                 // more than this is moved to its bounds at once
constexpr double kNothing = 1e-12;  // of a step: what it leaves below this is rounding error
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

void project_to_zero_sum(std::span<double> targets, std::span<const double> lower,
                         std::span<const double> upper, std::vector<double>& breaks) {
  // sum_c clip(target_c - shift) falls with the shift, and is linear between the points where a
  // number leaves its upper bound or arrives at its lower one.
  const auto sum_at = [&](double shift) {
    double sum = 0;
    for (std::size_t c = 0; c < targets.size(); ++c) {
      sum += std::clamp(targets[c] - shift, lower[c], upper[c]);
    }
    return sum;
  };
  breaks.clear();
  for (std::size_t c = 0; c < targets.size(); ++c) {
    if (upper[c] < kInfinity) breaks.push_back(targets[c] - upper[c]);
    if (lower[c] > -kInfinity) breaks.push_back(targets[c] - lower[c]);
  }
  std::sort(breaks.begin(), breaks.end());
  // The last break where the sum is not yet below zero.
  const auto after = std::partition_point(breaks.begin(), breaks.end(),
                                          [&](double shift) { return sum_at(shift) >= 0; });
  const double begin = after == breaks.begin() ? -kInfinity : *(after - 1);
  const double end = after == breaks.end() ? kInfinity : *after;
  double fixed = 0, free_sum = 0;
  std::size_t n_free = 0;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    const double leaves = targets[c] - upper[c], arrives = targets[c] - lower[c];
    if (leaves >= end) {
      fixed += upper[c];
    } else if (arrives <= begin) {
      fixed += lower[c];
    } else {
      free_sum += targets[c];
      ++n_free;
    }
  }
  const double shift =
      n_free > 0 ? std::clamp((free_sum + fixed) / static_cast<double>(n_free), begin, end) : begin;
  double excess = 0;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    targets[c] = std::clamp(targets[c] - shift, lower[c], upper[c]);
    excess += targets[c];
  }
  // Of large targets the shift has lost digits, so that the sum is off by as much. Numbers that are
  // on no bound make up for it.
  for (std::size_t c = 0; c < targets.size() && excess != 0; ++c) {
    if (!(targets[c] > lower[c] && targets[c] < upper[c])) continue;
    const double before = targets[c];
    targets[c] = std::clamp(before - excess, lower[c], upper[c]);
    excess += targets[c] - before;
  }
}

ZeroSumSet::ZeroSumSet(SlotKernel& kernel, std::size_t n_classes, DualLoss loss, double margin,
                       double offset, std::size_t cache_bytes, int n_threads)
    : SupportSet(kernel, n_classes, margin, offset, cache_bytes, n_threads) {
  if (loss == DualLoss::weston_watkins) bounds_ = WestonWatkinsBounds();
}

double ZeroSumSet::upper(const Pattern& pattern, std::size_t c) const {
  return by_rule([&](const auto& bounds) { return bounds.upper(pattern.cap, c == pattern.label); });
}

double ZeroSumSet::lower(const Pattern& pattern, std::size_t c) const {
  return by_rule([&](const auto& bounds) { return bounds.lower(pattern.cap, c == pattern.label); });
}

bool ZeroSumSet::sums_slacks() const {
  return by_rule([](const auto& bounds) { return bounds.sums_slacks; });
}

void ZeroSumSet::list_classes(const Pattern& pattern, Scope scope,
                              std::vector<std::uint32_t>& classes) const {
  classes.clear();
  if (scope == Scope::all) {
    for (std::uint32_t c = 0; c < n_classes(); ++c) classes.push_back(c);
    return;
  }
  classes.push_back(pattern.label);
  for (const Coefficient& each : pattern.values) {
    if (each.label != pattern.label) classes.push_back(each.label);
  }
  if (scope == Scope::supports) return;
  for (const std::uint32_t c : pattern.working_set) {
    if (value(pattern, c) == 0) classes.push_back(c);
  }
}

template <class Bounds>
ZeroSumSet::Pair ZeroSumSet::find_worst_pair(Slot slot, Scope scope, double kappa,
                                             double tie) const {
  const Pattern& pattern = this->pattern(slot);
  // Of the row's own coefficients: these may be far below the cap.
  double largest = 0;
  for (const Coefficient& each : pattern.values) largest = std::max(largest, std::abs(each.value));
  const double slack = kappa * largest;
  double highest = -kInfinity, lowest = kInfinity;
  Pair pair;
  const auto consider_up = [&](std::size_t c, double now) {
    const double g = gradient(slot, c);
    if (g > highest + tie && now < Bounds::upper(pattern.cap, c == pattern.label) - slack)
      highest = g, pair.up = c;
  };
  const auto consider_down = [&](std::size_t c, double now) {
    const double g = gradient(slot, c);
    if (g < lowest - tie && now > Bounds::lower(pattern.cap, c == pattern.label) + slack)
      lowest = g, pair.down = c;
  };
  // A wrong class without a coefficient cannot go up.
  bool own_seen = false;
  for (const Coefficient& each : pattern.values) {
    own_seen |= each.label == pattern.label;
    consider_up(each.label, each.value);
    if (scope != Scope::all) consider_down(each.label, each.value);
  }
  if (!own_seen) {
    consider_up(pattern.label, 0);
    if (scope != Scope::all) consider_down(pattern.label, 0);
  }
  if (scope == Scope::working_set) {
    for (const std::uint32_t c : pattern.working_set) {
      if (value(pattern, c) == 0) consider_down(c, 0);
    }
  } else if (scope == Scope::all) {
    const double* const column = gradients_of(0) + slot;
    for (std::size_t c = 0; c < n_classes(); ++c) {
      const double g = column[c * gradient_stride()];
      if (!(g < lowest - tie)) continue;
      if constexpr (Bounds::has_lower) {
        const double least = Bounds::lower(pattern.cap, c == pattern.label);
        if (!(value(pattern, c) > least + slack)) continue;
      }
      lowest = g, pair.down = c;
    }
  }
  if (highest > lowest && pair.up != pair.down) pair.violation = highest - lowest;
  return pair;
}

ZeroSumSet::Pair ZeroSumSet::worst_pair(Slot slot, Scope scope, double kappa, double tie) const {
  return by_rule([&](const auto& bounds) {
    return find_worst_pair<std::decay_t<decltype(bounds)>>(slot, scope, kappa, tie);
  });
}

void ZeroSumSet::settle(Slot slot) {
  drop_residue(slot);
  balance(slot);
  update_place(slot);
}

// As the values of a row sum to zero, one that is alone is what rounding has left.
void ZeroSumSet::drop_residue(Slot slot) {
  if (pattern(slot).values.size() == 1) put(slot, pattern(slot).values.front().label, 0.0, 0.0);
}

// Every step rounds each coefficient for itself, and over many steps a row would drift from its sum
// of zero. The largest coefficient that is on no bound takes up the difference, which is too small
// for gradients to know of.
void ZeroSumSet::balance(Slot slot) {
  const Pattern& pattern = this->pattern(slot);
  const Coefficient* largest = nullptr;
  double sum = 0;
  for (const Coefficient& each : pattern.values) {
    sum += each.value;
    const bool is_free =
        each.value > lower(pattern, each.label) && each.value < upper(pattern, each.label);
    if (is_free && (largest == nullptr || std::abs(each.value) > std::abs(largest->value))) {
      largest = &each;
    }
  }
  if (sum == 0 || largest == nullptr) return;
  const std::size_t c = largest->label;
  put(slot, c, std::clamp(largest->value - sum, lower(pattern, c), upper(pattern, c)),
      largest->earlier);
}

double ZeroSumSet::step(Slot slot, const Pair& pair) {
  const Pattern& pattern = this->pattern(slot);
  const double up = value(pattern, pair.up), down = value(pattern, pair.down);
  const double most_up = upper(pattern, pair.up) - up, most_down = down - lower(pattern, pair.down);
  double amount = std::min(most_up, most_down);
  const double curvature = 2 * pattern.diagonal;
  if (curvature * pattern.cap > kFlat) amount = std::min(amount, pair.violation / curvature);
  if (!(amount > 0) || amount == kInfinity) return 0;
  fetch_row(slot);
  const double gain = amount * pair.violation - 0.5 * amount * amount * curvature;
  // Coefficients that reach a bound are put on it to the bit, and what is left of two that cancel
  // but for rounding is nothing.
  const auto snapped = [&](double v) { return std::abs(v) < kNothing * amount ? 0.0 : v; };
  shift(slot, pair.up, amount, amount == most_up ? upper(pattern, pair.up) : snapped(up + amount));
  shift(slot, pair.down, -amount,
        amount == most_down ? lower(pattern, pair.down) : snapped(down - amount));
  settle(slot);
  add_to_dual(gain);
  return gain;
}

// Of a row that cannot change its own scores: as far as its cap allows, whatever it has already.
double ZeroSumSet::step_to_cap(Slot slot) {
  const Pattern& pattern = this->pattern(slot);
  const std::size_t own = pattern.label;
  const WrongClass worst = worst_wrong_class(slot);
  if (!(gradient(slot, own) > worst.gradient) || !(pattern.cap < kInfinity)) return 0;
  const double before = dual();
  add(slot, own, pattern.cap);
  add(slot, worst.label, -pattern.cap);
  return dual() - before;
}

double ZeroSumSet::solve_row(Slot slot, Scope scope, bool anew) {
  const Pattern& pattern = this->pattern(slot);
  if (!(pattern.diagonal * pattern.cap > kFlat)) {
    return anew ? step_to_cap(slot) : step(slot, worst_pair(slot, scope, 0.0));
  }
  list_classes(pattern, scope, classes_);
  const std::size_t count = classes_.size();
  targets_.resize(count);
  uppers_.resize(count);
  lowers_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t c = classes_[i];
    const double now = anew ? 0.0 : value(pattern, c);
    targets_[i] = now + gradient(slot, c) / pattern.diagonal;
    uppers_[i] = upper(pattern, c);
    lowers_[i] = lower(pattern, c);
  }
  project_to_zero_sum(targets_, lowers_, uppers_, breaks_);
  fetch_row(slot);
  double gain = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t c = classes_[i];
    const double now = value(pattern, c);
    const double change = anew ? targets_[i] : targets_[i] - now;
    if (change == 0) continue;
    gain += change * gradient(slot, c) - 0.5 * change * change * pattern.diagonal;
    shift(slot, c, change, anew ? now + change : targets_[i]);
  }
  settle(slot);
  add_to_dual(gain);
  return gain;
}

bool ZeroSumSet::is_free(Slot slot, std::size_t c) const {
  const Pattern& pattern = this->pattern(slot);
  const double now = value(pattern, c);
  return now > lower(pattern, c) && now < upper(pattern, c);
}

double ZeroSumSet::move_along(std::span<const double> direction, std::span<const double> change,
                              bool& is_blocked) {
  const std::size_t n = n_slots();
  double slope = 0, curvature = 0, longest = kInfinity;
  for (const Slot slot : supports()) {
    const Pattern& pattern = this->pattern(slot);
    for (std::size_t c = 0; c < n_classes(); ++c) {
      const double d = direction[c * n + slot];
      if (d == 0) continue;
      slope += d * gradient(slot, c);
      curvature -= d * change[c * n + slot];
      const double bound = d > 0 ? upper(pattern, c) : lower(pattern, c);
      longest = std::min(longest, (bound - value(pattern, c)) / d);
    }
  }
  const double best = curvature > 0 ? slope / curvature : kInfinity;
  const double length = std::min(longest, best);
  is_blocked = longest <= best;
  if (!(slope > 0) || !(length > 0) || length == kInfinity) return 0;
  const std::vector<Slot> moved(supports().begin(), supports().end());
  for (const Slot slot : moved) {
    const Pattern& pattern = this->pattern(slot);
    for (std::size_t c = 0; c < n_classes(); ++c) {
      const double d = direction[c * n + slot];
      if (d == 0) continue;
      const double to =
          std::clamp(value(pattern, c) + length * d, lower(pattern, c), upper(pattern, c));
      put(slot, c, std::abs(to) < kNothing * std::abs(length * d) ? 0.0 : to, 0.0);
    }
    settle(slot);
  }
  for (std::size_t c = 0; c < n_classes(); ++c) {
    double* const column = gradients_of(c);
    for (std::size_t j = 0; j < n; ++j) column[j] += length * change[c * n + j];
  }
  const double gain = length * slope - 0.5 * length * length * curvature;
  add_to_dual(gain);
  return gain;
}

void ZeroSumSet::merge(Slot from, Slot into, bool bounded) {
  const double share = std::clamp(similarity(from, into) / pattern(into).diagonal, 0.0, 1.0);
  const std::vector<Coefficient> moved = pattern(from).values;
  for (const Coefficient& each : moved) add(into, each.label, share * each.value);
  remove(from);
  const Pattern& pattern = this->pattern(into);
  double most = 0;  // by which bounds are kept
  for (const Coefficient& each : pattern.values) {
    const bool is_own = each.label == pattern.label;
    if (by_rule([&](const auto& bounds) { return bounds.is_capped(is_own); }))
      most = std::max(most, std::abs(each.value));
  }
  if (!bounded || most <= pattern.cap) return;
  std::vector<double> scaled(n_classes(), 0.0);
  for (const Coefficient& each : pattern.values) {
    scaled[each.label] = std::clamp(each.value * (pattern.cap / most), lower(pattern, each.label),
                                    upper(pattern, each.label));
  }
  restore(into, scaled, std::vector<double>(n_classes(), 0.0));
}

Slot ZeroSumSet::most_redundant_support() {
  find_lowest(lowest_);
  Slot chosen = supports().front();
  double most = -kInfinity;
  for (const Slot slot : supports()) {
    const Pattern& pattern = this->pattern(slot);
    const double own = gradient(slot, pattern.label);
    // Without its coefficients a row is further behind than with them.
    const bool is_behind = pattern.diagonal >= 0 && lowest_[slot] < own;
    if (is_behind && lowest_[slot] - own <= most) continue;
    // The lowest of all is a wrong one's, unless the row keeps its margin; few support patterns do.
    double wrong = lowest_[slot] < own ? lowest_[slot] : worst_wrong_class(slot).gradient;
    double own_value = 0;
    for (const Coefficient& each : pattern.values) {
      if (each.label == pattern.label) {
        own_value = each.value;
      } else {
        wrong = std::min(wrong, gradient(slot, each.label) + pattern.diagonal * each.value);
      }
    }
    const double ahead = wrong - own - pattern.diagonal * own_value;
    if (ahead > most) most = ahead, chosen = slot;
  }
  return chosen;
}

double ZeroSumSet::loss_of(Slot slot) const {
  const Pattern& pattern = this->pattern(slot);
  const double own = gradient(slot, pattern.label);
  double loss = 0;
  by_rule([&](const auto& bounds) {
    for (std::size_t c = 0; c < n_classes(); ++c) {
      if (c != pattern.label) loss = bounds.with_slack(loss, own - gradient(slot, c));
    }
  });
  return pattern.cap * loss;
}

// primal - dual = sum_i cap_i loss_i - sum_ic beta_i(c) g_i(c), as |w|^2 = sum_ic beta_i(c) times
// the score; every row's share is 0 or more.
ZeroSumSet::Gap ZeroSumSet::gap() const {
  std::vector<double> losses;
  find_losses(losses);
  Gap result;
  for (std::size_t j = 0; j < n_slots(); ++j) {
    const Pattern& pattern = this->pattern(static_cast<Slot>(j));
    if (!pattern.held) continue;
    result.gap += pattern.cap * losses[j];
    for (const Coefficient& each : pattern.values) {
      const double product = each.value * gradient(static_cast<Slot>(j), each.label);
      result.gap -= product;
      result.dual += 0.5 * product;
      if (each.label == pattern.label) result.dual += 0.5 * margin() * each.value;
    }
  }
  return result;
}

// Class by class, as gradients lie in memory.
void ZeroSumSet::find_losses(std::vector<double>& losses) const {
  const std::size_t n = n_slots();
  std::vector<double> own(n);
  losses.assign(n, 0.0);
  for (std::size_t j = 0; j < n; ++j)
    own[j] = gradient(static_cast<Slot>(j), pattern(static_cast<Slot>(j)).label);
  by_rule([&](const auto& bounds) {
    for (std::size_t c = 0; c < n_classes(); ++c) {
      const double* const column = gradients_of(c);
      for (std::size_t j = 0; j < n; ++j) {
        losses[j] = bounds.with_slack(losses[j], own[j] - column[j]);
      }
    }
  });
}

double ZeroSumSet::highest_to_raise(Slot slot) const {
  const Pattern& pattern = this->pattern(slot);
  double highest = -kInfinity;
  if (value(pattern, pattern.label) < upper(pattern, pattern.label)) {
    highest = gradient(slot, pattern.label);
  }
  for (const Coefficient& each : pattern.values) {
    if (each.value < upper(pattern, each.label)) {
      highest = std::max(highest, gradient(slot, each.label));
    }
  }
  return highest;
}

}  // namespace widemargin

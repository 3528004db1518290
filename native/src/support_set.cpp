#include "widemargin/support_set.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace widemargin {
namespace {

constexpr double kFlat = 1e-10;  // curvature times cap: a row that can change its own score by no
                                 // more than this is moved to its bounds at once
constexpr double kNothing = 1e-12;    // of a step: what it leaves below this is rounding error
constexpr std::size_t kManyRows = 8;  // for which the call of a vector loop is worth it
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

SupportSet::SupportSet(SlotKernel& kernel, std::size_t n_classes, DualLoss loss, double margin,
                       double offset, std::size_t cache_bytes, int n_threads)
    : kernel_(&kernel),
      rows_(kernel, cache_bytes, n_threads),
      n_classes_(n_classes),
      loss_(loss),
      margin_(margin),
      offset_(offset),
      members_(n_classes) {}

double SupportSet::upper(const Pattern& pattern, std::size_t c) const {
  if (c != pattern.label) return 0;
  return loss_ == DualLoss::crammer_singer ? pattern.cap : kInfinity;
}

double SupportSet::lower(const Pattern& pattern, std::size_t c) const {
  return loss_ == DualLoss::crammer_singer || c == pattern.label ? -kInfinity : -pattern.cap;
}

const SupportSet::Coefficient* SupportSet::find(const Pattern& pattern, std::size_t c) {
  for (const Coefficient& each : pattern.values) {
    if (each.label == c) return &each;
  }
  return nullptr;
}

double SupportSet::value(const Pattern& pattern, std::size_t c) {
  const Coefficient* const found = find(pattern, c);
  return found == nullptr ? 0.0 : found->value;
}

double SupportSet::earlier(const Pattern& pattern, std::size_t c) {
  const Coefficient* const found = find(pattern, c);
  return found == nullptr ? 0.0 : found->earlier;
}

void SupportSet::make_room(std::size_t slots) {
  if (slots <= capacity_) return;
  const std::size_t wanted = std::max<std::size_t>({slots, capacity_ + capacity_ / 2, 256});
  AlignedVector<double> wider(n_classes_ * wanted, 0.0);
  for (std::size_t c = 0; c < n_classes_; ++c) {
    std::copy_n(gradients_.data() + c * capacity_, patterns_.size(), wider.data() + c * wanted);
  }
  gradients_.swap(wider);
  capacity_ = wanted;
}

Slot SupportSet::free_slot() {
  if (!free_.empty()) {
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }
  make_room(patterns_.size() + 1);
  patterns_.emplace_back();
  is_changed_.push_back(false);
  return static_cast<Slot>(patterns_.size() - 1);
}

void SupportSet::look_at_all() {
  view_columns_ = patterns_.size();
  view_inhabited_ = slot_of_.size();
  view_moves_ = rows_.moves();
}

double SupportSet::intercept(std::size_t c) const {
  if (offset_ == 0) return 0;
  double sum = 0;
  for (const Member& each : members_[c]) sum += each.value;
  return offset_ * sum;
}

// Four sums side by side: each addition of one waits for the last.
double SupportSet::score_of_staged(std::size_t staged, const std::vector<Member>& members) const {
  double sums[4] = {0, 0, 0, 0};
  std::size_t m = 0;
  for (; m + 4 <= members.size(); m += 4) {
    for (std::size_t l = 0; l < 4; ++l) {
      const Member& each = members[m + l];
      sums[l] += each.value * static_cast<double>(rows_.staged_column(each.slot)[staged]);
    }
  }
  for (; m < members.size(); ++m) {
    sums[0] += members[m].value * static_cast<double>(rows_.staged_column(members[m].slot)[staged]);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void SupportSet::admit(std::span<const std::int64_t> rows, std::int64_t first_id,
                       std::span<const std::int32_t> labels, std::span<const double> caps,
                       std::vector<Slot>& slots) {
  rows_.unstage();
  if (!view_is_fixed_) look_at_all();
  std::vector<Slot> fresh;
  slots.clear();
  for (const std::int64_t row : rows) {
    const auto place = static_cast<std::size_t>(row);
    if (const auto known = slot_of_.find(first_id + row); known != slot_of_.end()) {
      slots.push_back(known->second);
      continue;
    }
    const Slot slot = free_slot();
    rows_.move_in(slot);
    double diagonal = 0;
    try {  // what the caller's kernel may fail to do comes before the row has a name
      kernel_->put(slot, place);
      diagonal = kernel_->diagonal(slot) + offset_;
      if (!std::isfinite(diagonal)) {
        throw std::domain_error(
            "The kernel has values that are not finite in single precision. Check the scale of X, "
            "and the kernel.");
      }
    } catch (...) {
      rows_.move_out(slot);
      free_.push_back(slot);
      throw;
    }
    slot_of_.emplace(first_id + row, slot);
    Pattern& pattern = patterns_[slot];
    pattern.id = first_id + row;
    pattern.label = static_cast<std::uint32_t>(labels[place]);
    pattern.held = true;
    pattern.cap = caps[place];
    pattern.diagonal = diagonal;
    pattern.age = admitted_++;
    slots.push_back(slot);
    fresh.push_back(slot);
  }
  for (const Slot slot : fresh) {
    for (std::size_t c = 0; c < n_classes_; ++c) gradients_[c * capacity_ + slot] = 0;
    gradients_[patterns_[slot].label * capacity_ + slot] = margin_;
  }
  if (supports_.empty() || fresh.empty()) return;
  // Values with one another are not needed until one of these rows has a coefficient.
  rows_.stage(fresh, view_columns_, view_inhabited_, view_moves_);
  // Scores of all of them at once, class by class: what a coefficient adds is a scaled column.
  std::vector<double> scores(n_classes_ * fresh.size());
  const auto add_scaled = instruction_sets().front()->add_scaled;
  for (std::size_t c = 0; c < n_classes_; ++c) {
    double* const sums = scores.data() + c * fresh.size();
    std::fill_n(sums, fresh.size(), intercept(c));
    if (fresh.size() >= kManyRows) {
      for (const Member& each : members_[c]) {
        add_scaled(rows_.staged_column(each.slot), each.value, 0.0, sums, fresh.size());
      }
    } else {
      for (std::size_t i = 0; i < fresh.size(); ++i) sums[i] += score_of_staged(i, members_[c]);
    }
  }
  for (std::size_t c = 0; c < n_classes_; ++c) {
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      gradients_[c * capacity_ + fresh[i]] -= scores[c * fresh.size() + i];
    }
  }
}

void SupportSet::remove(Slot slot) {
  Pattern& pattern = patterns_[slot];
  const std::vector<Coefficient> leaving = pattern.values;
  for (const Coefficient& each : leaving) {
    if (each.value != 0) add(slot, each.label, -each.value);
  }
  // What is left has no value, only a past.
  while (!pattern.values.empty()) put(slot, pattern.values.back().label, 0.0, 0.0);
  update_place(slot);
  slot_of_.erase(pattern.id);
  pattern = Pattern();
  rows_.move_out(slot);
  free_.push_back(slot);
}

std::int64_t SupportSet::find(std::int64_t id) const {
  const auto found = slot_of_.find(id);
  return found == slot_of_.end() ? -1 : static_cast<std::int64_t>(found->second);
}

void SupportSet::list_classes(const Pattern& pattern, Scope scope,
                              std::vector<std::uint32_t>& classes) const {
  classes.clear();
  if (scope == Scope::all) {
    for (std::uint32_t c = 0; c < n_classes_; ++c) classes.push_back(c);
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

SupportSet::Pair SupportSet::worst_pair(Slot slot, Scope scope, double kappa, double tie) const {
  const Pattern& pattern = patterns_[slot];
  // Of the row's own coefficients: these may be far below the cap.
  double largest = 0;
  for (const Coefficient& each : pattern.values) largest = std::max(largest, std::abs(each.value));
  const double slack = kappa * largest;
  double highest = -kInfinity, lowest = kInfinity;
  Pair pair;
  const auto consider_up = [&](std::size_t c, double now) {
    const double g = gradient(slot, c);
    if (g > highest + tie && now < upper(pattern, c) - slack) highest = g, pair.up = c;
  };
  const auto consider_down = [&](std::size_t c, double now) {
    const double g = gradient(slot, c);
    if (g < lowest - tie && now > lower(pattern, c) + slack) lowest = g, pair.down = c;
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
    const double* const column = gradients_.data() + slot;
    const bool bounded = loss_ == DualLoss::weston_watkins;
    for (std::size_t c = 0; c < n_classes_; ++c) {
      const double g = column[c * capacity_];
      if (g < lowest - tie && (!bounded || value(pattern, c) > lower(pattern, c) + slack)) {
        lowest = g, pair.down = c;
      }
    }
  }
  if (highest > lowest && pair.up != pair.down) pair.violation = highest - lowest;
  return pair;
}

// The one place that changes coefficients: those of the row, and the same by class.
void SupportSet::put(Slot slot, std::size_t c, double value, double earlier) {
  Pattern& pattern = patterns_[slot];
  std::vector<Member>& members = members_[c];
  if (!is_changed_[slot]) {
    is_changed_[slot] = true;
    changed_.push_back(slot);
  }
  const auto find_in = [c](std::vector<Coefficient>& values) {
    return std::find_if(values.begin(), values.end(),
                        [c](const Coefficient& each) { return each.label == c; });
  };
  auto found = find_in(pattern.values);
  if (found == pattern.values.end()) {
    if (value == 0 && earlier == 0) return;
    const auto place = static_cast<std::uint32_t>(members.size());
    pattern.values.push_back({static_cast<std::uint32_t>(c), place, value, earlier});
    members.push_back({slot, value});
    ++n_vectors_;
    return;
  }
  found->value = members[found->place].value = value;
  found->earlier = earlier;
  if (value != 0 || earlier != 0) return;
  const std::uint32_t place = found->place;
  pattern.values.erase(found);
  --n_vectors_;
  if (place + 1 != members.size()) {
    members[place] = members.back();
    find_in(patterns_[members[place].slot].values)->place = place;
  }
  members.pop_back();
}

void SupportSet::shift(Slot slot, std::size_t c, double change, double exact) {
  put(slot, c, exact, earlier(patterns_[slot], c) + moment * change);
  ++n_shifts_;
  const std::span<const float> kernel_row = rows_.row(slot);
  instruction_sets().front()->add_scaled(kernel_row.data(), -change, -change * offset_,
                                         gradients_.data() + c * capacity_, patterns_.size());
}

std::vector<Slot> SupportSet::take_changed() {
  for (const Slot slot : changed_) is_changed_[slot] = false;
  return std::exchange(changed_, {});
}

void SupportSet::settle(Slot slot) {
  drop_residue(slot);
  balance(slot);
  update_place(slot);
}

// As the values of a row sum to zero, one that is alone is what rounding has left.
void SupportSet::drop_residue(Slot slot) {
  if (patterns_[slot].values.size() == 1) put(slot, patterns_[slot].values.front().label, 0.0, 0.0);
}

// Every step rounds each coefficient for itself, and over many steps a row would drift from its sum
// of zero. The largest coefficient that is on no bound takes up the difference, which is too small
// for gradients to know of.
void SupportSet::balance(Slot slot) {
  const Pattern& pattern = patterns_[slot];
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

void SupportSet::update_place(Slot slot) {
  Pattern& pattern = patterns_[slot];
  const bool listed = pattern.place != kNowhere;
  if (!pattern.values.empty() && !listed) {
    pattern.place = supports_.size();
    supports_.push_back(slot);
  } else if (pattern.values.empty() && listed) {
    supports_[pattern.place] = supports_.back();
    patterns_[supports_.back()].place = pattern.place;
    supports_.pop_back();
    pattern.place = kNowhere;
  }
}

double SupportSet::step(Slot slot, const Pair& pair) {
  Pattern& pattern = patterns_[slot];
  const double up = value(pattern, pair.up), down = value(pattern, pair.down);
  const double most_up = upper(pattern, pair.up) - up, most_down = down - lower(pattern, pair.down);
  double amount = std::min(most_up, most_down);
  const double curvature = 2 * pattern.diagonal;
  if (curvature * pattern.cap > kFlat) amount = std::min(amount, pair.violation / curvature);
  if (!(amount > 0) || amount == kInfinity) return 0;
  rows_.row(slot);  // what may fail comes before anything changes
  const double gain = amount * pair.violation - 0.5 * amount * amount * curvature;
  // Coefficients that reach a bound are put on it to the bit, and what is left of two that cancel
  // but for rounding is nothing.
  const auto snapped = [&](double v) { return std::abs(v) < kNothing * amount ? 0.0 : v; };
  shift(slot, pair.up, amount, amount == most_up ? upper(pattern, pair.up) : snapped(up + amount));
  shift(slot, pair.down, -amount,
        amount == most_down ? lower(pattern, pair.down) : snapped(down - amount));
  settle(slot);
  dual_ += gain;
  return gain;
}

// Of a row that cannot change its own scores: as far as its cap allows, whatever it has already.
double SupportSet::step_to_cap(Slot slot) {
  const Pattern& pattern = patterns_[slot];
  const std::size_t own = pattern.label;
  std::size_t worst = own;
  for (std::size_t c = 0; c < n_classes_; ++c) {
    if (c != own && (worst == own || gradient(slot, c) < gradient(slot, worst))) worst = c;
  }
  if (!(gradient(slot, own) > gradient(slot, worst)) || !(pattern.cap < kInfinity)) return 0;
  const double before = dual_;
  add(slot, own, pattern.cap);
  add(slot, worst, -pattern.cap);
  return dual_ - before;
}

double SupportSet::solve_row(Slot slot, Scope scope, bool anew) {
  Pattern& pattern = patterns_[slot];
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
  rows_.row(slot);  // what may fail comes before anything changes
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
  dual_ += gain;
  return gain;
}

bool SupportSet::is_free(Slot slot, std::size_t c) const {
  const Pattern& pattern = patterns_[slot];
  const double now = value(pattern, c);
  return now > lower(pattern, c) && now < upper(pattern, c);
}

void SupportSet::gradient_change(std::span<const double> direction, std::span<double> change) {
  std::fill(change.begin(), change.end(), 0.0);
  const std::size_t n = patterns_.size();
  const auto add_scaled = instruction_sets().front()->add_scaled;
  for (const Slot slot : supports_) {
    for (std::size_t c = 0; c < n_classes_; ++c) {
      const double d = direction[c * n + slot];
      if (d == 0) continue;
      add_scaled(rows_.row(slot).data(), -d, -d * offset_, change.data() + c * n, n);
      ++n_shifts_;
    }
  }
}

double SupportSet::move_along(std::span<const double> direction, std::span<const double> change,
                              bool& is_blocked) {
  const std::size_t n = patterns_.size();
  double slope = 0, curvature = 0, longest = kInfinity;
  for (const Slot slot : supports_) {
    const Pattern& pattern = patterns_[slot];
    for (std::size_t c = 0; c < n_classes_; ++c) {
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
  const std::vector<Slot> moved(supports_.begin(), supports_.end());
  for (const Slot slot : moved) {
    const Pattern& pattern = patterns_[slot];
    for (std::size_t c = 0; c < n_classes_; ++c) {
      const double d = direction[c * n + slot];
      if (d == 0) continue;
      const double to =
          std::clamp(value(pattern, c) + length * d, lower(pattern, c), upper(pattern, c));
      put(slot, c, std::abs(to) < kNothing * std::abs(length * d) ? 0.0 : to, 0.0);
    }
    settle(slot);
  }
  for (std::size_t c = 0; c < n_classes_; ++c) {
    double* const column = gradients_.data() + c * capacity_;
    for (std::size_t j = 0; j < n; ++j) column[j] += length * change[c * n + j];
  }
  const double gain = length * slope - 0.5 * length * length * curvature;
  dual_ += gain;
  return gain;
}

void SupportSet::add(Slot slot, std::size_t label, double change) {
  const Pattern& pattern = patterns_[slot];
  rows_.row(slot);  // what may fail comes before anything changes
  dual_ += change * gradient(slot, label) - 0.5 * change * change * pattern.diagonal;
  shift(slot, label, change, value(pattern, label) + change);
  update_place(slot);
}

void SupportSet::restore(Slot slot, std::span<const double> values,
                         std::span<const double> earlier) {
  for (std::size_t c = 0; c < n_classes_; ++c) {
    const double change = values[c] - value(patterns_[slot], c);
    if (change != 0) add(slot, c, change);
    put(slot, c, values[c], earlier[c]);
  }
  update_place(slot);
}

void SupportSet::merge(Slot from, Slot into, bool bounded) {
  const double similarity = static_cast<double>(rows_.row(from)[into]) + offset_;
  const double share = std::clamp(similarity / patterns_[into].diagonal, 0.0, 1.0);
  const std::vector<Coefficient> moved = patterns_[from].values;
  for (const Coefficient& each : moved) add(into, each.label, share * each.value);
  remove(from);
  Pattern& pattern = patterns_[into];
  double most = 0;  // by which bounds are kept
  for (const Coefficient& each : pattern.values) {
    const bool counts = loss_ == DualLoss::crammer_singer || each.label != pattern.label;
    if (counts) most = std::max(most, std::abs(each.value));
  }
  if (!bounded || most <= pattern.cap) return;
  std::vector<double> scaled(n_classes_, 0.0);
  for (const Coefficient& each : pattern.values) {
    scaled[each.label] = std::clamp(each.value * (pattern.cap / most), lower(pattern, each.label),
                                    upper(pattern, each.label));
  }
  restore(into, scaled, std::vector<double>(n_classes_, 0.0));
}

Slot SupportSet::oldest_support() const {
  return *std::min_element(supports_.begin(), supports_.end(),
                           [&](Slot a, Slot b) { return patterns_[a].age < patterns_[b].age; });
}

Slot SupportSet::nearest_support(Slot slot) {
  const std::span<const float> kernel_row = rows_.row(slot);
  Slot nearest = slot;
  double most = -kInfinity;
  for (const Slot other : supports_) {
    const Pattern& pattern = patterns_[other];
    if (other == slot || pattern.label != patterns_[slot].label || !(pattern.diagonal > 0))
      continue;
    const double product = static_cast<double>(kernel_row[other]) + offset_;
    const double similarity = product / std::sqrt(pattern.diagonal);
    if (similarity > most) most = similarity, nearest = other;
  }
  return nearest;
}

double SupportSet::loss_of(Slot slot) const {
  const Pattern& pattern = patterns_[slot];
  const double own = gradient(slot, pattern.label);
  double loss = 0;
  for (std::size_t c = 0; c < n_classes_; ++c) {
    if (c == pattern.label) continue;
    const double slack = std::max(0.0, own - gradient(slot, c));
    loss = loss_ == DualLoss::crammer_singer ? std::max(loss, slack) : loss + slack;
  }
  return pattern.cap * loss;
}

// primal - dual = sum_i cap_i loss_i - sum_ic beta_i(c) g_i(c), as |w|^2 = sum_ic beta_i(c) times
// the score; every row's share is 0 or more.
SupportSet::Gap SupportSet::gap() const {
  std::vector<double> losses;
  find_losses(losses);
  Gap result;
  for (std::size_t j = 0; j < patterns_.size(); ++j) {
    const Pattern& pattern = patterns_[j];
    if (!pattern.held) continue;
    result.gap += pattern.cap * losses[j];
    for (const Coefficient& each : pattern.values) {
      const double product = each.value * gradient(static_cast<Slot>(j), each.label);
      result.gap -= product;
      result.dual += 0.5 * product;
      if (each.label == pattern.label) result.dual += 0.5 * margin_ * each.value;
    }
  }
  return result;
}

// Class by class, as gradients lie in memory.
void SupportSet::find_losses(std::vector<double>& losses) const {
  const std::size_t n = patterns_.size();
  std::vector<double> own(n);
  losses.assign(n, 0.0);
  for (std::size_t j = 0; j < n; ++j) own[j] = gradient(static_cast<Slot>(j), patterns_[j].label);
  for (std::size_t c = 0; c < n_classes_; ++c) {
    const double* const column = gradients_.data() + c * capacity_;
    if (loss_ == DualLoss::crammer_singer) {
      for (std::size_t j = 0; j < n; ++j) losses[j] = std::max(losses[j], own[j] - column[j]);
    } else {
      for (std::size_t j = 0; j < n; ++j) losses[j] += std::max(0.0, own[j] - column[j]);
    }
  }
}

void SupportSet::find_lowest(std::vector<double>& lowest) const {
  lowest.assign(patterns_.size(), kInfinity);
  for (std::size_t c = 0; c < n_classes_; ++c) {
    const double* const column = gradients_.data() + c * capacity_;
    for (std::size_t j = 0; j < lowest.size(); ++j) lowest[j] = std::min(lowest[j], column[j]);
  }
}

double SupportSet::highest_to_raise(Slot slot) const {
  const Pattern& pattern = patterns_[slot];
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

#include "widemargin/support_set.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace widemargin {
namespace {

constexpr std::size_t kManyRows = 8;  // for which the call of a vector loop is worth it
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

SupportSet::SupportSet(SlotKernel& kernel, std::size_t n_classes, double margin, double offset,
                       std::size_t cache_bytes, int n_threads)
    : kernel_(&kernel),
      rows_(kernel, cache_bytes, n_threads),
      n_classes_(n_classes),
      margin_(margin),
      offset_(offset),
      members_(n_classes) {}

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

void SupportSet::add(Slot slot, std::size_t label, double change) {
  const Pattern& pattern = patterns_[slot];
  rows_.row(slot);  // what may fail comes before anything changes
  dual_ += change * gradient(slot, label) - 0.5 * change * change * pattern.diagonal;
  shift(slot, label, change, value(pattern, label) + change);
  update_place(slot);
}

void SupportSet::add_class(std::size_t position) {
  if (position > n_classes_) throw std::invalid_argument("there is no such place for a class");
  const auto at = static_cast<std::ptrdiff_t>(position);
  // What may fail comes first. The score of a class without coefficients is zero, and so is its
  // gradient: no row is its own.
  members_.reserve(n_classes_ + 1);
  gradients_.insert(gradients_.begin() + at * static_cast<std::ptrdiff_t>(capacity_), capacity_,
                    0.0);
  members_.emplace(members_.begin() + at);
  ++n_classes_;
  const auto renumber = [&](std::uint32_t& label) { label += label >= position; };
  for (Pattern& pattern : patterns_) {
    renumber(pattern.label);
    for (Coefficient& each : pattern.values) renumber(each.label);
    for (std::uint32_t& label : pattern.working_set) renumber(label);
  }
  for (const Slot slot : supports_) {  // their coefficients are of other classes now
    if (!is_changed_[slot]) changed_.push_back(slot);
    is_changed_[slot] = true;
  }
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

SupportSet::WrongClass SupportSet::worst_wrong_class(Slot slot) const {
  const std::size_t own = label(slot);
  WrongClass worst{own, kInfinity};
  for (std::size_t c = 0; c < n_classes_; ++c) {
    const double g = gradient(slot, c);
    if (c != own && g < worst.gradient) worst = {c, g};
  }
  return worst;
}

void SupportSet::find_lowest(std::vector<double>& lowest) const {
  lowest.assign(patterns_.size(), kInfinity);
  for (std::size_t c = 0; c < n_classes_; ++c) {
    const double* const column = gradients_.data() + c * capacity_;
    for (std::size_t j = 0; j < lowest.size(); ++j) lowest[j] = std::min(lowest[j], column[j]);
  }
}

}  // namespace widemargin

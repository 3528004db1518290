// A support set as plain numbers, and back. What comes back may be from a file that somebody
// forged, so that all of it is checked before any of it is used.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <unordered_set>

#include "widemargin/support_set.hpp"

namespace widemargin {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("widemargin: state of a machine: ") + what);
}

template <class T>
bool all_finite(const std::vector<T>& values) {
  return std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); });
}

// Numbers of slots, each at most once; `held` says whether somebody lives there.
void check_slots(const SupportSet::Snapshot& snapshot, const std::vector<std::int32_t>& slots,
                 bool held) {
  std::vector<bool> seen(snapshot.held.size(), false);
  for (const std::int32_t number : slots) {
    const auto slot = static_cast<std::size_t>(number);
    require(number >= 0 && slot < seen.size() && !seen[slot], "a slot is not there, or twice");
    require((snapshot.held[slot] != 0) == held, "a list has slots of others");
    seen[slot] = true;
  }
}

void check_coefficients(const SupportSet::Snapshot& snapshot, std::size_t n_classes) {
  const auto& list = snapshot.coefficients;
  const std::size_t count = list.slots.size();
  require(list.labels.size() == count && list.places.size() == count &&
              list.values.size() == count && list.earlier.size() == count,
          "coefficients differ in number");
  require(all_finite(list.values) && all_finite(list.earlier), "a coefficient is not finite");
  std::vector<std::size_t> of_class(n_classes, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto slot = static_cast<std::size_t>(list.slots[i]);
    require(list.slots[i] >= 0 && slot < snapshot.held.size() && snapshot.held[slot] != 0,
            "a coefficient belongs to nobody");
    require(i == 0 || list.slots[i - 1] <= list.slots[i], "coefficients are out of order");
    require(list.labels[i] >= 0 && static_cast<std::size_t>(list.labels[i]) < n_classes,
            "a coefficient is of no class");
    ++of_class[static_cast<std::size_t>(list.labels[i])];
  }
  std::vector<std::vector<bool>> is_taken;
  for (const std::size_t each : of_class) is_taken.emplace_back(each, false);
  std::unordered_set<std::int32_t> labels_of_slot;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 0 || list.slots[i - 1] != list.slots[i]) labels_of_slot.clear();
    require(labels_of_slot.insert(list.labels[i]).second, "a row has two coefficients of a class");
    auto& taken = is_taken[static_cast<std::size_t>(list.labels[i])];
    const auto place = static_cast<std::size_t>(list.places[i]);
    require(list.places[i] >= 0 && place < taken.size() && !taken[place],
            "coefficients of a class are out of place");
    taken[place] = true;
  }
}

}  // namespace

SupportSet::Snapshot SupportSet::snapshot() const {
  Snapshot out;
  const std::size_t n = patterns_.size();
  out.gradients.assign(n_classes_ * n, 0.0);
  for (std::size_t j = 0; j < n; ++j) {
    const Pattern& pattern = patterns_[j];
    out.held.push_back(pattern.held ? 1 : 0);
    out.ids.push_back(pattern.held ? pattern.id : 0);
    out.labels.push_back(pattern.held ? static_cast<std::int32_t>(pattern.label) : 0);
    out.caps.push_back(pattern.held ? pattern.cap : 0.0);
    out.diagonals.push_back(pattern.held ? pattern.diagonal : 0.0);
    out.ages.push_back(pattern.held ? pattern.age : 0);
    if (!pattern.held) continue;
    const auto slot = static_cast<Slot>(j);
    for (std::size_t c = 0; c < n_classes_; ++c) out.gradients[c * n + j] = gradient(slot, c);
    for (const Coefficient& each : pattern.values) {
      out.coefficients.slots.push_back(static_cast<std::int32_t>(j));
      out.coefficients.labels.push_back(static_cast<std::int32_t>(each.label));
      out.coefficients.places.push_back(static_cast<std::int32_t>(each.place));
      out.coefficients.values.push_back(each.value);
      out.coefficients.earlier.push_back(each.earlier);
    }
    for (const std::uint32_t c : pattern.working_set) {
      out.working_sets.slots.push_back(static_cast<std::int32_t>(j));
      out.working_sets.labels.push_back(static_cast<std::int32_t>(c));
    }
  }
  out.supports.assign(supports_.begin(), supports_.end());
  out.free.assign(free_.begin(), free_.end());
  out.admitted = admitted_;
  out.n_shifts = n_shifts_;
  out.n_computed = rows_.computed();
  out.dual = dual_;
  out.moment = moment;
  return out;
}

void SupportSet::check(const Snapshot& snapshot, std::size_t n_classes) {
  const std::size_t n = snapshot.held.size();
  require(snapshot.ids.size() == n && snapshot.labels.size() == n && snapshot.caps.size() == n &&
              snapshot.diagonals.size() == n && snapshot.ages.size() == n,
          "parts of the slots differ in length");
  require(snapshot.gradients.size() == n_classes * n, "gradients are not classes x slots");
  require(all_finite(snapshot.gradients) && all_finite(snapshot.diagonals) &&
              std::isfinite(snapshot.dual) && std::isfinite(snapshot.moment),
          "a number is not finite");
  std::unordered_set<std::int64_t> ids;
  std::size_t n_held = 0;
  for (std::size_t j = 0; j < n; ++j) {
    if (snapshot.held[j] == 0) continue;
    ++n_held;
    require(ids.insert(snapshot.ids[j]).second, "two rows have one name");
    require(snapshot.labels[j] >= 0 && static_cast<std::size_t>(snapshot.labels[j]) < n_classes,
            "a row is of no class");
    require(snapshot.caps[j] >= 0, "a cap is below zero");
    require(snapshot.ages[j] < snapshot.admitted, "a row is younger than the machine");
  }
  check_slots(snapshot, snapshot.supports, true);
  check_slots(snapshot, snapshot.free, false);
  require(snapshot.free.size() == n - n_held, "free slots are missing");
  check_coefficients(snapshot, n_classes);
  std::vector<bool> has_some(n, false);
  for (const std::int32_t slot : snapshot.coefficients.slots) {
    has_some[static_cast<std::size_t>(slot)] = true;
  }
  require(static_cast<std::size_t>(std::count(has_some.begin(), has_some.end(), true)) ==
              snapshot.supports.size(),
          "support patterns are missing");
  for (const std::int32_t slot : snapshot.supports) {
    require(has_some[static_cast<std::size_t>(slot)], "a support pattern has no coefficient");
  }
  const auto& working = snapshot.working_sets;
  require(working.slots.size() == working.labels.size(), "working sets differ in length");
  for (std::size_t i = 0; i < working.slots.size(); ++i) {
    const auto slot = static_cast<std::size_t>(working.slots[i]);
    require(working.slots[i] >= 0 && slot < n && snapshot.held[slot] != 0 &&
                working.labels[i] >= 0 && static_cast<std::size_t>(working.labels[i]) < n_classes,
            "a working set belongs to nobody, or has no such class");
  }
}

void SupportSet::restore(const Snapshot& snapshot, std::span<const std::int64_t> rows) {
  check(snapshot, n_classes_);
  require(patterns_.empty(), "the machine that takes it on must be new");
  const std::size_t n = snapshot.held.size();
  require(rows.size() == n, "rows are not one a slot");
  make_room(n);
  patterns_.resize(n);
  is_changed_.assign(n, false);
  rows_.begin(n, snapshot.n_computed);
  for (std::size_t j = 0; j < n; ++j) {
    if (snapshot.held[j] == 0) continue;
    const auto slot = static_cast<Slot>(j);
    rows_.move_in(slot);
    kernel_->put(slot, static_cast<std::size_t>(rows[j]));
    Pattern& pattern = patterns_[j];
    pattern.held = true;
    pattern.id = snapshot.ids[j];
    pattern.label = static_cast<std::uint32_t>(snapshot.labels[j]);
    pattern.cap = snapshot.caps[j];
    pattern.diagonal = snapshot.diagonals[j];
    pattern.age = snapshot.ages[j];
    slot_of_.emplace(pattern.id, slot);
    for (std::size_t c = 0; c < n_classes_; ++c) {
      gradients_[c * capacity_ + j] = snapshot.gradients[c * n + j];
    }
  }
  const auto& list = snapshot.coefficients;
  for (const std::int32_t c : list.labels) members_[static_cast<std::size_t>(c)].emplace_back();
  for (std::size_t i = 0; i < list.slots.size(); ++i) {
    const auto slot = static_cast<Slot>(list.slots[i]);
    const auto label = static_cast<std::uint32_t>(list.labels[i]);
    const auto place = static_cast<std::uint32_t>(list.places[i]);
    patterns_[slot].values.push_back({label, place, list.values[i], list.earlier[i]});
    members_[label][place] = {slot, list.values[i]};
  }
  n_vectors_ = list.slots.size();
  for (std::size_t i = 0; i < snapshot.working_sets.slots.size(); ++i) {
    patterns_[static_cast<std::size_t>(snapshot.working_sets.slots[i])].working_set.push_back(
        static_cast<std::uint32_t>(snapshot.working_sets.labels[i]));
  }
  for (const std::int32_t number : snapshot.supports) {
    const auto slot = static_cast<Slot>(number);
    patterns_[slot].place = supports_.size();
    supports_.push_back(slot);
    is_changed_[slot] = true;  // for who has seen nothing of this machine yet
    changed_.push_back(slot);
  }
  free_.assign(snapshot.free.begin(), snapshot.free.end());
  admitted_ = snapshot.admitted;
  n_shifts_ = snapshot.n_shifts;
  dual_ = snapshot.dual;
  moment = snapshot.moment;
}

}  // namespace widemargin

#include "widemargin/row_sweeps.hpp"

#include <algorithm>
#include <limits>

#include "widemargin/larank.hpp"

namespace widemargin {
namespace {

constexpr double kThreshold = 0.3;  // of the largest violation

// By how much the worst class is above its own, margin included; below zero for rows that are
// right.
double shortfall(const SupportSet& set, Slot slot, std::size_t& worst) {
  const std::size_t own = set.label(slot);
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < set.n_classes(); ++c) {
    const double g = set.gradient(slot, c);
    if (c != own && g < lowest) lowest = g, worst = c;
  }
  return set.gradient(slot, own) - lowest;
}

}  // namespace

Inspection inspect(SupportSet& set, std::span<const std::int64_t> rows, std::int64_t first_id,
                   std::span<const std::int32_t> labels, std::span<const double> caps,
                   double keep_above) {
  std::vector<Slot> slots;
  set.admit(rows, first_id, labels, caps, slots);
  Inspection result;
  std::size_t worst = 0;
  for (const Slot slot : slots) {
    if (set.is_support(slot)) continue;
    const double violation = shortfall(set, slot, worst);
    if (set.cap(slot) > 0) result.violation = std::max(result.violation, violation);
    if (violation > keep_above && set.cap(slot) > 0) {
      ++result.kept;
    } else {
      result.loss += set.loss_of(slot);
      set.remove(slot);
    }
  }
  if (result.kept > 0) set.spread_staged();
  set.release_staged();
  return result;
}

void release_all(SupportSet& set) {
  release_satisfied(set, std::numeric_limits<double>::infinity());
}

std::size_t release_satisfied(SupportSet& set, double keep_above) {
  std::size_t released = 0, worst = 0;
  for (std::size_t i = 0; i < set.n_slots(); ++i) {
    const auto slot = static_cast<Slot>(i);
    if (!set.is_held(slot) || set.is_support(slot)) continue;
    if (shortfall(set, slot, worst) > keep_above) continue;
    set.remove(slot);
    ++released;
  }
  return released;
}

std::size_t add_constraints(SupportSet& set, std::span<const std::int64_t> rows,
                            std::int64_t first_id, std::span<const std::int32_t> labels,
                            std::span<const double> caps, double epsilon) {
  std::vector<Slot> slots;
  set.admit(rows, first_id, labels, caps, slots);
  std::size_t joined = 0;
  for (const Slot slot : slots) {
    std::size_t worst = 0;
    const double violation = shortfall(set, slot, worst);
    std::vector<std::uint32_t>& working_set = set.working_set(slot);
    double known = 0;
    for (const std::uint32_t c : working_set) {
      known = std::max(known, set.gradient(slot, set.label(slot)) - set.gradient(slot, c));
    }
    if (set.cap(slot) > 0 && set.loss() == DualLoss::weston_watkins) {
      // Every class has a slack of its own, so that one does not stand for the others.
      for (std::uint32_t c = 0; c < set.n_classes(); ++c) {
        const double slack = set.gradient(slot, set.label(slot)) - set.gradient(slot, c);
        const bool known_one =
            std::find(working_set.begin(), working_set.end(), c) != working_set.end();
        if (c == set.label(slot) || known_one || !(slack > epsilon)) continue;
        working_set.push_back(c);
        ++joined;
      }
    } else if (violation > known + epsilon && set.cap(slot) > 0) {
      working_set.push_back(static_cast<std::uint32_t>(worst));
      ++joined;
    }
    if (working_set.empty() && !set.is_support(slot)) {
      set.remove(slot);
    }
  }
  set.release_staged();
  return joined;
}

RowSweeps::Result RowSweeps::sweep(double tol) {
  order_.clear();
  for (std::size_t slot = 0; slot < set_->n_slots(); ++slot) {
    if (set_->is_held(static_cast<Slot>(slot))) order_.push_back(static_cast<Slot>(slot));
  }
  for (std::size_t left = order_.size(); left > 1; --left) {
    std::swap(order_[left - 1], order_[draw_index(random_, left)]);
  }
  const double threshold = std::max(tol, threshold_);
  Result result;
  for (const Slot slot : order_) {
    const double violation = set_->worst_pair(slot, scope_, 0.0).violation;
    result.violation = std::max(result.violation, violation);
    if (!(violation > threshold)) continue;
    result.gain += set_->solve_row(slot, scope_);
    ++result.solved;
  }
  result.looked_at = order_.size();
  threshold_ = kThreshold * result.violation;
  return result;
}

}  // namespace widemargin

#include "widemargin/row_sweeps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace widemargin {
namespace {

constexpr double kThreshold = 0.3;  // of the largest violation

constexpr double kConverged = 1e-6;  // of the squared residual at the beginning

// By how much the worst class is above its own, margin included; below zero for rows that are
// right.
double shortfall(const ZeroSumSet& set, Slot slot) {
  return set.gradient(slot, set.label(slot)) - set.worst_wrong_class(slot).gradient;
}

}  // namespace

Inspection inspect(ZeroSumSet& set, std::span<const std::int64_t> rows, std::int64_t first_id,
                   std::span<const std::int32_t> labels, std::span<const double> caps,
                   double keep_above) {
  std::vector<Slot> slots;
  set.admit(rows, first_id, labels, caps, slots);
  Inspection result;
  for (const Slot slot : slots) {
    if (set.is_support(slot)) continue;
    const double violation = shortfall(set, slot);
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

void release_all(ZeroSumSet& set) {
  release_satisfied(set, std::numeric_limits<double>::infinity());
}

std::size_t release_satisfied(ZeroSumSet& set, double keep_above) {
  std::size_t released = 0;
  for (std::size_t i = 0; i < set.n_slots(); ++i) {
    const auto slot = static_cast<Slot>(i);
    if (!set.is_held(slot) || set.is_support(slot)) continue;
    if (shortfall(set, slot) > keep_above) continue;
    set.remove(slot);
    ++released;
  }
  return released;
}

std::size_t add_constraints(ZeroSumSet& set, std::span<const std::int64_t> rows,
                            std::int64_t first_id, std::span<const std::int32_t> labels,
                            std::span<const double> caps, double epsilon) {
  std::vector<Slot> slots;
  set.admit(rows, first_id, labels, caps, slots);
  std::size_t joined = 0;
  for (const Slot slot : slots) {
    const double own = set.gradient(slot, set.label(slot));
    const SupportSet::WrongClass worst = set.worst_wrong_class(slot);
    std::vector<std::uint32_t>& working_set = set.working_set(slot);
    double known = 0;
    for (const std::uint32_t c : working_set) {
      known = std::max(known, own - set.gradient(slot, c));
    }
    if (set.cap(slot) > 0 && set.sums_slacks()) {
      // Every class has a slack of its own, so that one does not stand for the others.
      for (std::uint32_t c = 0; c < set.n_classes(); ++c) {
        const double slack = own - set.gradient(slot, c);
        const bool known_one =
            std::find(working_set.begin(), working_set.end(), c) != working_set.end();
        if (c == set.label(slot) || known_one || !(slack > epsilon)) continue;
        working_set.push_back(c);
        ++joined;
      }
    } else if (own - worst.gradient > known + epsilon && set.cap(slot) > 0) {
      working_set.push_back(static_cast<std::uint32_t>(worst.label));
      ++joined;
    }
    if (working_set.empty() && !set.is_support(slot)) {
      set.remove(slot);
    }
  }
  set.release_staged();
  return joined;
}

RowSweeps::Snapshot RowSweeps::snapshot() const {
  Snapshot out{random_.state(), {}, 0, {}, result_, threshold_};
  if (next_ == order_.size()) return out;
  out.order = order_;
  out.next = next_;
  out.lowest.assign(lowest_.size(), 0.0);
  for (const Slot slot : order_) out.lowest[slot] = lowest_[slot];
  return out;
}

void RowSweeps::restore(Snapshot snapshot) {
  const auto require = [](bool holds) {
    if (!holds) throw std::invalid_argument("widemargin: no sweep can have been here");
  };
  require(snapshot.next <= snapshot.order.size() && !std::isnan(snapshot.threshold));
  for (const Slot slot : snapshot.order) {
    require(slot < set_->n_slots() && set_->is_held(slot) && slot < snapshot.lowest.size());
  }
  random_.restore(snapshot.random);
  order_ = std::move(snapshot.order);
  next_ = snapshot.next;
  lowest_ = std::move(snapshot.lowest);
  result_ = snapshot.result;
  threshold_ = snapshot.threshold;
}

void RowSweeps::begin_sweep() {
  order_.clear();
  next_ = 0;
  for (std::size_t slot = 0; slot < set_->n_slots(); ++slot) {
    if (set_->is_held(static_cast<Slot>(slot))) order_.push_back(static_cast<Slot>(slot));
  }
  for (std::size_t left = order_.size(); left > 1; --left) {
    std::swap(order_[left - 1], order_[draw_index(random_, left)]);
  }
  result_ = Result();
  set_->find_lowest(lowest_);
}

RowSweeps::Result RowSweeps::sweep(double tol, std::uint64_t most_shifts) {
  if (next_ == order_.size()) begin_sweep();
  const double threshold = std::max(tol, threshold_);
  const std::uint64_t begun = set_->n_shifts();
  for (; next_ < order_.size() && set_->n_shifts() - begun < most_shifts; ++next_) {
    const Slot slot = order_[next_];
    ++result_.looked_at;
    // By what was lowest when the sweep began: to look at all classes of a row is to look all over
    // memory. A row that comes to violate meanwhile has its turn in the next sweep.
    const double most = set_->highest_to_raise(slot) - lowest_[slot];
    if (!(most > std::min(threshold, result_.violation))) continue;
    const double violation = set_->worst_pair(slot, scope_, 0.0).violation;
    result_.violation = std::max(result_.violation, violation);
    if (!(violation > threshold)) continue;
    result_.gain += set_->solve_row(slot, scope_);
    ++result_.solved;
  }
  result_.is_over = next_ == order_.size();
  if (result_.is_over) threshold_ = kThreshold * result_.violation;
  return result_;
}

void RowSweeps::list_free() {
  free_.clear();
  for (const Slot slot : set_->supports()) {
    FreeClasses row{slot, {}};
    for (std::uint32_t c = 0; c < set_->n_classes(); ++c) {
      if (set_->is_free(slot, c)) row.classes.push_back(c);
    }
    if (row.classes.size() > 1) free_.push_back(std::move(row));
  }
}

// The gradient less its mean over the free classes of a row, as changes of these sum to zero.
// Returns the squared length, each row's divided by its own curvature.
double RowSweeps::find_residuals() {
  double length = 0;
  residuals_.clear();
  for (const FreeClasses& row : free_) {
    double mean = 0;
    for (const std::uint32_t c : row.classes) mean += set_->gradient(row.slot, c);
    mean /= static_cast<double>(row.classes.size());
    for (const std::uint32_t c : row.classes) {
      residuals_.push_back(set_->gradient(row.slot, c) - mean);
      length += residuals_.back() * residuals_.back() / set_->diagonal(row.slot);
    }
  }
  return length;
}

double RowSweeps::conjugate_steps(std::uint64_t most_shifts) {
  const std::size_t n = set_->n_slots(), k = set_->n_classes();
  direction_.assign(n * k, 0.0);
  change_.resize(n * k);
  double gain = 0, before = 0, first = 0;
  list_free();
  const std::uint64_t begun = set_->n_shifts();
  while (!free_.empty() && set_->n_shifts() - begun < most_shifts) {
    const double now = find_residuals();
    if (before == 0) first = now;
    if (!(now > kConverged * first)) break;
    std::size_t next = 0;
    for (const FreeClasses& row : free_) {
      for (const std::uint32_t c : row.classes) {
        double& d = direction_[c * n + row.slot];
        d = residuals_[next++] / set_->diagonal(row.slot) + (before > 0 ? now / before * d : 0.0);
      }
    }
    before = now;
    set_->gradient_change(direction_, change_);
    bool is_blocked = false;
    const double gained = set_->move_along(direction_, change_, is_blocked);
    gain += gained;
    if (!(gained > 0)) break;
    if (is_blocked) {
      // One that is at its bound now moves no more: the others begin anew.
      std::fill(direction_.begin(), direction_.end(), 0.0);
      list_free();
      before = 0;
    }
  }
  return gain;
}

}  // namespace widemargin

#include "widemargin/online.hpp"

#include <cmath>
#include <stdexcept>

namespace widemargin {

void OnlineLearner::restore(const Snapshot& snapshot) {
  if (!(snapshot.rows_seen >= 0) || !std::isfinite(snapshot.rows_seen)) {
    throw std::invalid_argument("widemargin: a learner has seen no such number of rows");
  }
  rows_seen = snapshot.rows_seen;
  mistakes = snapshot.mistakes;
}

void OnlineLearner::learn(Slot slot, double cap) {
  const std::size_t own = set_->label(slot);
  const SupportSet::WrongClass worst = set_->worst_wrong_class(slot);
  if (set_->gradient(slot, own) < worst.gradient) return;
  ++mistakes;
  if (rule_ == Rule::mira) {
    set_->solve_row(slot, ZeroSumSet::Scope::all, /*anew=*/true);
  } else if (cap > 0) {
    set_->add(slot, own, cap);
    set_->add(slot, worst.label, -cap);
  }
}

void OnlineLearner::take(std::span<const std::int64_t> rows, std::int64_t first_id,
                         std::span<const std::int32_t> labels, std::span<const double> caps) {
  set_->admit(rows, first_id, labels, caps, slots_);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows[i]);
    set_->moment = averages_ ? rows_seen : 0.0;
    // A row that was here before may have been given up for the budget by now.
    if (set_->find(first_id + rows[i]) == static_cast<std::int64_t>(slots_[i])) {
      learn(slots_[i], caps[row]);
      budget_.enforce(*set_);
    }
    rows_seen += 1;
  }
  for (const Slot slot : slots_) {
    if (set_->is_held(slot) && !set_->is_support(slot)) set_->remove(slot);
  }
  set_->release_staged();
}

}  // namespace widemargin

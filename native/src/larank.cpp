#include "widemargin/larank.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace widemargin {
namespace {

// Costs, in multiply-adds of a step. Kernel values are computed in blocks, at several a cycle.
constexpr double kFixedCost = 100;
constexpr double kKernelShare = 0.25;
constexpr int kOptimizeAtOnce = 10;
// Of a block, for which it pays to tell all kernel rows of those that stay; else they look it up.
constexpr std::size_t kManyRows = 16;
constexpr double kTie = 1e-6;  // of gradients, that kernel values of single precision may differ by

}  // namespace

LaRank::LaRank(ZeroSumSet& set, const Settings& settings, const Budget& budget, std::uint64_t seed)
    : set_(&set), settings_(settings), budget_(budget), random_(seed) {}

void LaRank::restore(const Snapshot& snapshot) {
  const bool are_rates = std::all_of(snapshot.rates.begin(), snapshot.rates.end(),
                                     [](double rate) { return std::isfinite(rate); });
  if (!are_rates || std::isnan(snapshot.counts.loss)) {
    throw std::invalid_argument("widemargin: rates and losses of a solver must be numbers");
  }
  random_.restore(snapshot.random);
  rates_ = snapshot.rates;
  counts_ = snapshot.counts;
}

LaRank::Operation LaRank::draw() {
  std::array<double, 3> odds{};
  double total = 0, sum = 0;
  const bool some = !set_->supports().empty();
  for (std::size_t s = 0; s < 3; ++s) {
    if (settings_.allowed[s] && (some || s == kNew)) total += odds[s] = rates_[s];
  }
  for (std::size_t s = 0; s < 3; ++s) {
    const bool possible = settings_.allowed[s] && (some || s == kNew);
    if (possible) sum += odds[s] = std::max(total > 0 ? odds[s] / total : 0, settings_.least_odds);
  }
  double left = static_cast<double>(random_() >> 11) * 0x1.0p-53 * sum;
  for (const Operation s : {kOptimize, kOld}) {
    if (odds[s] > left) return s;
    left -= odds[s];
  }
  return kNew;
}

double LaRank::step(Slot slot, const ZeroSumSet::Pair& pair) {
  cost_ += kFixedCost;
  if (!(pair.violation > settings_.tau)) return 0;
  ++counts_.steps;
  cost_ += 2 * static_cast<double>(set_->supports().size());
  const double gain = set_->step(slot, pair);
  if (!set_->is_support(slot)) emptied_.push_back(slot);
  return gain;
}

ZeroSumSet::Pair LaRank::look_at(Slot slot, ZeroSumSet::Scope scope) {
  if (scope == ZeroSumSet::Scope::all) ++counts_.arg_max;
  cost_ += static_cast<double>(set_->n_classes());
  return set_->worst_pair(slot, scope, settings_.kappa, kTie);
}

double LaRank::step_of_a_support(ZeroSumSet::Scope scope) {
  Slot chosen = 0;
  ZeroSumSet::Pair worst;
  worst.violation = -1;
  for (std::size_t i = 0; i < settings_.candidates; ++i) {
    const Slot slot = set_->supports()[draw_index(random_, set_->supports().size())];
    const ZeroSumSet::Pair pair = look_at(slot, scope);
    if (pair.violation > worst.violation) worst = pair, chosen = slot;
  }
  return step(chosen, worst);
}

void LaRank::perform(Operation operation, Slot slot) {
  ++counts_.operations[operation];
  cost_ = 0;
  double gain = 0;
  if (operation == kNew) {
    if (set_->is_held(slot) && !set_->is_support(slot)) {
      counts_.loss += set_->loss_of(slot);
      cost_ += kKernelShare * static_cast<double>(set_->kernel().products_per_value()) *
               static_cast<double>(set_->supports().size());
      cost_ += static_cast<double>(set_->n_vectors());
      gain = step(slot, look_at(slot, ZeroSumSet::Scope::all));
      budget_.enforce(*set_);
    }
  } else if (operation == kOld) {
    gain = step_of_a_support(ZeroSumSet::Scope::all);
  } else {
    for (int i = 0; i < kOptimizeAtOnce && !set_->supports().empty(); ++i) {
      gain += step_of_a_support(ZeroSumSet::Scope::supports);
    }
  }
  if (cost_ > 0) {
    double& rate = rates_[operation];
    rate += settings_.forgetting * (gain / cost_ - rate);
  }
}

void LaRank::clear_out(std::span<const Slot> slots) {
  for (const Slot slot : slots) {
    if (set_->is_held(slot) && !set_->is_support(slot)) set_->remove(slot);
  }
}

void LaRank::take(std::span<const std::int64_t> rows, std::int64_t first_id,
                  std::span<const std::int32_t> labels, std::span<const double> caps) {
  set_->admit(rows, first_id, labels, caps, slots_);
  emptied_.clear();
  for (std::size_t next = 0; next < slots_.size();) {
    const Operation operation = draw();
    perform(operation, slots_[next]);
    if (operation == kNew) ++next;
  }
  clear_out(slots_);
  clear_out(emptied_);
  if (slots_.size() >= kManyRows) set_->spread_staged();
  set_->release_staged();
}

}  // namespace widemargin

#include "widemargin/dual_ascent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "widemargin/vector_code.hpp"

namespace widemargin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLessShare = 0.5;  // where the gap of all rows was larger than that of a pass

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace

DualAscent::DualAscent(Problem problem, std::uint64_t seed) : problem_(std::move(problem)) {
  const std::size_t width = padded(problem_.labels), n = problem_.rows;
  require(problem_.labels > 0 && problem_.signs.size() == n * (width / kLabelsAtOnce) &&
              problem_.with_label.size() == width && problem_.without_label.size() == width &&
              problem_.scale.size() == width &&
              (problem_.prior.empty() || problem_.prior.size() == width * width) &&
              (problem_.margins.empty() || problem_.margins.size() == n * width),
          "widemargin: parts of a block of labels differ in size");
  // Where the prior leaves a label no score, its gradient never changes: see label_steps.hpp.
  for (const double scale : problem_.scale) inverse_scale_.push_back(scale > 0 ? 1 / scale : 1e100);
  scratch_.resize(2 * width);
  state_.weights.assign((problem_.columns + 1) * width, 0.0);
  state_.coefficients.assign(n * width, 0.0);
  state_.order.resize(n);
  std::iota(state_.order.begin(), state_.order.end(), 0);
  state_.low.assign(width, -kInfinity);
  state_.high.assign(width, kInfinity);
  state_.lowest.assign(width, 0.0);
  state_.highest.assign(width, 0.0);
  state_.gap.assign(width, 0.0);
  state_.dual.assign(width, 0.0);
  state_.share.assign(width, 1.0);
  state_.live.assign(width, 0.0);
  std::fill_n(state_.live.begin(), problem_.labels, 1.0);
  state_.active = static_cast<std::int64_t>(n);
  state_.random = seed;
}

void DualAscent::restore(State state) {
  const auto same = [](const auto& one, const auto& other) { return one.size() == other.size(); };
  const auto n = static_cast<std::int64_t>(problem_.rows);
  bool fits = same(state.weights, state_.weights) &&
              same(state.coefficients, state_.coefficients) && same(state.order, state_.order) &&
              0 <= state.next && state.next <= n && 0 <= state.active && state.active <= n &&
              state.moved >= 0 && state.passes >= 0 && state.phase >= Phase::kAscending &&
              state.phase <= Phase::kDone;
  for (const auto* lane : {&state.low, &state.high, &state.lowest, &state.highest, &state.gap,
                           &state.dual, &state.live, &state.share}) {
    fits = fits && same(*lane, state_.low);
  }
  require(fits, "widemargin: no block of labels can have been here");
  std::vector<bool> seen(state.order.size(), false);
  for (const std::int32_t row : state.order) {
    require(row >= 0 && row < n && !seen[static_cast<std::size_t>(row)],
            "widemargin: the order of rows is none");
    seen[static_cast<std::size_t>(row)] = true;
  }
  state_ = std::move(state);
}

LabelLanes DualAscent::lanes() {
  return {padded(problem_.labels),
          problem_.signs.data(),
          problem_.margins.empty() ? nullptr : problem_.margins.data(),
          problem_.with_label.data(),
          problem_.without_label.data(),
          problem_.prior.empty() ? nullptr : problem_.prior.data(),
          problem_.scale.data(),
          inverse_scale_.data(),
          state_.weights.data(),
          state_.coefficients.data(),
          state_.low.data(),
          state_.high.data(),
          state_.lowest.data(),
          state_.highest.data(),
          state_.gap.data(),
          state_.dual.data(),
          state_.live.data(),
          scratch_.data()};
}

LabelPlace DualAscent::place() {
  return {state_.order.data(), static_cast<std::size_t>(state_.next),
          static_cast<std::size_t>(state_.active), state_.random,
          static_cast<std::uint64_t>(state_.moved)};
}

void DualAscent::keep(const LabelPlace& place) {
  state_.next = static_cast<std::int64_t>(place.next);
  state_.active = static_cast<std::int64_t>(place.active);
  state_.random = place.random;
  state_.moved = static_cast<std::int64_t>(place.moved);
}

template <class T>
void DualAscent::work(const LabelRows<T>& rows, double tol, std::int64_t max_passes,
                      std::uint64_t most_entries) {
  require(rows.rows == problem_.rows && rows.columns == problem_.columns,
          "widemargin: rows of another problem");
  const VectorCode<T>& code = vector_code<T>();
  std::uint64_t spent = 0;
  while (!is_done() && spent < most_entries) {
    LabelPlace at = place();
    const bool ascends = state_.phase == Phase::kAscending;
    const std::uint64_t read =
        (ascends ? code.ascend : code.judge)(rows, lanes(), at, most_entries - spent);
    keep(at);
    spent += read + 1;
    const std::int64_t end = ascends ? state_.active : static_cast<std::int64_t>(problem_.rows);
    if (state_.next < end) continue;
    ascends ? end_pass(tol, max_passes) : end_judging(tol, max_passes);
  }
}

template <class T>
std::vector<double> DualAscent::find_gaps(const LabelRows<T>& rows) {
  std::vector<double> gaps(state_.gap.size(), 0.0);
  std::swap(gaps, state_.gap);
  LabelPlace at = place();
  at.next = 0;
  vector_code<T>().judge(rows, lanes(), at, ~std::uint64_t{0});
  std::swap(gaps, state_.gap);
  gaps.resize(problem_.labels);
  return gaps;
}

void DualAscent::begin_pass() {
  state_.phase = Phase::kAscending;
  state_.next = state_.moved = 0;
  for (auto* lane : {&state_.lowest, &state_.highest, &state_.gap}) {
    std::fill(lane->begin(), lane->end(), 0.0);
  }
}

void DualAscent::find_bounds() {
  const std::size_t labels = problem_.labels, width = padded(labels);
  for (std::size_t l = 0; l < labels; ++l) {
    double low = state_.lowest[l], high = state_.highest[l];
    // A step of label k by its gradient changes that of label l by R_kl / R_kk of it.
    for (std::size_t k = 0; k < labels && !problem_.prior.empty(); ++k) {
      const double related = problem_.prior[k * width + l];
      if (related == 0 || !(problem_.scale[k] > 0)) continue;
      const double share = std::abs(related) / problem_.scale[k];
      low = std::min(low, share * state_.lowest[k]);
      high = std::max(high, share * state_.highest[k]);
    }
    state_.low[l] = low < 0 ? low : -kInfinity;
    state_.high[l] = high > 0 ? high : kInfinity;
  }
}

std::vector<bool> DualAscent::have_small_gaps(double tol, bool by_share) const {
  const std::size_t labels = problem_.labels;
  std::vector<bool> small(labels);
  double gaps = 0, duals = 0;
  for (std::size_t l = 0; l < labels; ++l) {
    const double gap = state_.gap[l], wanted = by_share ? tol * state_.share[l] : tol;
    small[l] = gap <= wanted * (state_.dual[l] + gap);
    gaps += gap;
    duals += state_.dual[l];
  }
  if (!problem_.prior.empty()) {
    const double wanted = by_share ? tol * state_.share[0] : tol;
    small.assign(labels, gaps <= wanted * (duals + gaps));
  }
  return small;
}

void DualAscent::end_pass(double tol, std::int64_t max_passes) {
  ++state_.passes;
  const bool saw_all = state_.active == static_cast<std::int64_t>(problem_.rows);
  state_.is_stuck = saw_all && state_.moved == 0;
  const std::vector<bool> small = have_small_gaps(tol, true);
  bool all_wait = true;
  for (std::size_t l = 0; l < problem_.labels; ++l) {
    if (small[l] && state_.live[l] > 0) state_.live[l] = 0;
    all_wait = all_wait && state_.live[l] == 0;
  }
  find_bounds();
  begin_pass();
  if (all_wait || state_.is_stuck || state_.passes >= max_passes) state_.phase = Phase::kJudging;
}

void DualAscent::end_judging(double tol, std::int64_t max_passes) {
  const std::vector<bool> small = have_small_gaps(tol, false);
  const bool all_small = std::all_of(small.begin(), small.end(), [](bool each) { return each; });
  if (all_small || state_.is_stuck || state_.passes >= max_passes) {
    state_.is_exact = all_small;
    state_.phase = Phase::kDone;
    return;
  }
  for (std::size_t l = 0; l < problem_.labels; ++l) {
    state_.live[l] = small[l] ? 0.0 : 1.0;
    if (!small[l]) state_.share[l] *= kLessShare;
  }
  std::fill(state_.low.begin(), state_.low.end(), -kInfinity);
  std::fill(state_.high.begin(), state_.high.end(), kInfinity);
  state_.active = static_cast<std::int64_t>(problem_.rows);
  begin_pass();
}

template void DualAscent::work(const LabelRows<float>&, double, std::int64_t, std::uint64_t);
template void DualAscent::work(const LabelRows<double>&, double, std::int64_t, std::uint64_t);
template std::vector<double> DualAscent::find_gaps(const LabelRows<float>&);
template std::vector<double> DualAscent::find_gaps(const LabelRows<double>&);

}  // namespace widemargin

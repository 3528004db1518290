#include "widemargin/parallel_planes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "widemargin/vector_code.hpp"

namespace widemargin {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();
constexpr double kFlat = 1e-12;  // a curvature below counts as this: the same row with either sign
constexpr double kSnap = 1e-14;  // of a cap: a coefficient so near to a bound is at it
constexpr double kRounding = 1e-12;  // of scores: a violation below is none

}  // namespace

ParallelPlanes::ParallelPlanes(SlotKernel& kernel, PlanesProblem problem, std::size_t cache_bytes,
                               int n_threads)
    : problem_(std::move(problem)), rows_(kernel, cache_bytes, n_threads) {
  const std::size_t n = problem_.rows, copies = problem_.copies();
  n_machines_ = *std::max_element(problem_.machines.begin(), problem_.machines.end()) + 1;
  padded_ = (n + kPlaneLanes - 1) / kPlaneLanes * kPlaneLanes;
  for (std::size_t i = 0; i < n; ++i) {
    const auto slot = static_cast<Slot>(i);
    kernel.put(slot, i);
    rows_.move_in(slot);
    diagonal_.push_back(kernel.diagonal(slot));
  }
  coefficients_.assign(copies * n, 0.0);
  scores_.assign(n_machines_ * padded_, 0.0);
  rise_.assign(copies * padded_, -kNever);
  fall_.assign(copies * padded_, kNever);
  ends_.resize(n_thresholds());
  put(coefficients_, std::vector<double>(n_machines_ * n, 0.0));
}

double ParallelPlanes::lower(std::size_t entry) const {
  return problem_.signs[entry] > 0 ? 0.0 : -problem_.caps[entry];
}

double ParallelPlanes::upper(std::size_t entry) const {
  return problem_.signs[entry] > 0 ? problem_.caps[entry] : 0.0;
}

// Gives a coefficient a value. Next to a bound it is at the bound: pairs that have less room than
// rounding takes would be moved to and fro for ever.
void ParallelPlanes::put_coefficient(std::size_t copy, std::size_t row, double value) {
  const std::size_t entry = copy * problem_.rows + row;
  const double least = lower(entry), most = upper(entry), near = kSnap * (most - least);
  if (value - least <= near) value = least;
  if (most - value <= near) value = most;
  coefficients_[entry] = value;
  note_room(copy, row);
}

// Writes down where a coefficient can go.
void ParallelPlanes::note_room(std::size_t copy, std::size_t row) {
  const std::size_t entry = copy * problem_.rows + row, place = copy * padded_ + row;
  const float sign = problem_.signs[entry];
  rise_[place] = coefficients_[entry] < upper(entry) ? sign : -kNever;
  fall_[place] = coefficients_[entry] > lower(entry) ? sign : kNever;
}

void ParallelPlanes::put(std::span<const double> coefficients, std::span<const double> scores) {
  std::copy(coefficients.begin(), coefficients.end(), coefficients_.begin());
  for (std::size_t m = 0; m < n_machines_; ++m) {
    std::copy_n(scores.data() + m * problem_.rows, problem_.rows, scores_.data() + m * padded_);
  }
  for (std::size_t c = 0; c < n_copies(); ++c) {
    for (std::size_t i = 0; i < problem_.rows; ++i) note_room(c, i);
  }
  for (std::size_t m = 0; m < n_machines_; ++m) look_at_machine(m);
}

void ParallelPlanes::copy_scores(double* out) const {
  for (std::size_t m = 0; m < n_machines_; ++m) {
    std::copy_n(scores_.data() + m * padded_, problem_.rows, out + m * problem_.rows);
  }
}

// Finds the ends of all thresholds of a machine, whose scores have changed.
void ParallelPlanes::look_at_machine(std::size_t machine) {
  const auto find_extremes = instruction_sets().front()->find_extremes;
  for (std::size_t t = 0; t < n_thresholds(); ++t) {
    if (problem_.machines[t] != machine) continue;
    ends_[t].highest = {-std::numeric_limits<double>::infinity(), 0, kNoPlace};
    ends_[t].lowest = {std::numeric_limits<double>::infinity(), 0, kNoPlace};
  }
  for (std::size_t c = 0; c < n_copies(); ++c) {
    Threshold& ends = ends_[problem_.thresholds[c]];
    if (problem_.machines[problem_.thresholds[c]] != machine) continue;
    PlaneChoice highest, lowest;
    find_extremes(rise_.data() + c * padded_, fall_.data() + c * padded_, scores_of(c), padded_,
                  &highest, &lowest);
    if (highest.value > ends.highest.value) ends.highest = {highest.value, c, highest.place};
    if (lowest.value < ends.lowest.value) ends.lowest = {lowest.value, c, lowest.place};
  }
}

ParallelPlanes::Moved ParallelPlanes::move(std::uint64_t most_steps) {
  Moved moved;
  while (moved.steps < most_steps && step(moved)) ++moved.steps;
  return moved;
}

// Moves the next pair; returns whether there was one.
bool ParallelPlanes::step(Moved& moved) {
  const auto worst = std::max_element(
      ends_.begin(), ends_.end(),
      [](const Threshold& a, const Threshold& b) { return a.violation() < b.violation(); });
  const End up = worst->highest;
  const double size = std::max(std::fabs(up.value), std::fabs(worst->lowest.value));
  const double least = kRounding * std::max(size, 1.0);
  if (!(worst->violation() > least)) return false;

  const auto& code = *instruction_sets().front();
  const std::size_t n = problem_.rows;
  const auto up_slot = static_cast<Slot>(up.row);
  const float* raised = rows_.row(up_slot).data();
  PlanePartner pair{n,        nullptr,           raised,      nullptr, diagonal_.data(),
                    up.value, diagonal_[up.row], 0.5 * least, kFlat};
  double most = 0;
  End down{0, 0, kNoPlace};
  const auto threshold = static_cast<std::size_t>(worst - ends_.begin());
  for (std::size_t c = 0; c < n_copies(); ++c) {
    if (problem_.thresholds[c] != threshold) continue;
    pair.fall = fall_.data() + c * padded_;
    pair.scores = scores_of(c);
    const PlaneChoice found = code.find_partner(pair);
    if (found.value > most) most = found.value, down = {0, c, found.place};
  }
  if (down.row == kNoPlace) return false;  // kernel values that are no numbers
  const std::size_t raised_entry = up.copy * n + up.row, lowered_entry = down.copy * n + down.row;
  down.value = problem_.signs[lowered_entry] - scores_of(down.copy)[down.row];
  const double curvature = std::max(
      diagonal_[up.row] + diagonal_[down.row] - 2.0 * static_cast<double>(raised[down.row]), kFlat);
  const double slope = up.value - down.value;
  const double up_room = upper(raised_entry) - coefficients_[raised_entry];
  const double down_room = coefficients_[lowered_entry] - lower(lowered_entry);
  const double by = std::min({slope / curvature, up_room, down_room});
  put_coefficient(up.copy, up.row, coefficients_[raised_entry] + by);
  put_coefficient(down.copy, down.row, coefficients_[lowered_entry] - by);
  moved.gain += by * (slope - 0.5 * curvature * by);
  if (up.row != down.row) {  // else the sum of the row's copies stays as it is, and so do scores
    const auto down_slot = static_cast<Slot>(down.row);
    if (rows_.capacity() > 1) {
      const Slot both[2] = {up_slot, down_slot};
      rows_.fetch(both, pointers_);
    } else {
      kept_row_.assign(raised, raised + n);
      pointers_ = {kept_row_.data(), rows_.row(down_slot).data()};
    }
    code.follow_pair(pointers_[0], pointers_[1], by, scores_of(up.copy), n);
  }
  look_at_machine(problem_.machines[threshold]);
  return true;
}

std::vector<double> ParallelPlanes::intercepts() const {
  std::vector<double> sums(n_thresholds(), 0.0), counts(n_thresholds(), 0.0);
  for (std::size_t c = 0; c < n_copies(); ++c) {
    for (std::size_t i = 0; i < problem_.rows; ++i) {
      const std::size_t entry = c * problem_.rows + i;
      if (coefficients_[entry] <= lower(entry) || coefficients_[entry] >= upper(entry)) continue;
      sums[problem_.thresholds[c]] += problem_.signs[entry] - scores_of(c)[i];
      counts[problem_.thresholds[c]] += 1;
    }
  }
  std::vector<double> found(n_thresholds());
  for (std::size_t t = 0; t < n_thresholds(); ++t) {
    const End &high = ends_[t].highest, &low = ends_[t].lowest;
    if (counts[t] > 0) {
      found[t] = sums[t] / counts[t];
    } else if (high.row != kNoPlace && low.row != kNoPlace) {
      found[t] = 0.5 * (high.value + low.value);
    } else if (high.row != kNoPlace || low.row != kNoPlace) {
      // All rows are on one side, and keep their margin by as little as can be.
      found[t] = high.row != kNoPlace ? high.value : low.value;
    }
  }
  return found;
}

ParallelPlanes::Standing ParallelPlanes::look() const {
  const std::vector<double> intercept = intercepts();
  double sizes = 0, norm = 0, loss = 0;
  for (std::size_t c = 0; c < n_copies(); ++c) {
    const double shift = intercept[problem_.thresholds[c]];
    const double* const scores = scores_of(c);
    for (std::size_t i = 0; i < problem_.rows; ++i) {
      const std::size_t entry = c * problem_.rows + i;
      const double sign = problem_.signs[entry];
      sizes += sign * coefficients_[entry];
      norm += coefficients_[entry] * scores[i];
      loss += problem_.caps[entry] * std::max(0.0, 1.0 - sign * (scores[i] + shift));
    }
  }
  return {norm + loss - sizes, sizes - 0.5 * norm};
}

ParallelPlanes::Supports ParallelPlanes::supports() const {
  Supports found;
  for (std::size_t i = 0; i < problem_.rows; ++i) {
    std::size_t vectors = 0;
    for (std::size_t c = 0; c < n_copies(); ++c) {
      if (coefficients_[c * problem_.rows + i] != 0) ++vectors;
    }
    found.vectors += vectors;
    if (vectors > 0) ++found.patterns;
  }
  return found;
}

}  // namespace widemargin

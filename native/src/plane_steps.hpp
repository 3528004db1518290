// Which pair of coefficients moves next, and what its step does to the scores: the innermost loops
// of parallel_planes.hpp, compiled once for each instruction set. Included by vector_code.hpp
// alone, after its lanes.
#pragma once

namespace widemargin {
namespace {

// The largest number of all lanes, given that of each and where it was found; of equal ones the
// first. Nothing was found where that is below zero.
inline PlaneChoice best_of_lanes(const double* most, const double* where) {
  std::size_t best = 0;
  for (std::size_t l = 1; l < kPlaneLanes; ++l) {
    const bool is_first = most[l] == most[best] && where[l] < where[best];
    best = most[l] > most[best] || is_first ? l : best;
  }
  if (where[best] < 0) return {most[best], kNoPlace};
  return {most[best], static_cast<std::size_t>(where[best]) + best};
}

// Twice what a step of a pair gains, bounds left aside: its slope squared, over its curvature. A
// row paired with itself has neither, but for rounding.
inline double gain_of_pair(double wide, double least, double curved, double flat) {
  const double slope = wide > least ? wide : 0.0;
  return slope * slope / (curved > flat ? curved : flat);
}

void follow_pair(const float* __restrict raised, const float* __restrict lowered, double step,
                 double* __restrict scores, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    scores[i] += step * (static_cast<double>(raised[i]) - static_cast<double>(lowered[i]));
  }
}

void find_extremes(const float* __restrict rise, const float* __restrict fall,
                   const double* __restrict scores, std::size_t count, PlaneChoice* highest,
                   PlaneChoice* lowest) {
  constexpr std::size_t lanes = kPlaneLanes;
  double most[lanes], where[lanes], least[lanes], place[lanes];
  for (std::size_t l = 0; l < lanes; ++l) most[l] = least[l] = -kPlaneInfinity;
  for (std::size_t l = 0; l < lanes; ++l) where[l] = place[l] = -1.0;
  for (std::size_t first = 0; first < count; first += lanes) {
    const double start = static_cast<double>(first);
    for (std::size_t l = 0; l < lanes; ++l) {
      const double score = scores[first + l];
      const double raised = static_cast<double>(rise[first + l]) - score;
      where[l] = raised > most[l] ? start : where[l];
      most[l] = raised > most[l] ? raised : most[l];
      const double lowered = score - static_cast<double>(fall[first + l]);
      place[l] = lowered > least[l] ? start : place[l];
      least[l] = lowered > least[l] ? lowered : least[l];
    }
  }
  *highest = best_of_lanes(most, where);
  *lowest = best_of_lanes(least, place);
  lowest->value = -lowest->value;
}

PlaneChoice find_partner(const PlanePartner& pair) {
  constexpr std::size_t lanes = kPlaneLanes;
  const float* __restrict fall = pair.fall;
  const float* __restrict kernel = pair.kernel;
  const double* __restrict scores = pair.scores;
  const double* __restrict diagonal = pair.diagonal;
  const double highest = pair.highest, own_value = pair.own_value;
  const double least = pair.least, flat = pair.flat;
  double most[lanes], where[lanes];
  for (std::size_t l = 0; l < lanes; ++l) most[l] = 0.0;
  for (std::size_t l = 0; l < lanes; ++l) where[l] = -1.0;
  const std::size_t whole = pair.count / lanes * lanes;
  for (std::size_t first = 0; first < whole; first += lanes) {
    const double start = static_cast<double>(first);
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::size_t i = first + l;
      const double wide = highest + scores[i] - static_cast<double>(fall[i]);
      const double curved = own_value + diagonal[i] - 2.0 * static_cast<double>(kernel[i]);
      const double gain = gain_of_pair(wide, least, curved, flat);
      where[l] = gain > most[l] ? start : where[l];
      most[l] = gain > most[l] ? gain : most[l];
    }
  }
  PlaneChoice best = best_of_lanes(most, where);
  for (std::size_t i = whole; i < pair.count; ++i) {  // a kernel row has no padding to read
    const double wide = highest + scores[i] - static_cast<double>(fall[i]);
    const double curved = own_value + diagonal[i] - 2.0 * static_cast<double>(kernel[i]);
    const double gain = gain_of_pair(wide, least, curved, flat);
    if (gain > best.value) best = {gain, i};
  }
  return best;
}

}  // namespace
}  // namespace widemargin

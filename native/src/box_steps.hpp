// Steps of coefficients that each lie in a box: the innermost loops of label_box.hpp, compiled once
// for each instruction set. Included by vector_code.hpp alone, after its lanes.
#pragma once

namespace widemargin {
namespace {

struct BoxStep {
  float gain;
  std::size_t place;
};

// gradient -= factor kernel + constant, and then the best step: the largest of each lane, and of
// these the first.
inline BoxStep shift_and_find(const BoxClimb& box, const float* __restrict kernel, float factor,
                              float constant) {
  constexpr std::size_t lanes = kLanes<float>;
  float* __restrict gradient = box.gradient;
  const float* __restrict down = box.down, * __restrict up = box.up;
  const float* __restrict curvature = box.curvature, * __restrict inverse = box.inverse;
  float most[lanes], where[lanes];
  for (std::size_t l = 0; l < lanes; ++l) most[l] = where[l] = 0.0f;
  for (std::size_t first = 0; first < box.count; first += lanes) {
    const float start = static_cast<float>(first);
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::size_t j = first + l;
      const float g = gradient[j] - (factor * kernel[j] + constant);
      gradient[j] = g;
      const float wanted = g * inverse[j];
      const float above = wanted < down[j] ? down[j] : wanted;
      const float step = above > up[j] ? up[j] : above;
      const float gain = step * (g - 0.5f * curvature[j] * step);
      where[l] = gain > most[l] ? start : where[l];
      most[l] = gain > most[l] ? gain : most[l];
    }
  }
  std::size_t best = 0;
  for (std::size_t l = 1; l < lanes; ++l) best = most[l] > most[best] ? l : best;
  return {most[best], static_cast<std::size_t>(where[best]) + best};
}

double climb(const BoxClimb& box) {
  BoxStep next = shift_and_find(box, box.kernel, 0.0f, 0.0f);
  const float share = box.least_share * next.gain;
  const float least = share > *box.least_gain ? share : *box.least_gain;
  *box.least_gain = least;
  double gain = 0;
  for (std::size_t step = 0; step < box.most_steps && next.gain > least; ++step) {
    const std::size_t i = next.place;
    const float wanted = box.gradient[i] * box.inverse[i];
    const float above = wanted < box.down[i] ? box.down[i] : wanted;
    const float moved = above > box.up[i] ? box.up[i] : above;
    box.down[i] -= moved;
    box.up[i] -= moved;
    box.change[i] += moved;
    gain += static_cast<double>(next.gain);
    const float factor = box.relation * moved;
    next = shift_and_find(box, box.kernel + i * box.count, factor, factor * box.offset);
  }
  return gain;
}

void look_at_boxes(const BoxLook& box) {
  constexpr double flat = 1e-37;  // a curvature below is none: steps go to their bounds
  const std::int8_t* __restrict signs = box.signs;
  const double* __restrict margins = box.margins;
  const double* __restrict coefficients = box.coefficients, * __restrict gradients = box.gradients;
  const double* __restrict row_caps = box.row_caps, * __restrict diagonal = box.diagonal;
  double* __restrict promise = box.promise, * __restrict gap = box.gap, * __restrict dual = box.dual;
  for (std::size_t i = 0; i < box.count; ++i) {
    const double sign = static_cast<double>(signs[i]);
    const double cap = row_caps[i] * (sign > 0 ? box.cap_with : box.cap_without);
    const double size = sign * coefficients[i], slack = sign * gradients[i];
    const double curvature = box.relation * diagonal[i];
    const double wanted = slack / (curvature > flat ? curvature : flat);
    const double above = wanted < -size ? -size : wanted;
    const double room = cap - size;
    const double step = above > room ? room : above;
    promise[i] += step * (slack - 0.5 * curvature * step);
    gap[i] += cap * (slack > 0 ? slack : 0.0) - size * slack;
    dual[i] += 0.5 * size * ((margins != nullptr ? margins[i] : 1.0) + slack);
  }
}

}  // namespace
}  // namespace widemargin

// A small problem that dual expansions learn in tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "random_data.hpp"
#include "widemargin/zero_sum.hpp"

namespace widemargin::tests {

constexpr double kGamma = 0.7;
constexpr DualLoss kLosses[] = {DualLoss::crammer_singer, DualLoss::weston_watkins};
constexpr std::pair<DualLoss, double> kMachines[] = {{DualLoss::crammer_singer, 0.0},
                                                     {DualLoss::crammer_singer, 1.0},
                                                     {DualLoss::weston_watkins, 0.0},
                                                     {DualLoss::weston_watkins, 1.0}};
inline const char* name_of(DualLoss loss) {
  return loss == DualLoss::crammer_singer ? "crammer_singer" : "weston_watkins";
}

// Rows of three overlapping classes, and what a machine needs to learn them.
struct Problem {
  static constexpr std::size_t kClasses = 3;
  std::size_t rows, features;
  Padded<double> X;
  std::vector<std::int32_t> labels;
  std::vector<double> caps;
  std::vector<std::int64_t> order;
  DenseSlots kernel;
  double offset = 0;  // of kernel values: 1 for a machine with intercepts

  Problem(std::size_t n_rows, std::size_t n_features, std::uint64_t seed)
      : Problem(n_rows, n_features, Random(seed)) {}
  Problem(std::size_t n_rows, std::size_t n_features, Random random)
      : rows(n_rows),
        features(n_features),
        X(n_rows, n_features, 0, random, -1, 1),
        kernel(RbfKernel{kGamma}, std::vector<double>(n_features, 0.25)) {
    for (std::size_t i = 0; i < rows; ++i) {
      labels.push_back(static_cast<std::int32_t>(random.below(kClasses)));
      X(i, 0) += 0.8 * labels.back();
      caps.push_back(random.uniform(0.5, 2.0));
      order.push_back(static_cast<std::int64_t>(i));
    }
    kernel.use_batch(AnyRows(static_cast<const Padded<double>&>(X).view()));
  }

  double value(std::size_t i, std::size_t j) const {
    double squared = 0;
    for (std::size_t f = 0; f < features; ++f) {
      squared += (X(i, f) - X(j, f)) * (X(i, f) - X(j, f));
    }
    return std::exp(-kGamma * squared);
  }
  ZeroSumSet make_set(DualLoss loss, std::size_t bytes = 1 << 24, double margin = 1) {
    return ZeroSumSet(kernel, kClasses, loss, margin, offset, bytes, 1);
  }
  std::vector<Slot> admit(ZeroSumSet& set, std::size_t first, std::size_t count) {
    std::vector<Slot> slots;
    set.admit(std::span(order).subspan(first, count), 0, labels, caps, slots);
    set.release_staged();
    return slots;
  }
};

}  // namespace widemargin::tests

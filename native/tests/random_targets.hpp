// Random targets of every kind, so that tests can fold over all losses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "random_data.hpp"
#include "widemargin/losses.hpp"

namespace widemargin::tests {

struct RandomTargets {
  std::vector<std::int32_t> labels;
  std::vector<std::int8_t> signs;
  std::vector<double> numbers;

  RandomTargets(std::size_t rows, std::size_t outputs, Random& random) {
    for (std::size_t i = 0; i < rows; ++i) {
      labels.push_back(static_cast<std::int32_t>(random.below(outputs)));
      for (std::size_t c = 0; c < outputs; ++c) {
        signs.push_back(random.below(2) == 0 ? 1 : -1);
        numbers.push_back(0.7 * signs.back());
      }
    }
  }

  // Those of the kind that a loss takes.
  template <class Loss>
  typename Loss::Targets of() const {
    if constexpr (std::is_same_v<typename Loss::Targets, ClassTargets>) {
      return {labels.data()};
    } else if constexpr (std::is_same_v<typename Loss::Targets, RealTargets>) {
      return {numbers.data()};
    } else {
      return {signs.data()};
    }
  }
};

}  // namespace widemargin::tests

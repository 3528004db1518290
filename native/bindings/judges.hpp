// A loss with the targets of all rows, which come from Python as one of several kinds of arrays.
#pragma once

#include <nanobind/stl/variant.h>

#include <stdexcept>
#include <type_traits>
#include <variant>

#include "arrays.hpp"
#include "widemargin/losses.hpp"

namespace widemargin::bindings {

// The arrays that may hold targets, and the targets they are.
using TargetArray =
    std::variant<Array1<const std::int32_t>, Array2<const std::int8_t>, Array2<const double>>;

inline ClassTargets view(const Array1<const std::int32_t>& array, std::size_t outputs) {
  for (std::size_t i = 0; i < array.shape(0); ++i) {
    require(array.data()[i] >= 0 && static_cast<std::size_t>(array.data()[i]) < outputs,
            "a class number is not below the number of outputs");
  }
  return {array.data()};
}

inline SignedTargets view(const Array2<const std::int8_t>& array, std::size_t outputs) {
  require(array.shape(1) == outputs, "targets and scores differ in outputs");
  return {array.data()};
}

inline RealTargets view(const Array2<const double>& array, std::size_t outputs) {
  require(array.shape(1) == outputs, "targets and scores differ in outputs");
  return {array.data()};
}

inline AnyJudge judge_of(const AnyLoss& loss, const TargetArray& targets, std::size_t outputs) {
  return std::visit(
      [&](const auto& each, const auto& array) -> AnyJudge {
        using Loss = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<decltype(view(array, outputs)), typename Loss::Targets>) {
          return Judge<Loss>{each, view(array, outputs)};
        } else {
          throw std::invalid_argument("widemargin._native: targets are of another kind of loss");
        }
      },
      loss, targets);
}

inline std::size_t count_targets(const TargetArray& targets) {
  return std::visit([](const auto& array) { return array.shape(0); }, targets);
}

}  // namespace widemargin::bindings

// How many support patterns a machine that goes on learning may keep.
#pragma once

#include <cstddef>

#include "widemargin/zero_sum.hpp"

namespace widemargin {

// The most patterns that may be kept, and what becomes of the oldest of more.
struct Budget {
  std::size_t patterns = ~std::size_t{0};
  bool merges = false;       // into the nearest of its class; else it is dropped
  bool keeps_bounds = true;  // whether coefficients have any

  void enforce(ZeroSumSet& set) const;
};

}  // namespace widemargin

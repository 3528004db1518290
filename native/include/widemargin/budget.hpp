// How many support patterns a machine that goes on learning may keep, and which of more are given
// up.
//
// Source: Crammer, Kandola and Singer (2003), "Online Classification on a Budget", for the pattern
// that the others make up for best.
#pragma once

#include <cstddef>

#include "widemargin/zero_sum.hpp"

namespace widemargin {

struct Budget {
  enum class Policy {
    drop,       // the oldest
    merge,      // the oldest, into the nearest of its class
    redundant,  // the one that keeps the largest margin without its own coefficients
  };

  std::size_t patterns = ~std::size_t{0};
  Policy policy = Policy::drop;
  bool keeps_bounds = true;  // whether coefficients have any

  void enforce(ZeroSumSet& set) const;
};

}  // namespace widemargin

#include "widemargin/budget.hpp"

namespace widemargin {

void Budget::enforce(ZeroSumSet& set) const {
  while (set.supports().size() > patterns) {
    if (policy == Policy::redundant) {
      set.remove(set.most_redundant_support());
      continue;
    }
    const Slot oldest = set.oldest_support();
    const Slot nearest = policy == Policy::merge ? set.nearest_support(oldest) : oldest;
    if (nearest == oldest) {
      set.remove(oldest);
    } else {
      set.merge(oldest, nearest, keeps_bounds);
    }
  }
}

}  // namespace widemargin

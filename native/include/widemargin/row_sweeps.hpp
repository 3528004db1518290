// Sweeps over the rows that a SupportSet holds, each solved exactly while the others are fixed.
//
// Problem      as SupportSet, of the rows and classes at hand
// Step         (a sweep) all rows in random order; those whose violation is above a threshold are
//              solved. The threshold follows the largest violation that the sweep before met.
// Stops        it does not: the caller looks at violations and gap
//
// Source: Crammer and Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector
// Machines" (2001), sections 5 and 6; they solve the row of the largest violation, which costs a
// look at all rows for each.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "widemargin/support_set.hpp"

namespace widemargin {

class RowSweeps {
 public:
  struct Result {
    double violation = 0;  // the largest that was met
    double gain = 0;
    std::uint64_t solved = 0;
    std::uint64_t looked_at = 0;
  };

  RowSweeps(SupportSet& set, SupportSet::Scope scope, std::uint64_t seed)
      : set_(&set), scope_(scope), random_(seed) {}

  // Violations up to `tol` are left.
  Result sweep(double tol);

 private:
  SupportSet* set_;
  SupportSet::Scope scope_;
  std::mt19937_64 random_;
  std::vector<Slot> order_;
  double threshold_ = 0;
};

// What rows that are not held would add to the gap.
struct Inspection {
  double loss = 0;       // of those that are let go, times the caps
  double violation = 0;  // the largest of all
  std::size_t kept = 0;
};

// Looks at rows of the batch with the machine as it is. Those that violate by more than
// `keep_above` stay held, the others are let go again; support patterns are passed over.
Inspection inspect(SupportSet& set, std::span<const std::int64_t> rows, std::int64_t first_id,
                   std::span<const std::int32_t> labels, std::span<const double> caps,
                   double keep_above);

// Gives up all rows without coefficients.
void release_all(SupportSet& set);

// Gives up rows without coefficients whose violation is not above `keep_above` (which may be below
// zero: rows that are right by so much). Returns how many.
std::size_t release_satisfied(SupportSet& set, double keep_above);

// The search of the cutting plane method: each row's worst class joins its working set if it is
// worse than the working set by more than `epsilon`. Rows with an empty one are let go. Returns how
// many have joined.
std::size_t add_constraints(SupportSet& set, std::span<const std::int64_t> rows,
                            std::int64_t first_id, std::span<const std::int32_t> labels,
                            std::span<const double> caps, double epsilon);

}  // namespace widemargin

// Sweeps over the rows that a SupportSet holds, each solved exactly while the others are fixed.
//
// Problem      as SupportSet, of the rows and classes at hand
// Step         (a sweep) all rows in random order; those whose violation is above a threshold are
//              solved. The threshold follows the largest violation that the sweep before met.
// Between      conjugate gradients of the coefficients that are strictly between their bounds,
// until
//              one meets its bound. Sweeps alone take for ever where rows are nearly dependent: a
//              linear kernel, features of unlike scale, a large C.
// Stops        it does not: the caller looks at violations and gap
//
// Source: Crammer and Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector
// Machines" (2001), sections 5 and 6; they solve the row of the largest violation, which costs a
// look at all rows for each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "widemargin/random.hpp"
#include "widemargin/zero_sum.hpp"

namespace widemargin {

class RowSweeps {
 public:
  struct Result {
    double violation = 0;  // the largest that was met
    double gain = 0;
    std::uint64_t solved = 0;
    std::uint64_t looked_at = 0;
    bool is_over = false;
  };

  RowSweeps(ZeroSumSet& set, ZeroSumSet::Scope scope, std::uint64_t seed)
      : set_(&set), scope_(scope), random_(seed) {}

  // Goes on with the sweep that is under way, or begins one; violations up to `tol` are left. Ends
  // once it has shifted so many columns of gradients; what was found is of the sweep so far. Rows
  // must not come or go before it is over.
  Result sweep(double tol, std::uint64_t most_shifts);
  // Steps of conjugate gradients. Returns what they gain.
  double conjugate_steps(std::uint64_t most_shifts);

  // All that later sweeps depend on, besides the support set; one may be under way.
  struct Snapshot {
    Twister::State random;
    std::vector<Slot> order;  // of the sweep that is under way; empty between two
    std::size_t next = 0;
    std::vector<double> lowest;  // by slot; zero where nobody lives
    Result result;
    double threshold = 0;
  };
  Snapshot snapshot() const;
  // Goes on from there; std::invalid_argument if no sweep of this set can have been there.
  void restore(Snapshot snapshot);

 private:
  // Classes of a support pattern whose coefficients may move either way; two or more.
  struct FreeClasses {
    Slot slot;
    std::vector<std::uint32_t> classes;
  };
  void begin_sweep();
  void list_free();
  double find_residuals();

  ZeroSumSet* set_;
  ZeroSumSet::Scope scope_;
  Twister random_;
  std::vector<Slot> order_;
  std::size_t next_ = 0;        // of the order
  std::vector<double> lowest_;  // gradient of each slot, as the sweep began
  Result result_;
  double threshold_ = 0;
  std::vector<FreeClasses> free_;
  std::vector<double> residuals_;           // of all free classes
  std::vector<double> direction_, change_;  // classes x slots
};

// What rows that are not held would add to the gap.
struct Inspection {
  double loss = 0;       // of those that are let go, times the caps
  double violation = 0;  // the largest of all
  std::size_t kept = 0;
};

// Looks at rows of the batch with the machine as it is. Those that violate by more than
// `keep_above` stay held, the others are let go again; support patterns are passed over.
Inspection inspect(ZeroSumSet& set, std::span<const std::int64_t> rows, std::int64_t first_id,
                   std::span<const std::int32_t> labels, std::span<const double> caps,
                   double keep_above);

// Gives up all rows without coefficients.
void release_all(ZeroSumSet& set);

// Gives up rows without coefficients whose violation is not above `keep_above` (which may be below
// zero: rows that are right by so much). Returns how many.
std::size_t release_satisfied(ZeroSumSet& set, double keep_above);

// The search of the cutting plane method: each row's worst class joins its working set if it is
// worse than the working set by more than `epsilon`. Rows with an empty one are let go. Returns how
// many have joined.
std::size_t add_constraints(ZeroSumSet& set, std::span<const std::int64_t> rows,
                            std::int64_t first_id, std::span<const std::int32_t> labels,
                            std::span<const double> caps, double epsilon);

}  // namespace widemargin

// Hyperplanes that are parallel: machines of one kernel expansion and several thresholds.
//
// Problem      maximise  sum_ci t_ci b_ci - 1/2 sum_m B_m' K B_m  over signed coefficients b with
//              0 <= t_ci b_ci <= cap_ci, and sum over all b_ci of a threshold = 0. A row has
//              several copies c, each with a sign t and a cap; a copy belongs to a threshold, a
//              threshold to a machine m, and B_m sums the copies of a row that belong to the
//              machine. Two copies with a threshold each are PSVM, dual (6) of the paper, with b =
//              alpha y; k - 1 of them are an ordinal machine of k classes; a single one is a
//              support vector machine with a bias. Two copies of one threshold are a row that is
//              there twice. Machines share nothing but the kernel rows.
// State        coefficients b, and the scores f = K B_m of all rows, without thresholds, in double
//              precision. Which pair moves next follows from these alone.
// Step         of each threshold, the copy that can go up with the largest t - f, and the one that
//              can go down with the smallest; the threshold where the two are farthest apart. The
//              first coefficient of the pair is its highest, the second is the one with which the
//              step promises most (second order). The step is exact, or ends at a bound.
// Stops        it does not: the caller looks at the gap
//
// A step is three passes over the rows at the speed of the cache, whatever the number of rows that
// could still move: leaving rows out would take gathers, which cost more than what is left out
// until that is seven rows in eight.
//
// Source: Wang, Chang and Feng, "Parallel and Sequential Support Vector Machines for Multi-label
// Classification"; the second-order choice is that of Fan, Chen and Lin, "Working set selection
// using second order information for training support vector machines" (2005).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "widemargin/kernel_rows.hpp"

namespace widemargin {

// What is to be learned of the rows.
struct PlanesProblem {
  std::size_t rows;
  std::vector<std::int8_t> signs;       // copies x rows: +1 or -1
  std::vector<double> caps;             // copies x rows, 0 where a row lacks the copy
  std::vector<std::size_t> thresholds;  // by copy: the threshold that it belongs to
  std::vector<std::size_t> machines;    // by threshold: the machine that it belongs to

  std::size_t copies() const { return thresholds.size(); }
};

class ParallelPlanes {
 public:
  struct Standing {
    double gap = 0, dual = 0;
  };
  struct Moved {
    std::uint64_t steps = 0;
    double gain = 0;  // of the dual
  };

  // Puts all rows of the kernel's batch into slots, in their order.
  ParallelPlanes(SlotKernel& kernel, PlanesProblem problem, std::size_t cache_bytes, int n_threads);

  // Takes so many steps, or fewer if no pair violates the optimality conditions any more.
  Moved move(std::uint64_t most_steps);
  // Of all machines together, with the thresholds of intercepts().
  Standing look() const;
  // By threshold, what is added to scores: the mean of t - f over coefficients strictly between
  // their bounds; where there are none, the middle of what the others allow.
  std::vector<double> intercepts() const;

  std::size_t n_rows() const { return problem_.rows; }
  std::size_t n_copies() const { return problem_.copies(); }
  std::size_t n_thresholds() const { return problem_.machines.size(); }
  std::size_t n_machines() const { return n_machines_; }
  // Coefficients that are not zero, and rows that have any.
  struct Supports {
    std::size_t vectors = 0, patterns = 0;
  };
  Supports supports() const;
  std::uint64_t computed() const { return rows_.computed(); }             // kernel values
  std::span<const double> coefficients() const { return coefficients_; }  // copies x rows
  // Machine by machine, one after the other.
  void copy_scores(double* out) const;
  // Goes on from these, copies x rows and machines x rows, which belong together.
  void put(std::span<const double> coefficients, std::span<const double> scores);

 private:
  // A coefficient that can move, and t - f of it.
  struct End {
    double value = 0;
    std::size_t copy = 0, row = kNoPlace;
  };
  struct Threshold {
    End highest, lowest;  // of those that can go up, and of those that can go down
    double violation() const { return highest.value - lowest.value; }
  };

  double* scores_of(std::size_t copy) {
    return scores_.data() + problem_.machines[problem_.thresholds[copy]] * padded_;
  }
  const double* scores_of(std::size_t copy) const {
    return scores_.data() + problem_.machines[problem_.thresholds[copy]] * padded_;
  }
  double lower(std::size_t entry) const;
  double upper(std::size_t entry) const;
  void put_coefficient(std::size_t copy, std::size_t row, double value);
  void note_room(std::size_t copy, std::size_t row);
  void look_at_machine(std::size_t machine);
  bool step(Moved& moved);

  PlanesProblem problem_;
  std::size_t n_machines_, padded_;  // rows in whole groups of kPlaneLanes
  KernelRows rows_;
  std::vector<double> diagonal_;
  std::vector<double> coefficients_;  // copies x rows
  AlignedVector<double> scores_;      // machines x padded rows
  // t where a coefficient can go up, and where it can go down, else an infinity that is never
  // chosen: copies x padded rows.
  AlignedVector<float> rise_, fall_;
  std::vector<Threshold> ends_;
  std::vector<float> kept_row_;  // where the cache has room for one alone
  std::vector<const float*> pointers_;
};

}  // namespace widemargin

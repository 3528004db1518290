// What the innermost loops of dual coordinate ascent see of rows and labels: pointers and sizes.
//
// Labels come in blocks. In all that a block has, the labels are next to one another, so that one
// look at a row serves all of them: weights are features x labels, coefficients rows x labels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "widemargin/aligned.hpp"

namespace widemargin {

// Blocks are padded to a multiple of so many labels: half a cache line of weights.
constexpr std::size_t kLabelsAtOnce = 4;
// Classes that are learned together are padded to a multiple of so many: a register of weights in
// single precision.
constexpr std::size_t kClassesAtOnce = 8;

// Dense or compressed sparse rows, with a constant feature after the last.
template <class T>
struct LabelRows {
  const T* values;
  const std::int32_t* indices;
  const std::int64_t* starts;  // null: the rows are dense
  std::size_t rows;
  std::size_t columns;
  double constant;        // the value of that feature; 0 is none
  const double* squares;  // squared lengths of the rows, the constant included
  const double* caps;     // what each row counts; the largest coefficient is this times a factor
};

// The labels of a block. Padding has factors of 0 and never moves.
struct LabelLanes {
  std::size_t width;                         // padded
  const std::uint8_t* signs;                 // rows x width / 4, a byte each: a bit for each label
  const double* margins;                     // rows x width: what y f should reach; null: 1
  const double *with_label, *without_label;  // factors of the caps
  const double* prior;                       // width x width; null: only its diagonal counts
  const double *scale, *inverse_scale;       // that diagonal
  double* weights;                           // (columns + 1) x width
  double* coefficients;                      // rows x width
  const double *low, *high;                  // gradients beyond these hold a bound
  double *lowest, *highest;                  // projected gradients that were met
  double *gap, *dual;                        // what steps met of the one, and added to the other
  const double* live;                        // 1: moves, 0: waits
  double* scratch;                           // 2 x width
};

// Where a pass over the rows is.
struct LabelPlace {
  std::int32_t* order;  // of rows: those that are left in the pass, then those that are let go
  std::size_t next, active;
  std::uint64_t random;
  std::uint64_t moved;  // rows that have, in this pass
};

}  // namespace widemargin

// The innermost loops, compiled once for each instruction set; which one runs is decided when the
// library loads, so a build made on one machine runs on another.
//
// Their pattern: sums over an inner index of something of a left and a right operand. The left one
// is rows as they are. The right one is packed: its columns are padded to whole vector registers,
// or to half of one, and cut into panels of a few registers, each panel contiguous.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "widemargin/label_steps.hpp"

namespace widemargin {

// How columns are cut: panels of three registers, then one of the whole registers that remain, then
// one of half a register.
struct PanelShape {
  std::size_t lanes;  // numbers in a register
  std::size_t least;  // columns come in multiples of this: half a register, where there is such

  std::size_t padded(std::size_t columns) const {
    return columns == 0 ? least : (columns + least - 1) / least * least;
  }

  struct Panel {
    std::size_t start, width;
  };
  // The panel that column j is in.
  Panel panel_of(std::size_t j, std::size_t columns) const {
    const std::size_t full = 3 * lanes, rest = columns % full, whole = rest / lanes * lanes;
    if (j < columns - rest) return {j / full * full, full};
    if (j < columns - rest + whole) return {columns - rest, whole};
    return {columns - rest + whole, rest - whole};
  }
};

// out(r, j) = factor * sum_f term(left(r, f), right(f, j)) + row_start(r) + column_start(j)
template <class T>
struct Sums {
  const T* left;
  std::size_t left_stride;
  std::size_t rows;
  std::size_t inner;
  const T* packed;
  std::size_t columns;    // padded; also the distance between rows of `out`
  T factor;               // where it is not 1, products only
  const T* row_start;     // null: zeros
  const T* column_start;  // null: zeros
  T* out;
};

// A row of the left operand by its entries that are not zero.
template <class T>
struct SparseEntries {
  const std::int32_t* indices;
  const T* values;
  std::size_t count;
};

template <class T>
struct VectorCode {
  PanelShape shape;

  void (*products)(const Sums<T>&);
  void (*squared_differences)(const Sums<T>&);
  void (*absolute_differences)(const Sums<T>&);
  // (x - b)^2 / ((x + b) / 2), of numbers that are not negative; 0 where both are. Where the mean
  // is negative it counts as 1, so that anything finite gives a sum that is not negative.
  void (*chi_squares)(const Sums<T>&);
  // `products` of a single row; `left` of the sums is not looked at.
  void (*sparse_products)(const SparseEntries<T>&, const Sums<T>&);

  // out[f] = (row[f] - origin[f]) * scale[f], in the wider of the two precisions and then rounded
  // to T; a null origin is zeros. Returns the sum of the squares.
  T (*place_float)(const float* row, const T* origin, const T* scale, std::size_t count, T* out);
  T (*place_double)(const double* row, const double* origin, const double* scale, std::size_t count,
                    T* out);

  // values[i] = exp(-values[i]); below 0 counts as 0, and underflow gives 0. Within 2 units in the
  // last place.
  void (*exp_of_negative)(T* values, std::size_t count);
  // values[i] = tanh(values[i]), within 4 units in the last place; no number stays none.
  void (*tanh_of)(T* values, std::size_t count);
  // For each row of `columns` padded scores the number of the largest of the first `count`, the
  // first of equal ones; padding is minus infinity. Scores that are not numbers give some class.
  void (*largest)(const T* scores, std::size_t rows, std::size_t columns, std::size_t count,
                  std::int64_t* out);

  // Steps of dual coordinate ascent on the rows that are left of a pass, until about so many
  // entries were read; and the gaps of all rows from the next one on, in order, without a step.
  // Both return how many entries they have read.
  std::uint64_t (*ascend)(const LabelRows<T>&, const LabelLanes&, LabelPlace&,
                          std::uint64_t most_entries);
  std::uint64_t (*judge)(const LabelRows<T>&, const LabelLanes&, LabelPlace&,
                         std::uint64_t most_entries);

  // The scores of a row by weights that are (columns + 1) x width, and a change of these weights:
  // sums[l] = sum_f row(f) weights(f, l), and weights(f, l) += row(f) change[l].
  void (*weigh_row)(const LabelRows<T>&, std::size_t row, const T* weights, std::size_t width,
                    T* sums);
  void (*spread_row)(const LabelRows<T>&, std::size_t row, const T* change, std::size_t width,
                     T* weights);
};

// Boxed coefficients of one label, whose dual is quadratic; arrays are as long as `count`, which is
// a multiple of a register. Those of padding have no room to move, and a curvature of one.
struct BoxClimb {
  std::size_t count;
  const float* kernel;  // count x count
  float relation;       // the curvature is relation (kernel + offset)
  float offset;
  const float *curvature, *inverse;  // of each coefficient alone, above zero; and one over it
  float *gradient, *down, *up;       // `down` and `up`: how far each may move, exactly 0 at a bound
  float* change;                     // what each has moved, to which steps are added
  float least_share;                 // of the first gain, below which a step is not worth it,
  float* least_gain;                 // nor below this, which becomes the larger of the two
  std::size_t most_steps;
};

// The coefficients of a label, one a row, and what is to be known of each.
struct BoxLook {
  std::size_t count;
  const std::int8_t* signs;
  const double* margins;  // null: 1
  const double *coefficients, *gradients, *row_caps, *diagonal;
  double relation, cap_without, cap_with;
  // By row, to which what this label has is added: what one step of the coefficient alone gains,
  // and the terms of the duality gap and of the dual.
  double *promise, *gap, *dual;
};

// Rows that are looked at together when a pair is chosen: several registers of any instruction set.
constexpr std::size_t kPlaneLanes = 32;
// A row that was found, and what it was found by; kNoPlace where there is none.
constexpr std::size_t kNoPlace = ~std::size_t{0};
constexpr double kPlaneInfinity = std::numeric_limits<double>::infinity();
struct PlaneChoice {
  double value;
  std::size_t place;
};

// What the second coefficient of a pair is chosen by; `fall` is infinite where a coefficient cannot
// go down.
struct PlanePartner {
  std::size_t count;
  const float *fall, *kernel;
  const double *scores, *diagonal;
  double highest;    // of the first coefficient
  double own_value;  // of its row, by the kernel
  double least;      // a slope below is none
  double flat;       // a curvature below counts as this
};

struct InstructionSet {
  const char* name;  // "avx512", "avx2" or "baseline"
  VectorCode<float> single_precision;
  VectorCode<double> double_precision;
  // sums[i] += constant + factor * values[i]
  void (*add_scaled)(const float* values, double factor, double constant, double* sums,
                     std::size_t count);
  // Exact steps, each on the coefficient that gains most. Returns what they gain.
  double (*climb)(const BoxClimb&);
  void (*look_at_boxes)(const BoxLook&);
  // scores[i] += step * (raised[i] - lowered[i])
  void (*follow_pair)(const float* raised, const float* lowered, double step, double* scores,
                      std::size_t count);
  // The largest of rise - scores and the smallest of fall - scores; `count` is a multiple of
  // kPlaneLanes, and padding has infinities that are never found.
  void (*find_extremes)(const float* rise, const float* fall, const double* scores,
                        std::size_t count, PlaneChoice* highest, PlaneChoice* lowest);
  // The partner that promises most, by slope squared over curvature.
  PlaneChoice (*find_partner)(const PlanePartner&);
};

template <class T>
const VectorCode<T>& code_of(const InstructionSet& set);
template <>
inline const VectorCode<float>& code_of(const InstructionSet& set) {
  return set.single_precision;
}
template <>
inline const VectorCode<double>& code_of(const InstructionSet& set) {
  return set.double_precision;
}

// What this CPU can run, the widest first.
std::span<const InstructionSet* const> instruction_sets();

// The widest one.
template <class T>
const VectorCode<T>& vector_code() {
  return code_of<T>(*instruction_sets().front());
}

inline void exp_of_negative(float* values, std::size_t count) {
  vector_code<float>().exp_of_negative(values, count);
}
inline void exp_of_negative(double* values, std::size_t count) {
  vector_code<double>().exp_of_negative(values, count);
}

}  // namespace widemargin

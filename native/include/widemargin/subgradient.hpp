// Linear machines of all classes, row by row: steps of stochastic subgradients, and exact ones.
//
// Problem      min over w of penalty / 2 |w|^2 + the mean over rows of their loss, by weight
// State        `sums`, a multiple of w, features x classes: w = shrink / (penalty weight) sums,
// with
//              the weight of all rows so far. So a row that shrinks w, as (t - 1) / t of Algorithm
//              1 does, costs nothing, and what it adds is minus its subgradient, as it is. There is
//              no t = 1 at which w would be multiplied by zero, and no scale that gets tiny.
// Steps        subgradient: the scores of a batch of rows, then what each of them adds.
//              exact: what a row adds is found from its scores after the step, not before. That is
//              dual coordinate ascent, with the coefficients that rows have from earlier visits, or
//              without any for rows of a stream: there it is a proximal step of the same length,
//              which needs no learning rate and cannot overshoot.
// Mean         of all w so far, each counting by the weight of the rows before it: that of late
// ones
//              is the larger one. With `mass` = sum of weight shrink / weight_t weight_t, the sum
//              of all is mass sums - earlier, and a step adds mass times its change to `earlier`:
//              so a sparse row changes few entries.
// Projection   w is brought into the ball of radius 1 / sqrt(penalty) after each step, by `shrink`
//
// Sources: Chen, Chen, Yang (2011), Algorithm 1; Shalev-Shwartz, Singer, Srebro, "Pegasos" (2007)
// for projection; Shalev-Shwartz, Zhang, "Stochastic dual coordinate ascent methods for regularized
// loss minimization" (2013), whose first pass takes as many rows into account as were seen;
// Lacoste-Julien, Schmidt, Bach, "A simpler approach to obtaining an O(1/t) convergence rate"
// (2012) for the mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "widemargin/label_steps.hpp"

namespace widemargin {

enum class RowLoss { kCrammerSinger, kWestonWatkins, kLogistic, kPerceptron };

struct StepRule {
  RowLoss loss;
  bool is_joint;  // else one class against the rest
  bool is_exact;  // else subgradients
  bool projects;
  double penalty;
  std::size_t batch;  // rows whose scores are taken before any of them changes the weights
};

// What moves besides the sums.
struct StepTotals {
  double weight = 0;    // of the rows so far
  double shrink = 1;    // what projections have left
  double mass = 0;      // see above
  double averaged = 0;  // the weights by which the mean counts, added up
  double square = 0;    // |sums|^2, where w is projected
  std::int64_t steps = 0;
};

// What rows were like when they came, or are.
struct RowRecord {
  double loss = 0;  // times the weights of rows
  double gap = 0;   // of rows that were learned and whose coefficients are known
  double dual = 0;  // what these add to the dual, of rows that were judged
  std::int64_t mistakes = 0;
};

// Rows, their classes, and the columns of weights: `width` is that of all arrays, a multiple of
// kClassesAtOnce, of which the first `classes` are used, two or more. `caps` of the rows are their
// weights, above zero for those that are learned; `squares` are not looked at.
template <class T>
struct ClassRows {
  LabelRows<T> rows;
  const std::int32_t* targets;
  std::size_t classes, width;
};

// Learns rows in the order given. `sums` and `earlier` are (columns + 1) x width, `earlier` null if
// no mean is wanted. `coefficients`, rows x classes, are those of rows that are known; null: of
// none. `revisits`: rows have been counted before.
template <class T>
RowRecord learn_rows(const StepRule& rule, const ClassRows<T>& data,
                     std::span<const std::int32_t> order, bool revisits, StepTotals& totals,
                     T* sums, T* earlier, T* coefficients);

// Judges all rows of weight above zero by weights, (columns + 1) x width.
template <class T>
RowRecord judge_rows(const StepRule& rule, const ClassRows<T>& data, const T* weights,
                     const T* coefficients, int n_threads);

// out(i, c) = the score of row i for class c, rows x classes.
template <class T>
void weigh_rows(const ClassRows<T>& data, const T* weights, double* out);

}  // namespace widemargin

// One pass over the rows: the sums that the gradient in learned Gaussian units is made of. With G
// (rows x outputs) the gradient of the loss in the scores, A (units x outputs) the coefficients, H
// (rows x units) the values of the units and Z (rows x dimensions) the rows as the units see them,
// all of it follows from W = (G A') * H, which is large and never held: each tile of it is reduced
// at once, by BLAS, while it is in the cache. Sums over tiles are taken in double precision, in an
// order that is always the same.
#pragma once

#include "widemargin/blas.hpp"
#include "widemargin/passes.hpp"
#include "widemargin/views.hpp"

namespace widemargin {

template <class T>
struct UnitRows {
  Matrix<const T> mapped;      // Z
  const T* rest = nullptr;     // squared lengths beside Z, one a row; or none
  Matrix<const T> values;      // H
  Matrix<const T> gradient;    // G
  Matrix<const T> unmapped{};  // X (rows x features), read for `by_feature` only
};

template <class T>
struct UnitParameters {
  Matrix<const T> coefficients;  // A
  Matrix<const T> centres;       // C (units x dimensions), read for `by_feature` only
  const T* widths = nullptr;     // w (units), read for what is summed by rows
  const T* squares = nullptr;    // of the weights of the dimensions
};

// What is null is not asked for. With l_i = sum_d squares_d z_id^2 + squares_0 rest_i and v = W w:
struct UnitSums {
  double* by_unit = nullptr;       // W' [Z 1 l], units x (dimensions + 2)
  double* by_dimension = nullptr;  // (Z * Z)' v
  double* by_feature = nullptr;    // X' (diag(v) Z - W diag(w) C), features x dimensions
};

// Rows that are not chosen (indices, ascending) are taken to have no gradient.
template <class T>
void unit_sums(const UnitRows<T>& rows, RowIndices chosen, const UnitParameters<T>& units,
               const UnitSums& out, const Blas& blas, int n_threads);

// Units as solvers move them, in double precision.
struct UnitPlaces {
  Matrix<const double> centres;
  const double* widths;
  const double* squares;  // of the weights of the dimensions
};

// The gradient in the units; the last two are null where they are not asked for.
struct UnitGradient {
  double* centres;      // units x dimensions
  double* log_widths;   // units
  double* log_weights;  // dimensions; or one, where the sums have no `by_dimension`
  double* mapping;      // features x dimensions, where the sums have `by_feature`
};

// Puts the gradient together from the sums.
void unit_gradient(const UnitPlaces& units, const UnitSums& sums, const UnitGradient& out,
                   std::size_t features);

constexpr double kLargestLog = 25.0;  // of a width or a weight, either way: nothing overflows

}  // namespace widemargin

// Stochastic steps of learned Gaussian units together with their coefficients:
//
//   f_i = b + sum_j a_j exp(-exp(log_width_j) |(z_i - c_j) * exp(log_weights)|^2) + u_i W,
//   z_i = x_i P
//
// by Adam (Kingma and Ba, 2015) on batches of rows, each of which stands for all. Nothing is
// allocated from batch to batch; the products of a batch are BLAS calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "widemargin/blas.hpp"
#include "widemargin/losses.hpp"
#include "widemargin/passes.hpp"
#include "widemargin/views.hpp"

namespace widemargin {

// Rows as units see them before the map, with all that is judged by.
struct StepRows {
  Matrix<const float> rows;     // X
  Matrix<const float> linear;   // U: the rows as the linear part sees them; no columns without one
  const float* rest = nullptr;  // squared lengths beside X, one a row; or none
  AnyJudge judge;
  const float* weights = nullptr;
};

// Which parameters there are. They lie end to end, in the order of the kinds.
struct UnitParts {
  static constexpr std::size_t kKinds = 5;

  std::size_t units, dimensions, features, outputs;
  std::size_t constants;    // 1 with intercepts, else 0
  std::size_t linear;       // columns of the linear part, or 0
  std::size_t log_weights;  // as many as dimensions, or 1 that serves all
  bool is_mapped;

  std::size_t coefficients() const { return constants + units + linear; }
  // Of coefficients, centres, log_widths, log_weights, mapping.
  std::array<std::size_t, kKinds> sizes() const {
    return {coefficients() * outputs, units * dimensions, units, log_weights,
            is_mapped ? features * dimensions : 0};
  }
};

// Parameters, and running means of their gradients and of the squares of these.
struct AdamMoments {
  double* parameters;
  double* means;
  double* squares;
};

struct AdamRates {
  double decay, square_decay, tiny;
};

struct StepSchedule {
  RowIndices order;                               // of the rows
  std::span<const std::int64_t> starts;           // of the batches in `order`, and its end
  std::span<const double> shares;                 // of the lengths that each batch goes
  std::array<double, UnitParts::kKinds> lengths;  // of a step, by the kind of parameter
  double n_rows;                                  // that a batch stands for
};

// Goes through the batches; `n_steps` were made before. Fills values with the objective as each
// batch tells it. Returns the number of batches it could make: it ends before a value that is not
// finite.
std::size_t adam_steps(const StepRows& rows, const UnitParts& parts, const StepSchedule& schedule,
                       const AdamRates& rates, std::int64_t n_steps, const AdamMoments& moments,
                       double* values, const Blas& blas);

}  // namespace widemargin

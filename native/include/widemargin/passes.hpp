// One pass over the rows each: the sums that a Newton solver of
//
//   1/2 |B|^2 + sum_i weight_i loss(f_i, target_i),   F = Z B
//
// asks for, with Z (rows x columns) the columns of a basis, B (columns x outputs) the coefficients,
// F (rows x outputs) the scores. Rows are walked in tiles that fit the cache; products of a tile
// are BLAS calls, everything between them is fused. A pass may be limited to the rows that matter
// (`rows`: their indices, ascending), since a row that keeps all its margins has neither gradient
// nor curvature. Sums over tiles are taken in double precision, in an order that is always the
// same.
#pragma once

#include <cstdint>
#include <span>

#include "widemargin/blas.hpp"
#include "widemargin/losses.hpp"
#include "widemargin/views.hpp"

namespace widemargin {

using RowIndices = std::span<const std::int32_t>;

// Scores, targets and weights of all rows, and the loss that is summed over them.
template <class T>
struct ScoredRows {
  AnyJudge judge;
  Matrix<const T> scores;
  const T* weights;
};

struct AlongStep {
  double value = 0.0;
  double slope = 0.0;
  double curvature = 0.0;
};

// Fills gradient and curvature (rows x outputs: weighted first derivatives, diagonal of the
// Hessian) and marks the rows where either is not zero. Returns the weighted sum of the loss.
template <class T>
double derivatives(const ScoredRows<T>& rows, Matrix<T> gradient, Matrix<T> curvature, bool* active,
                   int n_threads);

template <class T>
double loss_value(const ScoredRows<T>& rows, int n_threads);

// The weighted sum of the loss at F + step * moved, with its first two derivatives in `step`.
template <class T>
AlongStep along_step(const ScoredRows<T>& rows, Matrix<const T> moved, double step, int n_threads);

// out (rows x outputs) = W H(F) U, row by row
template <class T>
void curved_rows(const ScoredRows<T>& rows, Matrix<const T> moved, Matrix<T> out, int n_threads);

// out (columns x outputs) = Z' W H(F) Z V
template <class T>
void hessian_product(const ScoredRows<T>& rows, Matrix<const T> columns, RowIndices chosen,
                     Matrix<const T> direction, double* out, const Blas& blas, int n_threads);

// out (rows x outputs) = Z V
template <class T>
void scores(Matrix<const T> columns, Matrix<const T> direction, Matrix<T> out, const Blas& blas,
            int n_threads);

// out (columns x outputs) = Z' G
template <class T>
void transposed_product(Matrix<const T> columns, RowIndices chosen, Matrix<const T> gradient,
                        double* out, const Blas& blas, int n_threads);

// matrices (outputs x width x width; their lower triangles alone) += M' diag(h) M for each column h
// of `curvature`, where M has columns and candidates side by side, `width` in all; there may be no
// candidates. Entries of h up to `least`, a number for each output, are left out. The rows at hand
// are summed in T, or if `precise` in double precision; what was there before is double.
template <class T>
void add_weighted_grams(Matrix<const T> columns, Matrix<const T> candidates, RowIndices chosen,
                        Matrix<const T> curvature, std::span<const T> least, bool precise,
                        double* matrices, const Blas& blas, int n_threads);

// Takes each of `count` matrices (stride x stride) as a sum of weighted Gram matrices, adds 1 to
// the diagonal of its leading part (columns x columns) and puts the Cholesky factor in its place.
// Rounding error of the sums, relative to the largest, may exceed the 1: then `failed` says so, and
// they should be taken again in double precision. Where they are so large that even this fails,
// `raise` raises the diagonal by as small a share of it as makes up for the rounding error. What is
// factorised then curves a little more than the objective.
void factorise(std::size_t count, std::size_t columns, std::size_t stride, double* matrices,
               bool raise, bool* failed, const Blas& blas, int n_threads);

// Column r of out = (factor of r)^-1 column r of right; with a single factor, it serves all
// columns.
void precondition(std::span<const double> factors, Matrix<const double> right, Matrix<double> out,
                  const Blas& blas, int n_threads);

// candidates (rows x count) -= columns coordinates', the part of new columns that those of the
// basis already express.
template <class T>
void orthogonalise(Matrix<const T> columns, Matrix<const T> coordinates, Matrix<T> candidates,
                   const Blas& blas, int n_threads);

// The quadratic model of the objective in the coefficients of candidate columns, once the columns
// that there are have been solved for. With Z the columns, Q the candidates, D_r the diagonal of
// column r of the curvature, H_r = I + Z' D_r Z and W_r = Z' D_r Q:
//
//   bend_r  = overlap + Q' D_r Q - W_r' H_r^-1 W_r
//   slope_r = Q' gradient_r - W_r' H_r^-1 residual_r
//
// `overlap` holds the inner products of the candidates in the regulariser, `slopes` (candidates x
// outputs) is Q' gradient, `residual` (columns x outputs) the gradient of the objective that a
// solver left. Outputs are taken by themselves: blocks of the Hessian between them are left out.
struct CandidateSums {
  Matrix<const double> slopes;
  Matrix<const double> overlap;
  Matrix<const double> residual;
};

// slope: outputs x candidates; bend: n_matrices x candidates x candidates. The matrices are those
// of add_weighted_grams, factorised; they are used up. One serves all outputs where they curve
// alike.
void candidate_model(const CandidateSums& sums, std::size_t n_matrices, double* matrices,
                     double* slope, double* bend, const Blas& blas, int n_threads);

}  // namespace widemargin

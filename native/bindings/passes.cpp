#include "widemargin/passes.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <variant>

#include "arrays.hpp"
#include "judges.hpp"
#include "parameters.hpp"
#include "scipy_blas.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

using IndexArray = Array1<const std::int32_t>;

template <class T>
ScoredRows<T> scored_rows(const AnyLoss& loss, const TargetArray& targets,
                          const Array2<const T>& scores, const Array1<const T>& weights) {
  require(count_targets(targets) == scores.shape(0), "targets and scores differ in rows");
  require(weights.shape(0) == scores.shape(0), "weights and scores differ in rows");
  return {judge_of(loss, targets, scores.shape(1)), as_matrix(scores), weights.data()};
}

template <class Left, class Right>
void require_same_shape(const Left& left, const Right& right) {
  require(left.shape(0) == right.shape(0) && left.shape(1) == right.shape(1), "shapes differ");
}

template <class T>
void bind_loss_passes(nb::module_& m) {
  m.def(
      "derivatives",
      [](const AnyLoss& loss, const TargetArray& targets, Array2<const T> scores,
         Array1<const T> weights, Array2<T> gradient, Array2<T> curvature, Array1<bool> active,
         int n_threads) {
        require_same_shape(scores, gradient);
        require_same_shape(scores, curvature);
        require(active.shape(0) == scores.shape(0), "active has the wrong length");
        const auto rows = scored_rows<T>(loss, targets, scores, weights);
        nb::gil_scoped_release unlocked;
        return derivatives<T>(rows, as_matrix(gradient), as_matrix(curvature), active.data(),
                              n_threads);
      },
      "loss"_a, "targets"_a.noconvert(), "scores"_a.noconvert(), "weights"_a.noconvert(),
      "gradient"_a.noconvert(), "curvature"_a.noconvert(), "active"_a.noconvert(), "n_threads"_a);
  m.def(
      "loss_value",
      [](const AnyLoss& loss, const TargetArray& targets, Array2<const T> scores,
         Array1<const T> weights, int n_threads) {
        const auto rows = scored_rows<T>(loss, targets, scores, weights);
        nb::gil_scoped_release unlocked;
        return loss_value<T>(rows, n_threads);
      },
      "loss"_a, "targets"_a.noconvert(), "scores"_a.noconvert(), "weights"_a.noconvert(),
      "n_threads"_a);
  m.def(
      "along_step",
      [](const AnyLoss& loss, const TargetArray& targets, Array2<const T> scores,
         Array1<const T> weights, Array2<const T> moved, double step, int n_threads) {
        require_same_shape(scores, moved);
        const auto rows = scored_rows<T>(loss, targets, scores, weights);
        nb::gil_scoped_release unlocked;
        const AlongStep at = along_step<T>(rows, as_matrix(moved), step, n_threads);
        return std::make_tuple(at.value, at.slope, at.curvature);
      },
      "loss"_a, "targets"_a.noconvert(), "scores"_a.noconvert(), "weights"_a.noconvert(),
      "moved"_a.noconvert(), "step"_a, "n_threads"_a);
  m.def(
      "curved_rows",
      [](const AnyLoss& loss, const TargetArray& targets, Array2<const T> scores,
         Array1<const T> weights, Array2<const T> moved, Array2<T> out, int n_threads) {
        require_same_shape(scores, moved);
        require_same_shape(scores, out);
        const auto rows = scored_rows<T>(loss, targets, scores, weights);
        nb::gil_scoped_release unlocked;
        curved_rows<T>(rows, as_matrix(moved), as_matrix(out), n_threads);
      },
      "loss"_a, "targets"_a.noconvert(), "scores"_a.noconvert(), "weights"_a.noconvert(),
      "moved"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
  m.def(
      "hessian_product",
      [](const AnyLoss& loss, const TargetArray& targets, Array2<const T> scores,
         Array1<const T> weights, Array2<const T> columns, IndexArray chosen,
         Array2<const T> direction, Array2<double> out, int n_threads) {
        const auto rows = scored_rows<T>(loss, targets, scores, weights);
        require(columns.shape(0) == scores.shape(0), "columns and scores differ in rows");
        require(direction.shape(1) == scores.shape(1), "direction and scores differ in outputs");
        require_rows(chosen, columns.shape(0));
        require_same_shape(direction, out);
        const Matrix<const T> used = first_columns(columns, direction.shape(0));
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        hessian_product<T>(rows, used, as_span(chosen), as_matrix(direction), out.data(), blas,
                           n_threads);
      },
      "loss"_a, "targets"_a.noconvert(), "scores"_a.noconvert(), "weights"_a.noconvert(),
      "columns"_a.noconvert(), "chosen"_a.noconvert(), "direction"_a.noconvert(),
      "out"_a.noconvert(), "n_threads"_a);
}

template <class T>
void bind_row_passes(nb::module_& m) {
  m.def(
      "scores",
      [](Array2<const T> columns, Array2<const T> direction, Array2<T> out, int n_threads) {
        require(out.shape(0) == columns.shape(0) && out.shape(1) == direction.shape(1),
                "out has the wrong shape");
        const Matrix<const T> used = first_columns(columns, direction.shape(0));
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        scores<T>(used, as_matrix(direction), as_matrix(out), blas, n_threads);
      },
      "columns"_a.noconvert(), "direction"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
  m.def(
      "transposed_product",
      [](Array2<const T> columns, IndexArray chosen, Array2<const T> gradient, Array2<double> out,
         int n_threads) {
        require(gradient.shape(0) == columns.shape(0) && out.shape(1) == gradient.shape(1),
                "shapes differ");
        require_rows(chosen, columns.shape(0));
        const Matrix<const T> used = first_columns(columns, out.shape(0));
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        transposed_product<T>(used, as_span(chosen), as_matrix(gradient), out.data(), blas,
                              n_threads);
      },
      "columns"_a.noconvert(), "chosen"_a.noconvert(), "gradient"_a.noconvert(),
      "out"_a.noconvert(), "n_threads"_a);
  m.def(
      "add_weighted_grams",
      [](Array2<const T> columns, std::size_t n_columns, Array2<const T> candidates,
         IndexArray chosen, Array2<const T> curvature, Array1<const T> least, bool precise,
         Array3<double> matrices, int n_threads) {
        require(curvature.shape(0) == columns.shape(0) && candidates.shape(0) == columns.shape(0),
                "rows differ");
        require_rows(chosen, columns.shape(0));
        const std::size_t outputs = curvature.shape(1), width = n_columns + candidates.shape(1);
        require(least.shape(0) == outputs && matrices.shape(0) == outputs, "outputs differ");
        require(matrices.shape(1) == width && matrices.shape(2) == width,
                "matrices have the wrong shape");
        const Matrix<const T> used = first_columns(columns, n_columns);
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        add_weighted_grams<T>(used, as_matrix(candidates), as_span(chosen), as_matrix(curvature),
                              as_span(least), precise, matrices.data(), blas, n_threads);
      },
      "columns"_a.noconvert(), "n_columns"_a, "candidates"_a.noconvert(), "chosen"_a.noconvert(),
      "curvature"_a.noconvert(), "least"_a.noconvert(), "precise"_a, "matrices"_a.noconvert(),
      "n_threads"_a);
  m.def(
      "orthogonalise",
      [](Array2<const T> columns, Array2<const T> coordinates, Array2<T> candidates,
         int n_threads) {
        require(columns.shape(0) == candidates.shape(0), "columns and candidates differ in rows");
        require(coordinates.shape(0) == candidates.shape(1),
                "coordinates do not fit the candidates");
        const Matrix<const T> used = first_columns(columns, coordinates.shape(1));
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        orthogonalise<T>(used, as_matrix(coordinates), as_matrix(candidates), blas, n_threads);
      },
      "columns"_a.noconvert(), "coordinates"_a.noconvert(), "candidates"_a.noconvert(),
      "n_threads"_a);
}

}  // namespace

void bind_passes(nb::module_& m) {
  nb::list names;
  Losses::for_each([&]<class Loss>() {
    bind_owner<Loss>(m);
    names.append(Loss::name);
  });
  m.attr("LOSSES") = nb::tuple(names);

  bind_loss_passes<float>(m);
  bind_loss_passes<double>(m);
  bind_row_passes<float>(m);
  bind_row_passes<double>(m);

  m.def(
      "factorise",
      [](Array3<double> matrices, std::size_t columns, bool raise, Array1<bool> failed,
         int n_threads) {
        require(matrices.shape(1) == matrices.shape(2) && columns <= matrices.shape(1),
                "matrices have the wrong shape");
        require(failed.shape(0) == matrices.shape(0), "failed has the wrong length");
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        factorise(matrices.shape(0), columns, matrices.shape(1), matrices.data(), raise,
                  failed.data(), blas, n_threads);
      },
      "matrices"_a.noconvert(), "columns"_a, "raise"_a, "failed"_a.noconvert(), "n_threads"_a);
  m.def(
      "candidate_model",
      [](Array3<double> matrices, Array2<const double> slopes, Array2<const double> overlap,
         Array2<const double> residual, Array2<double> slope, Array3<double> bend, int n_threads) {
        const std::size_t count = slopes.shape(0), outputs = slopes.shape(1);
        const std::size_t width = residual.shape(0) + count, served = matrices.shape(0);
        require(served == outputs || served == 1, "one matrix, or one an output");
        require(matrices.shape(1) == width && matrices.shape(2) == width,
                "matrices have the wrong shape");
        require(overlap.shape(0) == count && overlap.shape(1) == count,
                "overlap has the wrong shape");
        require(residual.shape(1) == outputs, "residual has the wrong shape");
        require(slope.shape(0) == outputs && slope.shape(1) == count, "slope has the wrong shape");
        require(bend.shape(0) == served && bend.shape(1) == count && bend.shape(2) == count,
                "bend: wrong shape");
        const CandidateSums sums{as_matrix(slopes), as_matrix(overlap), as_matrix(residual)};
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        candidate_model(sums, served, matrices.data(), slope.data(), bend.data(), blas, n_threads);
      },
      "matrices"_a.noconvert(), "slopes"_a.noconvert(), "overlap"_a.noconvert(),
      "residual"_a.noconvert(), "slope"_a.noconvert(), "bend"_a.noconvert(), "n_threads"_a);
  m.def(
      "precondition",
      [](Array3<const double> factors, Array2<const double> right, Array2<double> out,
         int n_threads) {
        require_same_shape(right, out);
        require(factors.shape(1) == right.shape(0) && factors.shape(2) == right.shape(0),
                "factors do not fit");
        require(factors.shape(0) == 1 || factors.shape(0) == right.shape(1),
                "one factor, or one an output");
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        precondition({factors.data(), factors.size()}, as_matrix(right), as_matrix(out), blas,
                     n_threads);
      },
      "factors"_a.noconvert(), "right"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

}  // namespace widemargin::bindings

#include "widemargin/passes.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <variant>

#include "arrays.hpp"
#include "parameters.hpp"
#include "scipy_blas.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

using IndexArray = Array1<const std::int32_t>;

// The arrays that may hold targets, and the targets they are.
using TargetArray =
    std::variant<Array1<const std::int32_t>, Array2<const std::int8_t>, Array2<const double>>;

ClassTargets view(const Array1<const std::int32_t>& array, std::size_t outputs) {
  for (std::size_t i = 0; i < array.shape(0); ++i) {
    require(array.data()[i] >= 0 && static_cast<std::size_t>(array.data()[i]) < outputs,
            "a class number is not below the number of outputs");
  }
  return {array.data()};
}

SignedTargets view(const Array2<const std::int8_t>& array, std::size_t outputs) {
  require(array.shape(1) == outputs, "targets and scores differ in outputs");
  return {array.data()};
}

RealTargets view(const Array2<const double>& array, std::size_t outputs) {
  require(array.shape(1) == outputs, "targets and scores differ in outputs");
  return {array.data()};
}

AnyJudge judge_of(const AnyLoss& loss, const TargetArray& targets, std::size_t outputs) {
  return std::visit(
      [&](const auto& each, const auto& array) -> AnyJudge {
        using Loss = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<decltype(view(array, outputs)), typename Loss::Targets>) {
          return Judge<Loss>{each, view(array, outputs)};
        } else {
          throw std::invalid_argument("widemargin._native: targets are of another kind of loss");
        }
      },
      loss, targets);
}

template <class T>
ScoredRows<T> scored_rows(const AnyLoss& loss, const TargetArray& targets,
                          const Array2<const T>& scores, const Array1<const T>& weights) {
  const std::size_t n_targets =
      std::visit([](const auto& array) { return array.shape(0); }, targets);
  require(n_targets == scores.shape(0), "targets and scores differ in rows");
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
         Array1<const T> weights, Array2<const T> features, IndexArray chosen,
         Array2<const T> direction, Array2<double> out, int n_threads) {
        const auto rows = scored_rows<T>(loss, targets, scores, weights);
        require(features.shape(0) == scores.shape(0), "features and scores differ in rows");
        require(direction.shape(1) == scores.shape(1), "direction and scores differ in outputs");
        require_rows(chosen, features.shape(0));
        require_same_shape(direction, out);
        const Matrix<const T> used = first_columns(features, direction.shape(0));
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        hessian_product<T>(rows, used, as_span(chosen), as_matrix(direction), out.data(), blas,
                           n_threads);
      },
      "loss"_a, "targets"_a.noconvert(), "scores"_a.noconvert(), "weights"_a.noconvert(),
      "features"_a.noconvert(), "chosen"_a.noconvert(), "direction"_a.noconvert(),
      "out"_a.noconvert(), "n_threads"_a);
}

template <class T>
void bind_row_passes(nb::module_& m) {
  m.def(
      "scores",
      [](Array2<const T> features, Array2<const T> direction, Array2<T> out, int n_threads) {
        require(out.shape(0) == features.shape(0) && out.shape(1) == direction.shape(1),
                "out has the wrong shape");
        const Matrix<const T> used = first_columns(features, direction.shape(0));
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        scores<T>(used, as_matrix(direction), as_matrix(out), blas, n_threads);
      },
      "features"_a.noconvert(), "direction"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
  m.def(
      "transposed_product",
      [](Array2<const T> features, IndexArray chosen, Array2<const T> gradient, Array2<double> out,
         int n_threads) {
        require(gradient.shape(0) == features.shape(0) && out.shape(1) == gradient.shape(1),
                "shapes differ");
        require_rows(chosen, features.shape(0));
        const Matrix<const T> used = first_columns(features, out.shape(0));
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        transposed_product<T>(used, as_span(chosen), as_matrix(gradient), out.data(), blas,
                              n_threads);
      },
      "features"_a.noconvert(), "chosen"_a.noconvert(), "gradient"_a.noconvert(),
      "out"_a.noconvert(), "n_threads"_a);
  m.def(
      "curvature_factors",
      [](Array2<const T> features, IndexArray chosen, Array2<const T> curvature, double cutoff,
         Array3<double> factors, int n_threads) {
        require(curvature.shape(0) == features.shape(0) && factors.shape(0) == curvature.shape(1),
                "shapes differ");
        require_rows(chosen, features.shape(0));
        require(factors.shape(1) == factors.shape(2), "factors are not square");
        const Matrix<const T> used = first_columns(features, factors.shape(1));
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        curvature_factors<T>(used, as_span(chosen), as_matrix(curvature), cutoff, factors.data(),
                             blas, n_threads);
      },
      "features"_a.noconvert(), "chosen"_a.noconvert(), "curvature"_a.noconvert(), "cutoff"_a,
      "factors"_a.noconvert(), "n_threads"_a);
  m.def(
      "orthogonalise",
      [](Array2<const T> features, Array2<const T> coordinates, Array2<T> columns, int n_threads) {
        require(features.shape(0) == columns.shape(0), "features and columns differ in rows");
        require(coordinates.shape(0) == columns.shape(1), "coordinates do not fit the columns");
        const Matrix<const T> used = first_columns(features, coordinates.shape(1));
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        orthogonalise<T>(used, as_matrix(coordinates), as_matrix(columns), blas, n_threads);
      },
      "features"_a.noconvert(), "coordinates"_a.noconvert(), "columns"_a.noconvert(),
      "n_threads"_a);
  m.def(
      "candidate_model",
      [](Array2<const T> features, Array2<const T> candidates, IndexArray chosen,
         Array2<const T> gradient, Array2<const T> curvature, Array2<const double> overlap,
         Array2<const double> residual, Array2<double> slope, Array3<double> bend, int n_threads) {
        const std::size_t count = candidates.shape(1), outputs = gradient.shape(1);
        require(gradient.shape(0) == curvature.shape(0) &&
                    (curvature.shape(1) == outputs || curvature.shape(1) == 1),
                "curvature has the wrong shape");
        require(candidates.shape(0) == gradient.shape(0) && features.shape(0) == gradient.shape(0),
                "rows differ");
        require_rows(chosen, features.shape(0));
        require(overlap.shape(0) == count && overlap.shape(1) == count,
                "overlap has the wrong shape");
        require(residual.shape(1) == outputs, "residual has the wrong shape");
        require(slope.shape(0) == outputs && slope.shape(1) == count, "slope has the wrong shape");
        require(
            bend.shape(0) == curvature.shape(1) && bend.shape(1) == count && bend.shape(2) == count,
            "bend: wrong shape");
        const CandidateProblem<T> problem{first_columns(features, residual.shape(0)),
                                          as_matrix(candidates),
                                          as_matrix(gradient),
                                          as_matrix(curvature),
                                          as_matrix(overlap),
                                          as_matrix(residual)};
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        candidate_model<T>(problem, as_span(chosen), slope.data(), bend.data(), blas, n_threads);
      },
      "features"_a.noconvert(), "candidates"_a.noconvert(), "chosen"_a.noconvert(),
      "gradient"_a.noconvert(), "curvature"_a.noconvert(), "overlap"_a.noconvert(),
      "residual"_a.noconvert(), "slope"_a.noconvert(), "bend"_a.noconvert(), "n_threads"_a);
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

#include "widemargin/units.hpp"

#include <nanobind/stl/optional.h>

#include <optional>
#include <vector>

#include "arrays.hpp"
#include "scipy_blas.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

template <class Array>
auto data_of(const std::optional<Array>& array) {
  return array ? array->data() : nullptr;
}

template <class T>
void bind_unit_gradient(nb::module_& m) {
  m.def(
      "unit_gradient",
      [](std::optional<Array2<const T>> unmapped, Array2<const T> mapped,
         std::optional<Array1<const T>> rest, RowsOfArray<T> values, Array2<const T> gradient,
         Array1<const std::int32_t> chosen, Array2<const T> coefficients,
         Array2<const double> centres, Array1<const double> widths, Array1<const double> squares,
         Array2<double> in_centres, Array1<double> in_log_widths, Array1<double> in_log_weights,
         std::optional<Array2<double>> in_mapping, int n_threads) {
        const std::size_t n = mapped.shape(0), dimensions = mapped.shape(1);
        const std::size_t units = coefficients.shape(0);
        require(values.shape(0) == n && gradient.shape(0) == n && (!rest || rest->shape(0) == n) &&
                    (!unmapped || unmapped->shape(0) == n),
                "rows differ");
        require_rows(chosen, n);
        require(dimensions > 0 || !rest, "rest without dimensions");
        require(gradient.shape(1) == coefficients.shape(1),
                "gradient and coefficients differ in outputs");
        require(values.shape(1) == units && centres.shape(0) == units && widths.shape(0) == units &&
                    in_centres.shape(0) == units && in_log_widths.shape(0) == units,
                "units differ");
        const std::size_t n_weights = in_log_weights.shape(0);
        require(centres.shape(1) == dimensions && squares.shape(0) == dimensions &&
                    in_centres.shape(1) == dimensions &&
                    (n_weights == 1 || n_weights == dimensions),
                "dimensions differ");
        require(!in_mapping || (unmapped && in_mapping->shape(0) == unmapped->shape(1) &&
                                in_mapping->shape(1) == dimensions),
                "in_mapping does not fit");
        UnitRows<T> rows{as_matrix(mapped), data_of(rest), rows_of<T>(values), as_matrix(gradient)};
        if (unmapped) rows.unmapped = as_matrix(*unmapped);
        const std::vector<T> rounded_centres(centres.data(), centres.data() + units * dimensions);
        const std::vector<T> rounded_widths(widths.data(), widths.data() + units);
        const std::vector<T> rounded_squares(squares.data(), squares.data() + dimensions);
        const UnitParameters<T> parameters{as_matrix(coefficients),
                                           contiguous(rounded_centres.data(), units, dimensions),
                                           rounded_widths.data(), rounded_squares.data()};
        std::vector<double> by_unit(units * (dimensions + 2));
        std::vector<double> by_dimension(n_weights > 1 ? dimensions : 0);
        std::vector<double> by_feature(in_mapping ? unmapped->shape(1) * dimensions : 0);
        const UnitSums sums{by_unit.data(), by_dimension.empty() ? nullptr : by_dimension.data(),
                            in_mapping ? by_feature.data() : nullptr};
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        unit_sums<T>(rows, as_span(chosen), parameters, sums, blas, n_threads);
        unit_gradient(
            {as_matrix(centres), widths.data(), squares.data()}, sums,
            {in_centres.data(), in_log_widths.data(), in_log_weights.data(), data_of(in_mapping)},
            in_mapping ? in_mapping->shape(0) : 0);
      },
      "unmapped"_a.noconvert().none(), "mapped"_a.noconvert(), "rest"_a.noconvert().none(),
      "values"_a.noconvert(), "gradient"_a.noconvert(), "chosen"_a.noconvert(),
      "coefficients"_a.noconvert(), "centres"_a.noconvert(), "widths"_a.noconvert(),
      "squares"_a.noconvert(), "in_centres"_a.noconvert(), "in_log_widths"_a.noconvert(),
      "in_log_weights"_a.noconvert(), "in_mapping"_a.noconvert().none(), "n_threads"_a);
}

}  // namespace

void bind_units(nb::module_& m) {
  bind_unit_gradient<float>(m);
  bind_unit_gradient<double>(m);
}

}  // namespace widemargin::bindings

#include "widemargin/units.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "arrays.hpp"
#include "scipy_blas.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

// Rows that may lie further apart than they are long: columns of an array that has others too.
template <class T>
using RowsOfArray = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

template <class T>
Matrix<const T> rows_of(const RowsOfArray<T>& array) {
  const std::size_t rows = array.shape(0), columns = array.shape(1);
  require(columns <= 1 || array.stride(1) == 1, "entries of a row are not side by side");
  require(rows <= 1 || array.stride(0) >= static_cast<std::int64_t>(columns), "rows overlap");
  return {array.data(), rows, columns,
          rows <= 1 ? columns : static_cast<std::size_t>(array.stride(0))};
}

template <class Array>
auto data_of(const std::optional<Array>& array) {
  return array ? array->data() : nullptr;
}

template <class T>
void bind_unit_sums(nb::module_& m) {
  m.def(
      "unit_sums",
      [](std::optional<Array2<const T>> unmapped, Array2<const T> mapped,
         std::optional<Array1<const T>> rest, RowsOfArray<T> values, Array2<const T> gradient,
         Array1<const std::int32_t> chosen, Array2<const T> coefficients, Array2<const T> centres,
         Array1<const T> widths, Array1<const T> squares, Array2<double> by_unit,
         std::optional<Array1<double>> by_dimension, std::optional<Array2<double>> by_feature,
         int n_threads) {
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
                    by_unit.shape(0) == units,
                "units differ");
        require(centres.shape(1) == dimensions && squares.shape(0) == dimensions &&
                    by_unit.shape(1) == dimensions + 2 &&
                    (!by_dimension || by_dimension->shape(0) == dimensions),
                "dimensions differ");
        require(!by_feature || (unmapped && by_feature->shape(0) == unmapped->shape(1) &&
                                by_feature->shape(1) == dimensions),
                "by_feature does not fit");
        UnitRows<T> rows{as_matrix(mapped), data_of(rest), rows_of<T>(values), as_matrix(gradient)};
        if (unmapped) rows.unmapped = as_matrix(*unmapped);
        const UnitParameters<T> parameters{as_matrix(coefficients), as_matrix(centres),
                                           widths.data(), squares.data()};
        const UnitSums out{by_unit.data(), data_of(by_dimension), data_of(by_feature)};
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        unit_sums<T>(rows, as_span(chosen), parameters, out, blas, n_threads);
      },
      "unmapped"_a.noconvert().none(), "mapped"_a.noconvert(), "rest"_a.noconvert().none(),
      "values"_a.noconvert(), "gradient"_a.noconvert(), "chosen"_a.noconvert(),
      "coefficients"_a.noconvert(), "centres"_a.noconvert(), "widths"_a.noconvert(),
      "squares"_a.noconvert(), "by_unit"_a.noconvert(), "by_dimension"_a.noconvert().none(),
      "by_feature"_a.noconvert().none(), "n_threads"_a);
}

}  // namespace

void bind_units(nb::module_& m) {
  bind_unit_sums<float>(m);
  bind_unit_sums<double>(m);
}

}  // namespace widemargin::bindings

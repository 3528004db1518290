#include "widemargin/unit_steps.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "arrays.hpp"
#include "judges.hpp"
#include "parameters.hpp"
#include "scipy_blas.hpp"

namespace widemargin::bindings {

using namespace nb::literals;

void bind_unit_steps(nb::module_& m) {
  m.def(
      "adam_steps",
      [](const AnyLoss& loss, const TargetArray& targets, Array2<const float> rows,
         RowsOfArray<float> linear, std::optional<Array1<const float>> rest,
         Array1<const float> weights, std::array<std::size_t, 3> shape, std::array<bool, 3> has,
         Array1<const std::int32_t> order, Array1<const std::int64_t> starts,
         Array1<const double> shares, std::array<double, UnitParts::kKinds> lengths,
         std::array<double, 3> rates, std::int64_t n_steps, Array1<double> parameters,
         Array1<double> means, Array1<double> squares, Array1<double> values) {
        const std::size_t n = rows.shape(0), features = rows.shape(1);
        const auto [units, dimensions, outputs] = shape;
        const auto [has_intercepts, has_weights, is_mapped] = has;
        const UnitParts parts{units,
                              dimensions,
                              features,
                              outputs,
                              has_intercepts ? std::size_t{1} : 0,
                              linear.shape(1),
                              has_weights ? dimensions : 1,
                              is_mapped};
        require(is_mapped || features == dimensions, "dimensions without a map differ");
        require(count_targets(targets) == n && linear.shape(0) == n && weights.shape(0) == n &&
                    (!rest || rest->shape(0) == n),
                "rows differ");
        require(dimensions > 0 || !rest, "rest without dimensions");
        require_rows(order, n);
        require(starts.shape(0) == shares.shape(0) + 1 && values.shape(0) == shares.shape(0),
                "batches differ");
        for (std::size_t i = 0; i + 1 < starts.shape(0); ++i)
          require(starts.data()[i] < starts.data()[i + 1], "a batch is empty");
        require(starts.data()[0] >= 0 &&
                    static_cast<std::size_t>(starts.data()[starts.shape(0) - 1]) <= order.shape(0),
                "batches are beyond the rows");
        const auto sizes = parts.sizes();
        const std::size_t size = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
        require(parameters.shape(0) == size && means.shape(0) == size && squares.shape(0) == size,
                "parameters are of another size");
        const StepRows step_rows{as_matrix(rows), rows_of<float>(linear),
                                 rest ? rest->data() : nullptr, judge_of(loss, targets, outputs),
                                 weights.data()};
        const StepSchedule schedule{as_span(order), as_span(starts), as_span(shares), lengths,
                                    static_cast<double>(n)};
        const AdamMoments moments{parameters.data(), means.data(), squares.data()};
        const Blas& blas = scipy_blas();
        nb::gil_scoped_release unlocked;
        return adam_steps(step_rows, parts, schedule, {rates[0], rates[1], rates[2]}, n_steps,
                          moments, values.data(), blas);
      },
      "loss"_a, "targets"_a.noconvert(), "rows"_a.noconvert(), "linear"_a.noconvert(),
      "rest"_a.noconvert().none(), "weights"_a.noconvert(), "shape"_a, "has"_a,
      "order"_a.noconvert(), "starts"_a.noconvert(), "shares"_a.noconvert(), "lengths"_a, "rates"_a,
      "n_steps"_a, "parameters"_a.noconvert(), "means"_a.noconvert(), "squares"_a.noconvert(),
      "values"_a.noconvert());
}

}  // namespace widemargin::bindings

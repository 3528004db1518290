#include "widemargin/subgradient.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "label_rows.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

RowLoss loss_named(const std::string& name) {
  if (name == "crammer_singer") return RowLoss::kCrammerSinger;
  if (name == "weston_watkins") return RowLoss::kWestonWatkins;
  if (name == "logistic") return RowLoss::kLogistic;
  require(name == "perceptron", "a loss of this name is not known");
  return RowLoss::kPerceptron;
}

// Rows with their classes and weights; `width` is that of the arrays of weights.
template <class T, class Rows>
ClassRows<T> class_rows(const Rows& rows, double constant,
                        const Array1<const std::int32_t>& targets,
                        const Array1<const double>& weights, std::size_t classes,
                        std::size_t width) {
  ClassRows<T> out{view(rows), targets.data(), classes, width};
  require(targets.shape(0) == out.rows.rows && weights.shape(0) == out.rows.rows, "rows differ");
  require(classes > 1 && classes <= width && width % kClassesAtOnce == 0, "classes differ");
  out.rows.constant = constant;
  out.rows.caps = weights.data();
  return out;
}

template <class T>
void require_class(const ClassRows<T>& data, std::size_t row) {
  require(data.targets[row] >= 0 && static_cast<std::size_t>(data.targets[row]) < data.classes,
          "a row is of a class that is not there");
}

template <class T>
void require_weights(const Array2<T>& weights, const ClassRows<std::remove_const_t<T>>& data) {
  require(weights.shape(0) == data.rows.columns + 1 && weights.shape(1) == data.width,
          "weights are of other features or classes");
}

template <class T>
void require_coefficients(const std::optional<Array2<T>>& coefficients,
                          const ClassRows<std::remove_const_t<T>>& data) {
  require(!coefficients ||
              (coefficients->shape(0) == data.rows.rows && coefficients->shape(1) == data.classes),
          "coefficients are of other rows or classes");
}

template <class T, class Rows>
void bind_rows(nb::module_& m) {
  m.def(
      "learn_rows",
      [](const StepRule& rule, const Rows& rows, double constant,
         Array1<const std::int32_t> targets, Array1<const double> weights, std::size_t classes,
         Array1<const std::int32_t> order, bool revisits, StepTotals& totals, Array2<T> sums,
         std::optional<Array2<T>> earlier, std::optional<Array2<T>> coefficients) {
        const auto data = class_rows<T>(rows, constant, targets, weights, classes, sums.shape(1));
        require_rows(order, data.rows.rows);
        for (std::size_t i = 0; i < order.shape(0); ++i) {
          require_class(data, static_cast<std::size_t>(order.data()[i]));
        }
        require_weights(sums, data);
        if (earlier) require_weights(*earlier, data);
        require_coefficients(coefficients, data);
        nb::gil_scoped_release unlocked;
        return learn_rows(rule, data, as_span(order), revisits, totals, sums.data(),
                          earlier ? earlier->data() : nullptr,
                          coefficients ? coefficients->data() : nullptr);
      },
      "rule"_a, "rows"_a.noconvert(), "constant"_a, "targets"_a.noconvert(),
      "weights"_a.noconvert(), "classes"_a, "order"_a.noconvert(), "revisits"_a, "totals"_a,
      "sums"_a.noconvert(), "earlier"_a.noconvert().none(), "coefficients"_a.noconvert().none());
  m.def(
      "judge_rows",
      [](const StepRule& rule, const Rows& rows, double constant,
         Array1<const std::int32_t> targets, Array1<const double> weights, std::size_t classes,
         Array2<const T> machine, std::optional<Array2<const T>> coefficients, int n_threads) {
        const auto data =
            class_rows<T>(rows, constant, targets, weights, classes, machine.shape(1));
        for (std::size_t i = 0; i < data.rows.rows; ++i) require_class(data, i);
        require_weights(machine, data);
        require_coefficients(coefficients, data);
        nb::gil_scoped_release unlocked;
        return judge_rows(rule, data, machine.data(), coefficients ? coefficients->data() : nullptr,
                          n_threads);
      },
      "rule"_a, "rows"_a.noconvert(), "constant"_a, "targets"_a.noconvert(),
      "weights"_a.noconvert(), "classes"_a, "machine"_a.noconvert(),
      "coefficients"_a.noconvert().none(), "n_threads"_a);
  m.def(
      "weigh_rows",
      [](const Rows& rows, double constant, Array2<const T> machine, Array2<double> out) {
        ClassRows<T> data{view(rows), nullptr, out.shape(1), machine.shape(1)};
        data.rows.constant = constant;
        require_weights(machine, data);
        require(out.shape(0) == data.rows.rows && data.classes <= data.width &&
                    data.width % kClassesAtOnce == 0,
                "scores are of other rows or classes");
        nb::gil_scoped_release unlocked;
        weigh_rows(data, machine.data(), out.data());
      },
      "rows"_a.noconvert(), "constant"_a, "machine"_a.noconvert(), "out"_a.noconvert());
}

}  // namespace

void bind_subgradient(nb::module_& m) {
  m.attr("CLASSES_AT_ONCE") = kClassesAtOnce;
  nb::class_<StepRule>(m, "StepRule")
      .def(
          "__init__",
          [](StepRule* self, const std::string& loss, bool is_joint, bool is_exact, bool projects,
             double penalty, std::size_t batch) {
            require(penalty > 0 && batch > 0, "a penalty and a batch must be positive");
            require(!(is_exact && loss == "perceptron"), "the perceptron has no exact steps");
            new (self) StepRule{loss_named(loss), is_joint, is_exact, projects, penalty, batch};
          },
          nb::kw_only(), "loss"_a, "is_joint"_a, "is_exact"_a, "projects"_a, "penalty"_a,
          "batch"_a);
  nb::class_<StepTotals>(m, "StepTotals")
      .def(nb::init<>())
      .def_rw("weight", &StepTotals::weight)
      .def_rw("shrink", &StepTotals::shrink)
      .def_rw("mass", &StepTotals::mass)
      .def_rw("averaged", &StepTotals::averaged)
      .def_rw("square", &StepTotals::square)
      .def_rw("steps", &StepTotals::steps);
  nb::class_<RowRecord>(m, "RowRecord")
      .def_ro("loss", &RowRecord::loss)
      .def_ro("gap", &RowRecord::gap)
      .def_ro("dual", &RowRecord::dual)
      .def_ro("mistakes", &RowRecord::mistakes);
  bind_rows<float, Array2<const float>>(m);
  bind_rows<double, Array2<const double>>(m);
  bind_rows<float, CsrArrays<float>>(m);
  bind_rows<double, CsrArrays<double>>(m);
}

}  // namespace widemargin::bindings

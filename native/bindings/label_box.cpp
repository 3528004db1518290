#include "widemargin/label_box.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "arrays.hpp"
#include "keeping.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

using HeldBox = Keeping<LabelBox>;  // keeps its kernel

void make(HeldBox* self, nb::object kernel, Array2<const std::int8_t> signs,
          Array1<const double> row_caps, Array2<const double> label_caps,
          Array2<const double> relation, std::optional<Array2<const double>> margins, double offset,
          std::size_t cache_bytes, int n_threads) {
  const std::size_t labels = signs.shape(0), rows = signs.shape(1);
  require(labels > 0 && rows > 0, "there is nothing to learn");
  require(row_caps.shape(0) == rows, "row_caps are not one a row");
  require(label_caps.shape(0) == labels && label_caps.shape(1) == 2, "label_caps are not two each");
  require(relation.shape(0) == labels && relation.shape(1) == labels, "relation is not square");
  require(std::all_of(signs.data(), signs.data() + signs.size(),
                      [](std::int8_t each) { return each == 1 || each == -1; }),
          "signs are not 1 or -1");
  LabelProblem problem{rows,
                       labels,
                       {signs.data(), signs.data() + signs.size()},
                       {row_caps.data(), row_caps.data() + rows},
                       {label_caps.data(), label_caps.data() + 2 * labels},
                       {relation.data(), relation.data() + labels * labels},
                       offset};
  if (margins) {
    require(margins->shape(0) == labels && margins->shape(1) == rows, "margins are not of labels");
    problem.margins.assign(margins->data(), margins->data() + margins->size());
  }
  SlotKernel& native = nb::cast<SlotKernel&>(kernel);
  {
    nb::gil_scoped_release unlocked;
    new (self) HeldBox(native, std::move(problem), cache_bytes, n_threads);
  }
  self->kept = std::move(kernel);
}

void read(std::span<double> from, Array2<double>& out, const LabelBox& box) {
  require(out.shape(0) == box.n_labels() && out.shape(1) == box.n_rows(), "out has another shape");
  std::copy(from.begin(), from.end(), out.data());
}

void write(std::span<double> to, const Array2<const double>& values, const LabelBox& box) {
  require(values.shape(0) == box.n_labels() && values.shape(1) == box.n_rows(),
          "values have another shape");
  std::copy_n(values.data(), to.size(), to.begin());
}

}  // namespace

void bind_label_box(nb::module_& m) {
  nb::class_<HeldBox>(m, "LabelBox", collected<HeldBox>())
      .def("__init__", &make, "kernel"_a, "signs"_a.noconvert(), "row_caps"_a.noconvert(),
           "label_caps"_a.noconvert(), "relation"_a.noconvert(), "margins"_a.noconvert().none(),
           "offset"_a, "cache_bytes"_a, "n_threads"_a)
      .def("look",
           [](HeldBox& box) {
             LabelBox::Standing found;
             {
               nb::gil_scoped_release unlocked;
               found = box.look();
             }
             return nb::make_tuple(found.gap, found.dual);
           })
      .def(
          "promising",
          [](const HeldBox& box, double share, Array1<std::int64_t> out) {
            const std::vector<Slot> rows = box.promising(share);
            require(out.shape(0) >= rows.size(), "out is too short");
            std::copy(rows.begin(), rows.end(), out.data());
            return rows.size();
          },
          "share"_a, "out"_a.noconvert())
      .def(
          "move",
          [](HeldBox& box, Array1<const std::int64_t> numbers) {
            std::vector<Slot> rows;
            std::vector<bool> seen(box.n_rows());
            for (std::size_t i = 0; i < numbers.shape(0); ++i) {
              const std::int64_t row = numbers.data()[i];
              require(row >= 0 && static_cast<std::size_t>(row) < box.n_rows(),
                      "a row is not there");
              require(!seen[static_cast<std::size_t>(row)], "a row is named twice");
              seen[static_cast<std::size_t>(row)] = true;
              rows.push_back(static_cast<Slot>(row));
            }
            nb::gil_scoped_release unlocked;
            return box.move(rows);
          },
          "rows"_a.noconvert())
      .def(
          "refresh",
          [](HeldBox& box, std::size_t first) {
            require(first < box.n_rows(), "there is no such row");
            nb::gil_scoped_release unlocked;
            return box.refresh(first);
          },
          "first"_a)
      .def(
          "coefficients",
          [](HeldBox& box, Array2<double> out) { read(box.coefficients(), out, box); },
          "out"_a.noconvert())
      .def(
          "gradients", [](HeldBox& box, Array2<double> out) { read(box.gradients(), out, box); },
          "out"_a.noconvert())
      .def(
          "put_coefficients",
          [](HeldBox& box, Array2<const double> values) { write(box.coefficients(), values, box); },
          "values"_a.noconvert())
      .def(
          "put_gradients",
          [](HeldBox& box, Array2<const double> values) { write(box.gradients(), values, box); },
          "values"_a.noconvert())
      .def("supports",
           [](const HeldBox& box) {
             const LabelBox::Supports found = box.supports();
             return nb::make_tuple(found.vectors, found.patterns);
           })
      .def_prop_ro("block_rows", [](const HeldBox& box) { return box.block_rows(); })
      .def_prop_ro("kernel_evaluations", [](const HeldBox& box) { return box.computed(); });
}

}  // namespace widemargin::bindings

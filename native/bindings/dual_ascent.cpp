#include "widemargin/dual_ascent.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "label_rows.hpp"
#include "packing.hpp"
#include "widemargin/parallel.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

template <class T>
std::vector<T> padded_numbers(const Array1<const T>& array, std::size_t size) {
  std::vector<T> out(size, T(0));
  std::copy_n(array.data(), array.shape(0), out.begin());
  return out;
}

DualAscent::Problem problem_of(const Array2<const std::uint8_t>& signs, std::size_t columns,
                               const Array1<const double>& with_label,
                               const Array1<const double>& without_label,
                               const Array1<const double>& scale,
                               const std::optional<Array2<const double>>& prior,
                               const std::optional<Array2<const double>>& margins) {
  const std::size_t labels = scale.shape(0), width = DualAscent::padded(labels);
  require(with_label.shape(0) == labels && without_label.shape(0) == labels, "labels differ");
  require(signs.shape(1) * kLabelsAtOnce == width, "signs are of other labels");
  DualAscent::Problem out;
  out.rows = signs.shape(0);
  out.columns = columns;
  out.labels = labels;
  out.signs.assign(signs.data(), signs.data() + signs.size());
  out.with_label = padded_numbers(with_label, width);
  out.without_label = padded_numbers(without_label, width);
  out.scale = padded_numbers(scale, width);
  if (prior) {
    require(prior->shape(0) == labels && prior->shape(1) == labels, "the prior is of other labels");
    out.prior.assign(width * width, 0.0);
    for (std::size_t k = 0; k < labels; ++k) {
      std::copy_n(prior->data() + k * labels, labels, out.prior.begin() + k * width);
    }
  }
  if (margins) {
    require(margins->shape(0) == out.rows && margins->shape(1) == labels,
            "the margins are of other rows or labels");
    out.margins.assign(out.rows * width, 1.0);
    for (std::size_t i = 0; i < out.rows; ++i) {
      std::copy_n(margins->data() + i * labels, labels, out.margins.begin() + i * width);
    }
  }
  return out;
}

// The states of labels, one after the other, as they are packed.
constexpr std::vector<double> DualAscent::State::* kLanes[] = {
    &DualAscent::State::low,     &DualAscent::State::high, &DualAscent::State::lowest,
    &DualAscent::State::highest, &DualAscent::State::gap,  &DualAscent::State::dual,
    &DualAscent::State::live,    &DualAscent::State::share};

nb::dict pack(const DualAscent::State& state) {
  const std::size_t width = state.low.size();
  std::vector<double> lanes;
  for (const auto lane : kLanes)
    lanes.insert(lanes.end(), (state.*lane).begin(), (state.*lane).end());
  nb::dict out;
  out["weights"] = as_numpy(state.weights, state.weights.size() / width);
  out["coefficients"] = as_numpy(state.coefficients);
  out["order"] = as_numpy(state.order);
  out["lanes"] = as_numpy(std::move(lanes), std::size(kLanes));
  out["phase"] = static_cast<std::int64_t>(state.phase);
  out["next"] = state.next;
  out["active"] = state.active;
  out["moved"] = state.moved;
  out["passes"] = state.passes;
  out["random"] = as_numpy(std::vector<std::uint64_t>{state.random});
  out["is_stuck"] = state.is_stuck;
  out["is_exact"] = state.is_exact;
  return out;
}

DualAscent::State unpack(const nb::dict& packed, std::size_t width) {
  DualAscent::State out;
  const auto weights = part<Array2<const double>>(packed, "weights");
  out.weights.assign(weights.data(), weights.data() + weights.size());
  out.coefficients = numbers<double>(packed, "coefficients");
  out.order = numbers<std::int32_t>(packed, "order");
  const auto lanes = part<Array2<const double>>(packed, "lanes");
  require(lanes.shape(0) == std::size(kLanes) && lanes.shape(1) == width,
          "a part of the state of a solver is of another length");
  for (std::size_t k = 0; k < std::size(kLanes); ++k) {
    (out.*kLanes[k]).assign(lanes.data() + k * width, lanes.data() + (k + 1) * width);
  }
  out.phase = static_cast<DualAscent::Phase>(part<std::int64_t>(packed, "phase"));
  out.next = part<std::int64_t>(packed, "next");
  out.active = part<std::int64_t>(packed, "active");
  out.moved = part<std::int64_t>(packed, "moved");
  out.passes = part<std::int64_t>(packed, "passes");
  const auto random = numbers<std::uint64_t>(packed, "random");
  require(random.size() == 1, "a part of the state of a solver is of another length");
  out.random = random[0];
  out.is_stuck = part<bool>(packed, "is_stuck");
  out.is_exact = part<bool>(packed, "is_exact");
  return out;
}

// Rows with the constant feature, their squared lengths and caps.
template <class Rows>
auto rows_with(const Rows& rows, double constant, const Array1<const double>& squares,
               const Array1<const double>& caps) {
  auto out = view(rows);
  require(squares.shape(0) == out.rows && caps.shape(0) == out.rows, "rows differ");
  out.constant = constant;
  out.squares = squares.data();
  out.caps = caps.data();
  return out;
}

void require_problem(const std::vector<DualAscent*>& blocks, std::size_t rows,
                     std::size_t columns) {
  for (const DualAscent* block : blocks) {
    require(block->problem().rows == rows && block->problem().columns == columns,
            "a block of labels is of other rows");
  }
}

template <class Rows>
void bind_work(nb::module_& m) {
  m.def(
      "ascend_labels",
      [](const std::vector<DualAscent*>& blocks, const Rows& rows, double constant,
         Array1<const double> squares, Array1<const double> caps, double tol,
         std::int64_t max_passes, std::uint64_t most_entries, int n_threads) {
        const auto all = rows_with(rows, constant, squares, caps);
        require_problem(blocks, all.rows, all.columns);
        nb::gil_scoped_release unlocked;
        for_each_index(blocks.size(), n_threads,
                       [&](std::size_t b) { blocks[b]->work(all, tol, max_passes, most_entries); });
      },
      "blocks"_a, "rows"_a.noconvert(), "constant"_a, "squares"_a.noconvert(), "caps"_a.noconvert(),
      "tol"_a, "max_passes"_a, "most_entries"_a, "n_threads"_a);
  m.def(
      "label_gaps",
      [](const std::vector<DualAscent*>& blocks, const Rows& rows, double constant,
         Array1<const double> squares, Array1<const double> caps, int n_threads) {
        const auto all = rows_with(rows, constant, squares, caps);
        require_problem(blocks, all.rows, all.columns);
        std::vector<std::vector<double>> gaps(blocks.size());
        {
          nb::gil_scoped_release unlocked;
          for_each_index(blocks.size(), n_threads,
                         [&](std::size_t b) { gaps[b] = blocks[b]->find_gaps(all); });
        }
        std::vector<double> out;
        for (const auto& each : gaps) out.insert(out.end(), each.begin(), each.end());
        return as_numpy(std::move(out));
      },
      "blocks"_a, "rows"_a.noconvert(), "constant"_a, "squares"_a.noconvert(), "caps"_a.noconvert(),
      "n_threads"_a);
}

}  // namespace

void bind_dual_ascent(nb::module_& m) {
  m.attr("LABELS_AT_ONCE") = kLabelsAtOnce;
  nb::class_<DualAscent>(m, "DualAscent")
      .def(
          "__init__",
          [](DualAscent* self, Array2<const std::uint8_t> signs, std::size_t columns,
             Array1<const double> with_label, Array1<const double> without_label,
             Array1<const double> scale, std::optional<Array2<const double>> prior,
             std::optional<Array2<const double>> margins, std::uint64_t seed) {
            new (self) DualAscent(
                problem_of(signs, columns, with_label, without_label, scale, prior, margins), seed);
          },
          "signs"_a.noconvert(), "columns"_a, "with_label"_a.noconvert(),
          "without_label"_a.noconvert(), "scale"_a.noconvert(), "prior"_a.noconvert().none(),
          "margins"_a.noconvert().none(), "seed"_a)
      .def_prop_ro("is_done", &DualAscent::is_done)
      .def_prop_ro("is_stuck", [](const DualAscent& self) { return self.state().is_stuck; })
      .def_prop_ro("is_exact", [](const DualAscent& self) { return self.state().is_exact; })
      .def_prop_ro("passes", [](const DualAscent& self) { return self.state().passes; })
      .def_prop_ro("labels", [](const DualAscent& self) { return self.problem().labels; })
      .def_prop_ro("active",
                   [](const DualAscent& self) { return self.is_done() ? 0 : self.state().active; })
      // What is known of each label: the dual objective, and the gap where it is done.
      .def_prop_ro(
          "duals",
          [](const DualAscent& self) {
            const std::vector<double>& dual = self.state().dual;
            return as_numpy(std::vector<double>(
                dual.begin(), dual.begin() + static_cast<std::ptrdiff_t>(self.problem().labels)));
          })
      .def_prop_ro(
          "gaps",
          [](const DualAscent& self) {
            const std::vector<double>& gap = self.state().gap;
            return as_numpy(std::vector<double>(
                gap.begin(), gap.begin() + static_cast<std::ptrdiff_t>(self.problem().labels)));
          })
      // Of all features and the constant one: (columns + 1) x labels.
      .def("weights",
           [](const DualAscent& self) {
             const std::size_t labels = self.problem().labels, width = DualAscent::padded(labels);
             std::vector<double> out((self.problem().columns + 1) * labels);
             for (std::size_t f = 0; f * labels < out.size(); ++f) {
               std::copy_n(self.state().weights.begin() + static_cast<std::ptrdiff_t>(f * width),
                           labels, out.begin() + static_cast<std::ptrdiff_t>(f * labels));
             }
             return as_numpy(std::move(out), self.problem().columns + 1);
           })
      .def("snapshot", [](const DualAscent& self) { return pack(self.state()); })
      .def(
          "take_on",
          [](DualAscent& self, const nb::dict& packed) {
            self.restore(unpack(packed, DualAscent::padded(self.problem().labels)));
          },
          "packed"_a);
  bind_work<Array2<const float>>(m);
  bind_work<Array2<const double>>(m);
  bind_work<CsrArrays<float>>(m);
  bind_work<CsrArrays<double>>(m);
}

}  // namespace widemargin::bindings

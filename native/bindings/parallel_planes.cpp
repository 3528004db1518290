#include "widemargin/parallel_planes.hpp"

#include <algorithm>
#include <utility>

#include "arrays.hpp"
#include "keeping.hpp"
#include "packing.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

using HeldPlanes = Keeping<ParallelPlanes>;  // keeps its kernel

// Numbers from 0 to the largest, each of which is there.
std::vector<std::size_t> numbered(const Array1<const std::int64_t>& numbers, const char* message) {
  std::vector<std::size_t> found;
  std::vector<bool> seen(numbers.shape(0));
  for (std::size_t i = 0; i < numbers.shape(0); ++i) {
    const std::int64_t number = numbers.data()[i];
    require(number >= 0 && static_cast<std::size_t>(number) < seen.size(), message);
    found.push_back(static_cast<std::size_t>(number));
    seen[found.back()] = true;
  }
  require(std::is_partitioned(seen.begin(), seen.end(), [](bool each) { return each; }), message);
  return found;
}

void make(HeldPlanes* self, nb::object kernel, Array2<const std::int8_t> signs,
          Array2<const double> caps, Array1<const std::int64_t> thresholds,
          Array1<const std::int64_t> machines, std::size_t cache_bytes, int n_threads) {
  const std::size_t copies = signs.shape(0), rows = signs.shape(1);
  require(copies > 0 && rows > 0, "there is nothing to learn");
  require(caps.shape(0) == copies && caps.shape(1) == rows, "caps are not one a copy and row");
  require(thresholds.shape(0) == copies, "thresholds are not one a copy");
  require(std::all_of(signs.data(), signs.data() + signs.size(),
                      [](std::int8_t each) { return each == 1 || each == -1; }),
          "signs are not 1 or -1");
  PlanesProblem problem{rows,
                        {signs.data(), signs.data() + signs.size()},
                        {caps.data(), caps.data() + caps.size()},
                        numbered(thresholds, "thresholds are not numbered"),
                        numbered(machines, "machines are not numbered")};
  const std::size_t most = *std::max_element(problem.thresholds.begin(), problem.thresholds.end());
  require(machines.shape(0) == most + 1, "machines are not one a threshold");
  SlotKernel& native = nb::cast<SlotKernel&>(kernel);
  {
    nb::gil_scoped_release unlocked;
    new (self) HeldPlanes(native, std::move(problem), cache_bytes, n_threads);
  }
  self->kept = std::move(kernel);
}

}  // namespace

void bind_parallel_planes(nb::module_& m) {
  nb::class_<HeldPlanes>(m, "ParallelPlanes", collected<HeldPlanes>())
      .def("__init__", &make, "kernel"_a, "signs"_a.noconvert(), "caps"_a.noconvert(),
           "thresholds"_a.noconvert(), "machines"_a.noconvert(), "cache_bytes"_a, "n_threads"_a)
      .def(
          "move",
          [](HeldPlanes& planes, std::uint64_t most_steps) {
            ParallelPlanes::Moved moved;
            {
              nb::gil_scoped_release unlocked;
              moved = planes.move(most_steps);
            }
            return nb::make_tuple(moved.steps, moved.gain);
          },
          "most_steps"_a)
      .def("look",
           [](const HeldPlanes& planes) {
             ParallelPlanes::Standing found;
             {
               nb::gil_scoped_release unlocked;
               found = planes.look();
             }
             return nb::make_tuple(found.gap, found.dual);
           })
      .def("intercepts", [](const HeldPlanes& planes) { return as_numpy(planes.intercepts()); })
      .def("coefficients",
           [](const HeldPlanes& planes) {
             const auto found = planes.coefficients();
             return as_numpy(std::vector<double>(found.begin(), found.end()), planes.n_copies());
           })
      .def("scores",
           [](const HeldPlanes& planes) {
             std::vector<double> found(planes.n_machines() * planes.n_rows());
             planes.copy_scores(found.data());
             return as_numpy(std::move(found), planes.n_machines());
           })
      .def(
          "put",
          [](HeldPlanes& planes, Array2<const double> coefficients, Array2<const double> scores) {
            require(coefficients.shape(0) == planes.n_copies() &&
                        coefficients.shape(1) == planes.n_rows(),
                    "coefficients have another shape");
            require(scores.shape(0) == planes.n_machines() && scores.shape(1) == planes.n_rows(),
                    "scores have another shape");
            planes.put({coefficients.data(), coefficients.size()}, {scores.data(), scores.size()});
          },
          "coefficients"_a.noconvert(), "scores"_a.noconvert())
      .def("supports",
           [](const HeldPlanes& planes) {
             const ParallelPlanes::Supports found = planes.supports();
             return nb::make_tuple(found.vectors, found.patterns);
           })
      .def_prop_ro("kernel_evaluations",
                   [](const HeldPlanes& planes) { return planes.computed(); });
}

}  // namespace widemargin::bindings

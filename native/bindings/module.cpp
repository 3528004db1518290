#include <nanobind/nanobind.h>

#include "scipy_blas.hpp"
#include "widemargin/parallel.hpp"
#include "widemargin/vector_code.hpp"

namespace widemargin::bindings {
void bind_dual_ascent(nanobind::module_& m);
void bind_duals(nanobind::module_& m);
void bind_label_box(nanobind::module_& m);
void bind_parallel_planes(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
void bind_predictors(nanobind::module_& m);
void bind_passes(nanobind::module_& m);
void bind_subgradient(nanobind::module_& m);
void bind_units(nanobind::module_& m);
void bind_unit_steps(nanobind::module_& m);
}  // namespace widemargin::bindings

NB_MODULE(_native, m) {
  m.doc() = "Hot loops of widemargin. Private: arguments are checked for shape and type only.";
  widemargin::bindings::scipy_blas();  // fails at import, not in the middle of a fit
  m.attr("instruction_set") = widemargin::instruction_sets().front()->name;
  widemargin::bindings::bind_kernels(m);
  widemargin::bindings::bind_duals(m);
  widemargin::bindings::bind_label_box(m);
  widemargin::bindings::bind_parallel_planes(m);
  widemargin::bindings::bind_dual_ascent(m);
  widemargin::bindings::bind_predictors(m);
  widemargin::bindings::bind_passes(m);
  widemargin::bindings::bind_subgradient(m);
  widemargin::bindings::bind_units(m);
  widemargin::bindings::bind_unit_steps(m);
}

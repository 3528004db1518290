#include "scipy_blas.hpp"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace widemargin::bindings {
namespace {

template <class Function>
void load(const nb::dict& exported, const char* name, Function& out) {
  // The capsule is named by the C signature, which spells SciPy's own type names: it is read back,
  // not compared.
  const nb::object capsule = exported[name];
  const char* signature = PyCapsule_GetName(capsule.ptr());
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), signature);
  if (pointer == nullptr) nb::raise_python_error();
  out = reinterpret_cast<Function>(pointer);
}

Blas load_all() {
  const nb::dict blas = nb::module_::import_("scipy.linalg.cython_blas").attr("__pyx_capi__");
  const nb::dict lapack = nb::module_::import_("scipy.linalg.cython_lapack").attr("__pyx_capi__");
  Blas routines;
  load(blas, "sgemm", routines.sgemm);
  load(blas, "dgemm", routines.dgemm);
  load(blas, "ssyrk", routines.ssyrk);
  load(blas, "dsyrk", routines.dsyrk);
  load(blas, "dtrsm", routines.dtrsm);
  load(lapack, "dpotrf", routines.dpotrf);
  load(lapack, "dpotrs", routines.dpotrs);
  return routines;
}

}  // namespace

const Blas& scipy_blas() {
  static const Blas routines = load_all();
  return routines;
}

}  // namespace widemargin::bindings

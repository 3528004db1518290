#pragma once

#include "widemargin/blas.hpp"

namespace widemargin::bindings {

// BLAS and LAPACK as SciPy exports them to Cython: function pointers in capsules.
const Blas& scipy_blas();

}  // namespace widemargin::bindings

#include "widemargin/kernels.hpp"

#include <nanobind/stl/variant.h>

#include <variant>
#include <vector>

#include "arrays.hpp"
#include "parameters.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

// Raises unless out fits, and the basis is the one that an adaptive kernel belongs to.
template <class Rows, class Basis, class T>
void check_block(const AnyKernel& kernel, const Rows& rows, const Basis& basis,
                 const Matrix<T>& out) {
  require(rows.columns == basis.columns, "rows and basis differ in features");
  require(out.rows == rows.rows && out.columns == basis.rows, "out has the wrong shape");
  if (const auto* adaptive = std::get_if<AdaptiveRbfKernel>(&kernel)) {
    require(adaptive->widths.size() == basis.rows, "widths and basis differ in vectors");
  }
}

template <class T>
Matrix<const T> view(const Array2<const T>& rows) {
  return as_matrix(rows);
}
template <class T>
SparseMatrix<T> view(const CsrArrays<T>& rows) {
  return rows.view();
}

template <class T, class Rows, class Basis>
void bind_block(nb::module_& m) {
  m.def(
      "kernel_block",
      [](const AnyKernel& kernel, const Rows& rows, const Basis& basis, Array2<T> out,
         int n_threads) {
        const auto left = view(rows);
        const auto right = view(basis);
        check_block(kernel, left, right, as_matrix(out));
        nb::gil_scoped_release unlocked;
        kernel_block(kernel, left, right, as_matrix(out), n_threads);
      },
      "kernel"_a, "rows"_a.noconvert(), "basis"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

template <class In, class T>
void bind_blocks(nb::module_& m) {
  bind_block<T, Array2<const In>, Array2<const In>>(m);
  bind_block<T, CsrArrays<In>, Array2<const In>>(m);
  bind_block<T, CsrArrays<In>, CsrArrays<In>>(m);
}

std::vector<double> as_vector(const Array1<const double>& array) {
  return {array.data(), array.data() + array.shape(0)};
}

void bind_adaptive(nb::module_& m) {
  nb::class_<AdaptiveRbfKernel>(m, "AdaptiveRBFKernel")
      .def(
          "__init__",
          [](AdaptiveRbfKernel* self, Array1<const double> widths, Array1<const double> weights,
             Array2<const double> map) {
            new (self) AdaptiveRbfKernel{as_vector(widths),
                                         as_vector(weights),
                                         {map.data(), map.data() + map.shape(0) * map.shape(1)},
                                         map.shape(1)};
          },
          "widths"_a.noconvert(), "weights"_a.noconvert(), "map"_a.noconvert());
}

template <class T>
void bind_csr(nb::module_& m, const char* name) {
  nb::class_<CsrArrays<T>>(m, name).def(
      "__init__",
      [](CsrArrays<T>* self, Array1<const T> values, Array1<const std::int32_t> indices,
         Array1<const std::int64_t> starts, std::size_t columns) {
        require(starts.shape(0) >= 1, "row starts are empty");
        require(values.shape(0) == indices.shape(0), "values and indices differ in length");
        require(starts.data()[starts.shape(0) - 1] <= static_cast<std::int64_t>(values.shape(0)),
                "row starts point past the values");
        for (std::size_t i = 0; i + 1 < starts.shape(0); ++i) {
          require(0 <= starts.data()[i] && starts.data()[i] <= starts.data()[i + 1],
                  "row starts do not rise");
        }
        for (std::size_t e = 0; e < indices.shape(0); ++e) {
          require(indices.data()[e] >= 0 && static_cast<std::size_t>(indices.data()[e]) < columns,
                  "a column index is out of range");
        }
        new (self) CsrArrays<T>{values, indices, starts, columns};
      },
      "values"_a.noconvert(), "indices"_a.noconvert(), "starts"_a.noconvert(), "columns"_a);
}

}  // namespace

void bind_kernels(nb::module_& m) {
  bind_csr<float>(m, "CsrFloat32");
  bind_csr<double>(m, "CsrFloat64");
  nb::list names;
  Kernels::for_each([&]<class Kernel>() {
    bind_owner<Kernel>(m);
    names.append(Kernel::name);
  });
  m.attr("KERNELS") = nb::tuple(names);
  bind_adaptive(m);

  bind_blocks<float, float>(m);
  bind_blocks<double, double>(m);
  bind_blocks<double, float>(m);
  bind_blocks<float, double>(m);
}

}  // namespace widemargin::bindings

#include "widemargin/kernels.hpp"

#include "arrays.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

template <class Kernel, class In, class T>
void bind_blocks(nb::module_& m) {
  m.def(
      "kernel_block",
      [](const Kernel& kernel, Array2<const In> rows, Array2<const In> basis, Array2<T> out,
         int n_threads) {
        require(rows.shape(1) == basis.shape(1), "rows and basis differ in features");
        require(out.shape(0) == rows.shape(0) && out.shape(1) == basis.shape(0),
                "out has the wrong shape");
        nb::gil_scoped_release unlocked;
        kernel_block<T>(kernel, as_matrix(rows), as_matrix(basis), as_matrix(out), n_threads);
      },
      "kernel"_a, "rows"_a.noconvert(), "basis"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
  m.def(
      "kernel_block",
      [](const Kernel& kernel, const CsrArrays<In>& rows, Array2<const In> basis, Array2<T> out,
         int n_threads) {
        require(rows.columns == basis.shape(1), "rows and basis differ in features");
        const SparseMatrix<In> left = rows.view();
        require(out.shape(0) == left.rows && out.shape(1) == basis.shape(0),
                "out has the wrong shape");
        nb::gil_scoped_release unlocked;
        kernel_block<T>(kernel, left, as_matrix(basis), as_matrix(out), n_threads);
      },
      "kernel"_a, "rows"_a, "basis"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
  m.def(
      "kernel_block",
      [](const Kernel& kernel, const CsrArrays<In>& rows, const CsrArrays<In>& basis, Array2<T> out,
         int n_threads) {
        require(rows.columns == basis.columns, "rows and basis differ in features");
        const SparseMatrix<In> left = rows.view(), right = basis.view();
        require(out.shape(0) == left.rows && out.shape(1) == right.rows, "out has the wrong shape");
        nb::gil_scoped_release unlocked;
        kernel_block<T>(kernel, left, right, as_matrix(out), n_threads);
      },
      "kernel"_a, "rows"_a, "basis"_a, "out"_a.noconvert(), "n_threads"_a);
}

template <class In, class T>
void bind_values(nb::module_& m) {
  const auto check = [](const auto& rows, const auto& basis, const auto& out,
                        const AdaptiveRbfKernel& kernel) {
    require(rows.columns == basis.columns, "rows and basis differ in features");
    require(kernel.widths.size() == basis.rows, "widths and basis differ in vectors");
    require(out.rows == rows.rows && out.columns == basis.rows, "out has the wrong shape");
  };
  m.def(
      "kernel_block",
      [check](const AdaptiveRbfKernel& kernel, Array2<const In> rows, Array2<const In> basis,
              Array2<T> out, int n_threads) {
        check(as_matrix(rows), as_matrix(basis), as_matrix(out), kernel);
        nb::gil_scoped_release unlocked;
        kernel_values(AnyKernel(kernel), as_matrix(rows), as_matrix(basis), as_matrix(out),
                      n_threads);
      },
      "kernel"_a, "rows"_a.noconvert(), "basis"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
  m.def(
      "kernel_block",
      [check](const AdaptiveRbfKernel& kernel, const CsrArrays<In>& rows, Array2<const In> basis,
              Array2<T> out, int n_threads) {
        check(rows.view(), as_matrix(basis), as_matrix(out), kernel);
        nb::gil_scoped_release unlocked;
        kernel_values(AnyKernel(kernel), rows.view(), as_matrix(basis), as_matrix(out), n_threads);
      },
      "kernel"_a, "rows"_a, "basis"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

std::vector<double> as_vector(const Array1<const double>& array) {
  return {array.data(), array.data() + array.shape(0)};
}

void bind_adaptive(nb::module_& m) {
  nb::class_<AdaptiveRbfKernel>(m, "AdaptiveRbfKernel")
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
  bind_values<float, float>(m);
  bind_values<double, double>(m);
  bind_values<double, float>(m);
  bind_values<float, double>(m);
}

template <class Kernel>
void bind_kernel(nb::module_& m) {
  bind_blocks<Kernel, float, float>(m);
  bind_blocks<Kernel, double, double>(m);
  bind_blocks<Kernel, double, float>(m);
  bind_blocks<Kernel, float, double>(m);
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
  nb::class_<LinearKernel>(m, "LinearKernel").def(nb::init<>());
  nb::class_<PolynomialKernel>(m, "PolynomialKernel")
      .def(nb::init<double, double, int>(), "gamma"_a, "coef0"_a, "degree"_a);
  nb::class_<SigmoidKernel>(m, "SigmoidKernel")
      .def(nb::init<double, double>(), "gamma"_a, "coef0"_a);
  nb::class_<RbfKernel>(m, "RbfKernel").def(nb::init<double>(), "gamma"_a);
  nb::class_<LaplacianKernel>(m, "LaplacianKernel").def(nb::init<double>(), "gamma"_a);

  bind_adaptive(m);
  bind_kernel<LinearKernel>(m);
  bind_kernel<PolynomialKernel>(m);
  bind_kernel<SigmoidKernel>(m);
  bind_kernel<RbfKernel>(m);
  bind_kernel<LaplacianKernel>(m);
}

}  // namespace widemargin::bindings

#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <variant>

#include "arrays.hpp"
#include "widemargin/predictor.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

// The row of a NumPy array of floats, taken by its buffer: an ndarray argument would cost as much
// as the prediction.
class FloatRow {
 public:
  explicit FloatRow(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FORMAT | PyBUF_ND) != 0) {
      PyErr_Clear();  // no buffer, or not contiguous: for the caller to convert
      return;
    }
    held_ = true;
    if (view_.ndim == 1 && view_.format != nullptr) {
      if (is_one<float>("f")) single_ = static_cast<const float*>(view_.buf);
      if (is_one<double>("d")) twofold_ = static_cast<const double*>(view_.buf);
    }
  }
  ~FloatRow() {
    if (held_) PyBuffer_Release(&view_);
  }
  FloatRow(const FloatRow&) = delete;
  FloatRow& operator=(const FloatRow&) = delete;

  bool is_float() const { return single_ != nullptr || twofold_ != nullptr; }
  std::size_t size() const { return static_cast<std::size_t>(view_.shape[0]); }

  template <class Use>
  auto visit(const Use& use) const {
    return single_ != nullptr ? use(contiguous(single_, 1, size()))
                              : use(contiguous(twofold_, 1, size()));
  }

 private:
  template <class T>
  bool is_one(const char* format) const {
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(view_.buf) % alignof(T) == 0;
    return std::strcmp(view_.format, format) == 0 && is_aligned;
  }

  Py_buffer view_{};
  bool held_ = false;
  const float* single_ = nullptr;
  const double* twofold_ = nullptr;
};

template <class T>
std::int64_t best_of_one(const Predictor<T>& predictor, nb::handle x, bool check, bool single) {
  const FloatRow row(x);
  if (!row.is_float()) return -1;
  if (row.size() != predictor.features()) {
    throw nb::value_error(("A row must have " + std::to_string(predictor.features()) +
                           " features, got " + std::to_string(row.size()) + ".")
                              .c_str());
  }
  std::int64_t best = 0;
  const auto bad = row.visit(
      [&](auto rows) { return predictor.best(rows, &best, /*n_threads=*/1, check, single); });
  return bad < 0 ? best : -1;
}

template <class Out, class T, class Input, class View>
void bind_scores(nb::class_<Predictor<T>>& predictor, const View& view) {
  predictor.def(
      "scores",
      [view](const Predictor<T>& self, const Input& input, Array2<Out> out, int n_threads,
             bool check) {
        const auto rows = view(input);
        require(rows.columns == self.features(), "rows have other features than the predictor");
        require(out.shape(0) == rows.rows && out.shape(1) == self.outputs(),
                "out has the wrong shape");
        nb::gil_scoped_release unlocked;
        return self.scores(rows, as_matrix(out), n_threads, check);
      },
      "rows"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a, "check"_a);
}

template <class T, class Input, class View>
void bind_rows(nb::class_<Predictor<T>>& predictor, const View& view) {
  bind_scores<float, T, Input>(predictor, view);
  bind_scores<double, T, Input>(predictor, view);
  predictor.def(
      "best",
      [view](const Predictor<T>& self, const Input& input, Array1<std::int64_t> out, int n_threads,
             bool check, bool single) {
        const auto rows = view(input);
        require(rows.columns == self.features(), "rows have other features than the predictor");
        require(out.shape(0) == rows.rows, "out has the wrong length");
        nb::gil_scoped_release unlocked;
        return self.best(rows, out.data(), n_threads, check, single);
      },
      "rows"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a, "check"_a, "single"_a);
}

template <class T>
void bind_predictor(nb::module_& m, const char* name) {
  nb::class_<Predictor<T>> predictor(m, name);
  predictor.def(
      "__init__",
      [](Predictor<T>* self, Array2<const double> coef, Array1<const double> intercept) {
        require(coef.shape(1) == intercept.shape(0), "coef and intercept differ in outputs");
        new (self) Predictor<T>(as_matrix(coef), as_span(intercept), *instruction_sets().front());
      },
      "coef"_a.noconvert(), "intercept"_a.noconvert());
  predictor.def(
      "__init__",
      [](Predictor<T>* self, const AnyKernel& kernel, Array2<const double> basis,
         Array2<const double> coef, Array1<const double> intercept,
         std::optional<Array2<const double>> linear) {
        require(coef.shape(1) == intercept.shape(0), "coef and intercept differ in outputs");
        require(coef.shape(0) == basis.shape(0), "basis and coef differ in vectors");
        require(!linear ||
                    (linear->shape(0) == basis.shape(1) && linear->shape(1) == intercept.shape(0)),
                "linear is of another shape");
        if (const auto* adaptive = std::get_if<AdaptiveRbfKernel>(&kernel)) {
          require(adaptive->widths.size() == basis.shape(0), "basis and widths differ in vectors");
          require(adaptive->weights.empty() || adaptive->weights.size() == basis.shape(1),
                  "weights and basis differ in features");
          require(adaptive->map.size() ==
                      (adaptive->map.empty() ? 0 : basis.shape(1) * adaptive->mapped),
                  "map and basis differ in features");
        }
        new (self) Predictor<T>(kernel, as_matrix(basis), as_matrix(coef), as_span(intercept),
                                *instruction_sets().front(),
                                linear ? as_matrix(*linear) : Matrix<const double>{});
      },
      "kernel"_a, "basis"_a.noconvert(), "coef"_a.noconvert(), "intercept"_a.noconvert(),
      "linear"_a.noconvert() = nb::none());
  predictor.def(
      "replace",
      [](Predictor<T>& self, Array1<const std::int64_t> places, Array2<const double> vectors,
         Array2<const double> coef, Array1<const double> intercept) {
        require(vectors.shape(0) == places.shape(0) && coef.shape(0) == places.shape(0) &&
                    vectors.shape(1) == self.features() && coef.shape(1) == self.outputs() &&
                    intercept.shape(0) == self.outputs(),
                "arrays have the wrong shape");
        for (std::size_t i = 0; i < places.shape(0); ++i) {
          require(
              places.data()[i] >= 0 && static_cast<std::size_t>(places.data()[i]) < self.vectors(),
              "no such vector");
        }
        for (std::size_t i = 0; i < places.shape(0); ++i) {
          self.replace(static_cast<std::size_t>(places.data()[i]),
                       {vectors.data() + i * vectors.shape(1), vectors.shape(1)},
                       {coef.data() + i * coef.shape(1), coef.shape(1)});
        }
        self.replace_intercept(as_span(intercept));
      },
      "places"_a.noconvert(), "vectors"_a.noconvert(), "coef"_a.noconvert(),
      "intercept"_a.noconvert());
  predictor.def_prop_ro("products_per_row", &Predictor<T>::products_per_row);
  predictor.def_prop_ro("by_entries", &Predictor<T>::by_entries);
  predictor.def("best_of_one", &best_of_one<T>, "x"_a.none(), "check"_a, "single"_a);
  bind_rows<T, Array2<const float>>(predictor, as_matrix<const float>);
  bind_rows<T, Array2<const double>>(predictor, as_matrix<const double>);
  bind_rows<T, CsrArrays<float>>(predictor,
                                 [](const CsrArrays<float>& rows) { return rows.view(); });
  bind_rows<T, CsrArrays<double>>(predictor,
                                  [](const CsrArrays<double>& rows) { return rows.view(); });
}

}  // namespace

void bind_predictors(nb::module_& m) {
  bind_predictor<float>(m, "PredictorFloat32");
  bind_predictor<double>(m, "PredictorFloat64");
}

}  // namespace widemargin::bindings

#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <string>
#include <vector>

#include "arrays.hpp"
#include "keeping.hpp"
#include "snapshots.hpp"

namespace widemargin::bindings {
namespace {

using namespace nb::literals;

using RowNumbers = Array1<const std::int64_t>;
using Labels = Array1<const std::int32_t>;
using Caps = Array1<const double>;

using HeldSlots = Keeping<DenseSlots>;  // keeps the rows that it points to
using HeldSet = Keeping<ZeroSumSet>;    // keeps its kernel

struct PythonSlots : CalledSlots {
  // Functions of Python: put(slot, row), values(left slots, right slots) -> array, diagonal(slot).
  PythonSlots(nb::callable put, nb::callable values, nb::callable diagonal, std::size_t products);
  nb::callable put, values, diagonal;
};

int visit_kept(const PythonSlots& self, visitproc visit, void* arg) {
  Py_VISIT(self.put.ptr());
  Py_VISIT(self.values.ptr());
  Py_VISIT(self.diagonal.ptr());
  return 0;
}

template <class Rows>
void use_dense(HeldSlots& slots, Array2<const Rows> rows, nb::object owner) {
  require(rows.shape(1) == slots.features(), "rows have other features than the slots");
  slots.use_batch(as_matrix(rows));
  slots.kept = std::move(owner);
}

template <class T>
void use_sparse(HeldSlots& slots, const CsrArrays<T>& rows, nb::object owner) {
  require(rows.columns == slots.features(), "rows have other features than the slots");
  slots.use_batch(rows.view());
  slots.kept = std::move(owner);
}

template <class T>
void copy_kept(const HeldSlots& slots, RowNumbers numbers, Array2<T> out) {
  require(out.shape(0) == numbers.shape(0) && out.shape(1) == slots.features(),
          "out has the wrong shape");
  for (std::size_t i = 0; i < numbers.shape(0); ++i) {
    require(numbers.data()[i] >= 0, "there is no such slot");
  }
  slots.kept_rows(as_span(numbers), out.data());
}

nb::object as_numpy(std::span<const Slot> slots) {
  auto* values = new std::vector<std::int64_t>(slots.begin(), slots.end());
  nb::capsule owner(values,
                    [](void* p) noexcept { delete static_cast<std::vector<std::int64_t>*>(p); });
  return nb::cast(
      nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(values->data(), {values->size()}, owner));
}

PythonSlots::PythonSlots(nb::callable put_row, nb::callable block, nb::callable with_itself,
                         std::size_t products)
    : CalledSlots(
          [this](Slot slot, std::size_t row) {
            nb::gil_scoped_acquire locked;
            put(slot, row);
          },
          [this](std::span<const Slot> left, std::span<const Slot> right, float* out,
                 std::size_t stride) {
            nb::gil_scoped_acquire locked;
            const auto found =
                nb::cast<Array2<const float>>(values(as_numpy(left), as_numpy(right)));
            require(found.shape(0) == left.size() && found.shape(1) == right.size(),
                    "kernel values have the wrong shape");
            for (std::size_t i = 0; i < left.size(); ++i) {
              std::copy_n(found.data() + i * right.size(), right.size(), out + i * stride);
            }
          },
          [this](Slot slot) {
            nb::gil_scoped_acquire locked;
            return nb::cast<double>(diagonal(slot));
          },
          products),
      put(std::move(put_row)),
      values(std::move(block)),
      diagonal(std::move(with_itself)) {}

DualLoss loss_by_name(const std::string& name) {
  require(name == "crammer_singer" || name == "weston_watkins", "no such loss");
  return name == "crammer_singer" ? DualLoss::crammer_singer : DualLoss::weston_watkins;
}

Slot checked_slot(const ZeroSumSet& set, std::int64_t slot) {
  require(slot >= 0 && static_cast<std::size_t>(slot) < set.n_slots() &&
              set.is_held(static_cast<Slot>(slot)),
          "nobody lives in the slot");
  return static_cast<Slot>(slot);
}

void check_rows(const ZeroSumSet& set, const RowNumbers& rows, const Labels& labels,
                const Caps& caps) {
  require(labels.shape(0) == caps.shape(0), "labels and caps differ in length");
  for (std::size_t i = 0; i < rows.shape(0); ++i) {
    const std::int64_t row = rows.data()[i];
    require(row >= 0 && static_cast<std::size_t>(row) < labels.shape(0), "a row is not there");
    const std::int32_t label = labels.data()[row];
    require(label >= 0 && static_cast<std::size_t>(label) < set.n_classes(), "no such class");
  }
}

// Row i of both arrays: the coefficients of a slot, and what their average is made of.
void write_coefficients(const ZeroSumSet& set, Slot slot, std::size_t i, Array2<double>& values,
                        Array2<double>& earlier) {
  double* const value = values.data() + i * set.n_classes();
  double* const before = earlier.data() + i * set.n_classes();
  std::fill_n(value, set.n_classes(), 0.0);
  std::fill_n(before, set.n_classes(), 0.0);
  for (const auto& each : set.coefficients(slot)) {
    value[each.label] = each.value;
    before[each.label] = each.earlier;
  }
}

void export_supports(const HeldSet& set, Array1<std::int64_t> slots, Array1<std::int64_t> ids,
                     Array1<std::int32_t> labels, Array1<double> caps, Array2<double> values,
                     Array2<double> earlier) {
  const auto supports = set.supports();
  require(slots.shape(0) == supports.size() && ids.shape(0) == supports.size() &&
              labels.shape(0) == supports.size() && caps.shape(0) == supports.size() &&
              values.shape(0) == supports.size() && earlier.shape(0) == supports.size() &&
              values.shape(1) == set.n_classes() && earlier.shape(1) == set.n_classes(),
          "arrays have the wrong shape");
  for (std::size_t i = 0; i < supports.size(); ++i) {
    const Slot slot = supports[i];
    slots.data()[i] = slot;
    ids.data()[i] = set.id(slot);
    labels.data()[i] = static_cast<std::int32_t>(set.label(slot));
    caps.data()[i] = set.cap(slot);
    write_coefficients(set, slot, i, values, earlier);
  }
}

void bind_slots(nb::module_& m) {
  nb::class_<SlotKernel>(m, "SlotKernel");
  nb::class_<HeldSlots, SlotKernel>(m, "DenseSlots", collected<HeldSlots>())
      .def(
          "__init__",
          [](HeldSlots* self, const AnyKernel& kernel, Array1<const double> origin) {
            new (self) HeldSlots(kernel, {origin.data(), origin.data() + origin.shape(0)});
          },
          "kernel"_a, "origin"_a.noconvert())
      .def("use_batch", &use_dense<float>, "rows"_a.noconvert(), "owner"_a)
      .def("use_batch", &use_dense<double>, "rows"_a.noconvert(), "owner"_a)
      .def("use_batch", &use_sparse<float>, "rows"_a, "owner"_a)
      .def("use_batch", &use_sparse<double>, "rows"_a, "owner"_a)
      .def(
          "keep",
          [](HeldSlots& slots, RowNumbers numbers, RowNumbers rows) {
            require(numbers.shape(0) == rows.shape(0), "slots and rows differ in number");
            for (std::size_t i = 0; i < rows.shape(0); ++i) {
              const std::int64_t row = rows.data()[i];
              require(numbers.data()[i] >= 0 && row >= 0 &&
                          static_cast<std::size_t>(row) < slots.batch_rows(),
                      "a row is not there");
            }
            slots.keep(as_span(numbers), as_span(rows));
          },
          "slots"_a.noconvert(), "rows"_a.noconvert())
      .def("kept_rows", &copy_kept<float>, "slots"_a.noconvert(), "out"_a.noconvert())
      .def("kept_rows", &copy_kept<double>, "slots"_a.noconvert(), "out"_a.noconvert());
  nb::class_<PythonSlots, SlotKernel>(m, "CalledSlots", collected<PythonSlots>())
      .def(nb::init<nb::callable, nb::callable, nb::callable, std::size_t>(), "put"_a, "values"_a,
           "diagonal"_a, "products_per_value"_a);
}

void bind_support_set(nb::module_& m) {
  nb::class_<HeldSet>(m, "SupportSet", collected<HeldSet>())
      .def(
          "__init__",
          [](HeldSet* self, nb::object kernel, std::size_t n_classes, const std::string& loss,
             double margin, double offset, std::size_t cache_bytes, int n_threads) {
            new (self) HeldSet(nb::cast<SlotKernel&>(kernel), n_classes, loss_by_name(loss), margin,
                               offset, cache_bytes, n_threads);
            self->kept = std::move(kernel);
          },
          "kernel"_a, "n_classes"_a, "loss"_a, "margin"_a, "offset"_a, "cache_bytes"_a,
          "n_threads"_a)
      .def(
          "admit",
          [](HeldSet& set, RowNumbers rows, std::int64_t first_id, Labels labels, Caps caps) {
            check_rows(set, rows, labels, caps);
            std::vector<Slot> slots;
            {
              nb::gil_scoped_release unlocked;
              set.admit(as_span(rows), first_id, as_span(labels), as_span(caps), slots);
              set.release_staged();
            }
            return as_numpy(slots);
          },
          "rows"_a.noconvert(), "first_id"_a, "labels"_a.noconvert(), "caps"_a.noconvert())
      .def(
          "inspect",
          [](HeldSet& set, RowNumbers rows, std::int64_t first_id, Labels labels, Caps caps,
             double keep_above) {
            check_rows(set, rows, labels, caps);
            Inspection found;
            {
              nb::gil_scoped_release unlocked;
              found =
                  inspect(set, as_span(rows), first_id, as_span(labels), as_span(caps), keep_above);
            }
            return nb::make_tuple(found.loss, found.violation, found.kept);
          },
          "rows"_a.noconvert(), "first_id"_a, "labels"_a.noconvert(), "caps"_a.noconvert(),
          "keep_above"_a)
      .def(
          "add_constraints",
          [](HeldSet& set, RowNumbers rows, std::int64_t first_id, Labels labels, Caps caps,
             double epsilon) {
            check_rows(set, rows, labels, caps);
            nb::gil_scoped_release unlocked;
            return add_constraints(set, as_span(rows), first_id, as_span(labels), as_span(caps),
                                   epsilon);
          },
          "rows"_a.noconvert(), "first_id"_a, "labels"_a.noconvert(), "caps"_a.noconvert(),
          "epsilon"_a)
      .def("begin_inspection", &SupportSet::begin_inspection)
      .def("end_inspection", &SupportSet::end_inspection)
      .def(
          "release_satisfied",
          [](HeldSet& set, double keep_above) { return release_satisfied(set, keep_above); },
          "keep_above"_a)
      .def(
          "restore",
          [](HeldSet& set, RowNumbers slots, Array2<const double> values,
             Array2<const double> earlier) {
            require(values.shape(0) == slots.shape(0) && earlier.shape(0) == slots.shape(0) &&
                        values.shape(1) == set.n_classes() && earlier.shape(1) == set.n_classes(),
                    "arrays have the wrong shape");
            for (std::size_t i = 0; i < slots.shape(0); ++i) checked_slot(set, slots.data()[i]);
            nb::gil_scoped_release unlocked;
            const std::size_t k = set.n_classes();
            for (std::size_t i = 0; i < slots.shape(0); ++i) {
              set.restore(static_cast<Slot>(slots.data()[i]), {values.data() + i * k, k},
                          {earlier.data() + i * k, k});
            }
          },
          "slots"_a.noconvert(), "values"_a.noconvert(), "earlier"_a.noconvert())
      .def(
          "find",
          [](const HeldSet& set, RowNumbers ids, Array1<std::int64_t> slots) {
            require(ids.shape(0) == slots.shape(0), "ids and slots differ in length");
            for (std::size_t i = 0; i < ids.shape(0); ++i)
              slots.data()[i] = set.find(ids.data()[i]);
          },
          "ids"_a.noconvert(), "slots"_a.noconvert())
      .def(
          "add_class", [](HeldSet& set, std::size_t position) { set.add_class(position); },
          "position"_a)
      .def("release_all", [](HeldSet& set) { release_all(set); })
      .def("take_changed", [](HeldSet& set) { return as_numpy(set.take_changed()); })
      .def(
          "coefficients",
          [](const HeldSet& set, RowNumbers slots, Array2<double> values, Array2<double> earlier) {
            require(values.shape(0) == slots.shape(0) && earlier.shape(0) == slots.shape(0) &&
                        values.shape(1) == set.n_classes() && earlier.shape(1) == set.n_classes(),
                    "arrays have the wrong shape");
            for (std::size_t i = 0; i < slots.shape(0); ++i) {
              require(
                  slots.data()[i] >= 0 && static_cast<std::size_t>(slots.data()[i]) < set.n_slots(),
                  "no such slot");
              write_coefficients(set, static_cast<Slot>(slots.data()[i]), i, values, earlier);
            }
          },
          "slots"_a.noconvert(), "values"_a.noconvert(), "earlier"_a.noconvert())
      .def("export_supports", &export_supports, "slots"_a.noconvert(), "ids"_a.noconvert(),
           "labels"_a.noconvert(), "caps"_a.noconvert(), "values"_a.noconvert(),
           "earlier"_a.noconvert())
      .def("snapshot", [](const HeldSet& set) { return pack(set.snapshot(), set.n_classes()); })
      .def_static(
          "check_snapshot",
          [](const nb::dict& packed, std::size_t n_classes) {
            SupportSet::check(unpack_support_set(packed), n_classes);
          },
          "packed"_a, "n_classes"_a)
      .def(
          "take_on",
          [](HeldSet& set, const nb::dict& packed, RowNumbers rows, std::size_t n_rows) {
            const SupportSet::Snapshot snapshot = unpack_support_set(packed);
            require(rows.shape(0) == snapshot.held.size(), "rows are not one a slot");
            for (std::size_t i = 0; i < rows.shape(0); ++i) {
              const std::int64_t row = rows.data()[i];
              require(snapshot.held[i] == 0 || (row >= 0 && static_cast<std::size_t>(row) < n_rows),
                      "a row is not there");
            }
            nb::gil_scoped_release unlocked;
            set.restore(snapshot, as_span(rows));
          },
          "packed"_a, "rows"_a.noconvert(), "n_rows"_a)
      .def("gap",
           [](const HeldSet& set) {
             const ZeroSumSet::Gap found = set.gap();
             return nb::make_tuple(found.gap, found.dual);
           })
      .def_prop_ro("n_supports", [](const HeldSet& set) { return set.supports().size(); })
      .def_prop_ro("n_vectors", &SupportSet::n_vectors)
      .def_prop_ro("n_slots", &SupportSet::n_slots)
      .def_prop_ro("dual", &SupportSet::dual)
      .def_prop_ro("kernel_evaluations",
                   [](const HeldSet& set) { return set.kernel_rows().computed(); })
      .def_prop_ro("n_shifts", &SupportSet::n_shifts);
}

template <class Solver>
void take(Solver& solver, const HeldSet& set, RowNumbers rows, std::int64_t first_id, Labels labels,
          Caps caps) {
  check_rows(set, rows, labels, caps);
  nb::gil_scoped_release unlocked;
  solver.take(as_span(rows), first_id, as_span(labels), as_span(caps));
}

Budget make_budget(std::int64_t patterns, const std::string& policy, bool keeps_bounds) {
  Budget budget;
  if (patterns >= 0) budget.patterns = static_cast<std::size_t>(patterns);
  if (policy == "merge") {
    budget.policy = Budget::Policy::merge;
  } else if (policy == "redundant") {
    budget.policy = Budget::Policy::redundant;
  } else if (policy != "drop") {
    throw std::invalid_argument("widemargin: there is no such policy of a budget");
  }
  budget.keeps_bounds = keeps_bounds;
  return budget;
}

}  // namespace

void bind_duals(nb::module_& m) {
  using HeldLaRank = Keeping<LaRank>;  // solvers keep the set that they move
  using HeldSweeps = Keeping<RowSweeps>;
  using HeldLearner = Keeping<OnlineLearner>;
  bind_slots(m);
  bind_support_set(m);
  nb::class_<HeldLaRank>(m, "LaRank", collected<HeldLaRank>())
      .def(
          "__init__",
          [](HeldLaRank* self, nb::object set, double tau, double kappa, double eta, double mu,
             std::size_t candidates, bool old, bool optimize, std::int64_t budget,
             const std::string& policy, std::uint64_t seed) {
            new (self) HeldLaRank(nb::cast<HeldSet&>(set),
                                  {tau, kappa, eta, mu, candidates, {true, old, optimize}},
                                  make_budget(budget, policy, true), seed);
            self->kept = std::move(set);
          },
          "set"_a, "tau"_a, "kappa"_a, "eta"_a, "mu"_a, "candidates"_a, "old"_a, "optimize"_a,
          "budget"_a, "policy"_a, "seed"_a)
      .def("take", &take<HeldLaRank>, "set"_a, "rows"_a.noconvert(), "first_id"_a,
           "labels"_a.noconvert(), "caps"_a.noconvert())
      .def("snapshot", [](const HeldLaRank& solver) { return pack(solver.snapshot()); })
      .def(
          "take_on",
          [](HeldLaRank& solver, const nb::dict& packed) { solver.restore(unpack_larank(packed)); },
          "packed"_a)
      .def_prop_ro("arg_max", [](const HeldLaRank& solver) { return solver.counts().arg_max; })
      .def_prop_ro("loss", [](const HeldLaRank& solver) { return solver.counts().loss; })
      .def_prop_ro("operations", [](const HeldLaRank& solver) {
        const auto& each = solver.counts().operations;
        return nb::make_tuple(each[0], each[1], each[2]);
      });
  nb::class_<HeldSweeps>(m, "RowSweeps", collected<HeldSweeps>())
      .def(
          "__init__",
          [](HeldSweeps* self, nb::object set, bool working_sets, std::uint64_t seed) {
            new (self) HeldSweeps(
                nb::cast<HeldSet&>(set),
                working_sets ? ZeroSumSet::Scope::working_set : ZeroSumSet::Scope::all, seed);
            self->kept = std::move(set);
          },
          "set"_a, "working_sets"_a, "seed"_a)
      .def(
          "sweep",
          [](HeldSweeps& sweeps, double tol, std::uint64_t most_shifts) {
            RowSweeps::Result found;
            {
              nb::gil_scoped_release unlocked;
              found = sweeps.sweep(tol, most_shifts);
            }
            return nb::make_tuple(found.violation, found.gain, found.looked_at, found.is_over);
          },
          "tol"_a, "most_shifts"_a)
      .def(
          "conjugate_steps",
          [](HeldSweeps& sweeps, std::uint64_t most_shifts) {
            nb::gil_scoped_release unlocked;
            return sweeps.conjugate_steps(most_shifts);
          },
          "most_shifts"_a)
      .def("snapshot", [](const HeldSweeps& sweeps) { return pack(sweeps.snapshot()); })
      .def(
          "take_on",
          [](HeldSweeps& sweeps, const nb::dict& packed) {
            sweeps.restore(unpack_row_sweeps(packed));
          },
          "packed"_a);
  nb::class_<HeldLearner>(m, "OnlineLearner", collected<HeldLearner>())
      .def(
          "__init__",
          [](HeldLearner* self, nb::object set, bool mira, bool averages, std::int64_t budget,
             const std::string& policy) {
            const auto rule = mira ? OnlineLearner::Rule::mira : OnlineLearner::Rule::perceptron;
            new (self) HeldLearner(nb::cast<HeldSet&>(set), rule, averages,
                                   make_budget(budget, policy, false));
            self->kept = std::move(set);
          },
          "set"_a, "mira"_a, "averages"_a, "budget"_a, "policy"_a)
      .def("take", &take<HeldLearner>, "set"_a, "rows"_a.noconvert(), "first_id"_a,
           "labels"_a.noconvert(), "caps"_a.noconvert())
      .def("snapshot", [](const HeldLearner& learner) { return pack(learner.snapshot()); })
      .def(
          "take_on",
          [](HeldLearner& learner, const nb::dict& packed) {
            learner.restore(unpack_online(packed));
          },
          "packed"_a)
      .def_rw("rows_seen", &OnlineLearner::rows_seen)
      .def_ro("mistakes", &OnlineLearner::mistakes);
}

}  // namespace widemargin::bindings

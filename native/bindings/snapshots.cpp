#include "snapshots.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "packing.hpp"

namespace widemargin::bindings {
namespace {

template <class T, std::size_t n>
std::array<T, n> few_numbers(const nb::dict& packed, const char* name) {
  const auto found = part<Array1<const T>>(packed, name);
  require(found.shape(0) == n, "a part of the state of a solver is of another length");
  std::array<T, n> out;
  std::copy_n(found.data(), n, out.begin());
  return out;
}

nb::object pack_random(const Twister::State& state) {
  std::vector<std::uint64_t> words(state.words.begin(), state.words.end());
  words.push_back(state.next);
  return as_numpy(std::move(words));
}

Twister::State random_state(const nb::dict& packed) {
  const auto words = few_numbers<std::uint64_t, Twister::kWords + 1>(packed, "random");
  Twister::State state;
  std::copy_n(words.begin(), Twister::kWords, state.words.begin());
  state.next = static_cast<std::size_t>(words.back());
  return state;
}

}  // namespace

nb::dict pack(const SupportSet::Snapshot& snapshot, std::size_t n_classes) {
  nb::dict out;
  out["held"] = as_numpy(snapshot.held);
  out["ids"] = as_numpy(snapshot.ids);
  out["labels"] = as_numpy(snapshot.labels);
  out["caps"] = as_numpy(snapshot.caps);
  out["diagonals"] = as_numpy(snapshot.diagonals);
  out["ages"] = as_numpy(snapshot.ages);
  out["gradients"] = as_numpy(snapshot.gradients, n_classes);
  out["coefficient_slots"] = as_numpy(snapshot.coefficients.slots);
  out["coefficient_labels"] = as_numpy(snapshot.coefficients.labels);
  out["coefficient_places"] = as_numpy(snapshot.coefficients.places);
  out["coefficient_values"] = as_numpy(snapshot.coefficients.values);
  out["coefficient_earlier"] = as_numpy(snapshot.coefficients.earlier);
  out["working_slots"] = as_numpy(snapshot.working_sets.slots);
  out["working_labels"] = as_numpy(snapshot.working_sets.labels);
  out["supports"] = as_numpy(snapshot.supports);
  out["free"] = as_numpy(snapshot.free);
  out["admitted"] = snapshot.admitted;
  out["n_shifts"] = snapshot.n_shifts;
  out["n_computed"] = snapshot.n_computed;
  out["dual"] = snapshot.dual;
  out["moment"] = snapshot.moment;
  return out;
}

SupportSet::Snapshot unpack_support_set(const nb::dict& packed) {
  SupportSet::Snapshot out;
  out.held = numbers<std::uint8_t>(packed, "held");
  out.ids = numbers<std::int64_t>(packed, "ids");
  out.labels = numbers<std::int32_t>(packed, "labels");
  out.caps = numbers<double>(packed, "caps");
  out.diagonals = numbers<double>(packed, "diagonals");
  out.ages = numbers<std::uint64_t>(packed, "ages");
  const auto gradients = part<Array2<const double>>(packed, "gradients");
  require(gradients.shape(1) == out.held.size(), "gradients are not one a slot");
  out.gradients.assign(gradients.data(), gradients.data() + gradients.size());
  out.coefficients.slots = numbers<std::int32_t>(packed, "coefficient_slots");
  out.coefficients.labels = numbers<std::int32_t>(packed, "coefficient_labels");
  out.coefficients.places = numbers<std::int32_t>(packed, "coefficient_places");
  out.coefficients.values = numbers<double>(packed, "coefficient_values");
  out.coefficients.earlier = numbers<double>(packed, "coefficient_earlier");
  out.working_sets.slots = numbers<std::int32_t>(packed, "working_slots");
  out.working_sets.labels = numbers<std::int32_t>(packed, "working_labels");
  out.supports = numbers<std::int32_t>(packed, "supports");
  out.free = numbers<std::int32_t>(packed, "free");
  out.admitted = part<std::uint64_t>(packed, "admitted");
  out.n_shifts = part<std::uint64_t>(packed, "n_shifts");
  out.n_computed = part<std::uint64_t>(packed, "n_computed");
  out.dual = part<double>(packed, "dual");
  out.moment = part<double>(packed, "moment");
  return out;
}

nb::dict pack(const LaRank::Snapshot& snapshot) {
  nb::dict out;
  out["random"] = pack_random(snapshot.random);
  out["rates"] = as_numpy(std::vector<double>(snapshot.rates.begin(), snapshot.rates.end()));
  const auto& operations = snapshot.counts.operations;
  out["operations"] = as_numpy(std::vector<std::uint64_t>(operations.begin(), operations.end()));
  out["arg_max"] = snapshot.counts.arg_max;
  out["steps"] = snapshot.counts.steps;
  out["loss"] = snapshot.counts.loss;
  return out;
}

LaRank::Snapshot unpack_larank(const nb::dict& packed) {
  LaRank::Snapshot out;
  out.random = random_state(packed);
  out.rates = few_numbers<double, 3>(packed, "rates");
  out.counts.operations = few_numbers<std::uint64_t, 3>(packed, "operations");
  out.counts.arg_max = part<std::uint64_t>(packed, "arg_max");
  out.counts.steps = part<std::uint64_t>(packed, "steps");
  out.counts.loss = part<double>(packed, "loss");
  return out;
}

nb::dict pack(const RowSweeps::Snapshot& snapshot) {
  nb::dict out;
  out["random"] = pack_random(snapshot.random);
  out["order"] = as_numpy(snapshot.order);
  out["next"] = snapshot.next;
  out["lowest"] = as_numpy(snapshot.lowest);
  out["violation"] = snapshot.result.violation;
  out["gain"] = snapshot.result.gain;
  out["solved"] = snapshot.result.solved;
  out["looked_at"] = snapshot.result.looked_at;
  out["is_over"] = snapshot.result.is_over;
  out["threshold"] = snapshot.threshold;
  return out;
}

RowSweeps::Snapshot unpack_row_sweeps(const nb::dict& packed) {
  RowSweeps::Snapshot out;
  out.random = random_state(packed);
  out.order = numbers<Slot>(packed, "order");
  out.next = part<std::size_t>(packed, "next");
  out.lowest = numbers<double>(packed, "lowest");
  out.result.violation = part<double>(packed, "violation");
  out.result.gain = part<double>(packed, "gain");
  out.result.solved = part<std::uint64_t>(packed, "solved");
  out.result.looked_at = part<std::uint64_t>(packed, "looked_at");
  out.result.is_over = part<bool>(packed, "is_over");
  out.threshold = part<double>(packed, "threshold");
  return out;
}

nb::dict pack(const OnlineLearner::Snapshot& snapshot) {
  nb::dict out;
  out["rows_seen"] = snapshot.rows_seen;
  out["mistakes"] = snapshot.mistakes;
  return out;
}

OnlineLearner::Snapshot unpack_online(const nb::dict& packed) {
  return {part<double>(packed, "rows_seen"), part<std::uint64_t>(packed, "mistakes")};
}

}  // namespace widemargin::bindings

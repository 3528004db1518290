// Stochastic steps of learned units: the objective of a batch against plain loops in double
// precision, its gradient against finite differences of these, the steps of Adam against their
// formulas, and many batches the same to the bit as one after the other.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "check.hpp"
#include "examples.hpp"
#include "random_data.hpp"
#include "random_targets.hpp"
#include "reference_blas.hpp"
#include "widemargin/unit_steps.hpp"

namespace widemargin::tests {
namespace {

using Numbers = std::vector<double>;
using Indices = std::vector<std::int32_t>;

constexpr AdamRates kRates{0.9, 0.999, 1e-8};

// Which parts a machine has, and how many rows it is learned from.
struct Shape {
  const char* name;
  std::size_t rows;
  UnitParts parts;  // units, dimensions, features, outputs, constants, linear, log_weights, mapped
  bool rest;
};
constexpr Shape kShapes[] = {
    {"one of everything", 1, {1, 1, 1, 2, 1, 0, 1, false}, false},
    {"a common width", 40, {4, 3, 3, 3, 1, 0, 1, false}, false},
    {"a common width with rest", 40, {4, 3, 3, 3, 1, 0, 1, false}, true},
    {"weights without intercepts", 40, {3, 4, 4, 3, 0, 0, 4, false}, false},
    {"a map", 40, {3, 3, 3, 3, 1, 0, 3, true}, false},
    {"a map to fewer dimensions, of one weight", 30, {3, 2, 5, 3, 0, 0, 1, true}, false},
    {"a linear part", 40, {3, 3, 3, 3, 1, 3, 3, false}, false},
    {"a map beside a linear part", 30, {2, 2, 4, 3, 0, 4, 2, true}, false},
    {"a linear part of more than the units see", 30, {2, 2, 2, 3, 1, 5, 1, false}, true},
    {"dimensions beyond what is summed side by side", 20, {2, 37, 37, 2, 1, 0, 37, false}, false},
};
// Several tiles and chunks of rows.
constexpr Shape kLarge{"many rows", 1300, {3, 3, 3, 3, 1, 0, 3, true}, false};

std::size_t total(const UnitParts& parts) {
  const auto sizes = parts.sizes();
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

// Parameters with their running means, as one call leaves them to the next.
struct Place {
  Numbers parameters, means, squares;
  std::int64_t n_steps = 0;

  AdamMoments moments() { return {parameters.data(), means.data(), squares.data()}; }
  bool operator==(const Place&) const = default;
};

template <class Loss>
struct Problem {
  Shape shape;
  Loss loss;
  Padded<float> rows, linear;
  std::vector<float> rest, weights;
  RandomTargets targets;
  Place begin;

  Problem(const Loss& a_loss, const Shape& a_shape, Random random)
      : shape(a_shape),
        loss(a_loss),
        rows(shape.rows, shape.parts.features, 2, random, -1, 1),
        linear(shape.rows, shape.parts.linear, 3, random, -1, 1),
        rest(random.values<float>(shape.rows, 0, 1)),
        weights(random.values<float>(shape.rows, 0.1, 3)),
        targets(shape.rows, shape.parts.outputs, random),
        begin{random.values<double>(total(shape.parts), -0.7, 0.7), Numbers(total(shape.parts)),
              Numbers(total(shape.parts))} {
    for (std::size_t i = 0; i < shape.rows; ++i) {
      if (i % 5 == 2) weights[i] = 0;
    }
    // What the arithmetic of a batch rounds to single precision is rounded already.
    for (double& parameter : begin.parameters) parameter = static_cast<float>(parameter);
  }

  StepRows step_rows() const {
    return {rows.view(), linear.view(), shape.rest ? rest.data() : nullptr,
            Judge<Loss>{loss, targets.template of<Loss>()}, weights.data()};
  }

  Indices all_rows() const {
    Indices out(shape.rows);
    std::iota(out.begin(), out.end(), 0);
    return out;
  }

  // As some rows tell it, by plain loops.
  double objective(const Numbers& parameters, const Indices& some) const {
    const UnitParts& n = shape.parts;
    const auto sizes = n.sizes();
    std::array<const double*, UnitParts::kKinds> at{};
    const double* next = parameters.data();
    for (std::size_t kind = 0; kind < at.size(); ++kind) {
      at[kind] = next;
      next += sizes[kind];
    }
    const auto [coefficients, centres, log_widths, log_weights, mapping] = at;
    double value = 0.0;
    for (std::size_t i = 0; i < sizes[0]; ++i) value += 0.5 * coefficients[i] * coefficients[i];
    const double scale = static_cast<double>(shape.rows) / static_cast<double>(some.size());
    Numbers scores(n.outputs), z(n.dimensions);
    for (const std::int32_t index : some) {
      const auto i = static_cast<std::size_t>(index);
      std::fill(scores.begin(), scores.end(), 0.0);
      std::size_t place = 0;  // of the next row of coefficients
      const auto add = [&](double column) {
        for (std::size_t c = 0; c < n.outputs; ++c)
          scores[c] += column * coefficients[place * n.outputs + c];
        ++place;
      };
      for (std::size_t d = 0; d < n.dimensions; ++d) {
        z[d] = n.is_mapped ? 0.0 : rows(i, d);
        for (std::size_t f = 0; f < n.features && n.is_mapped; ++f)
          z[d] += rows(i, f) * mapping[f * n.dimensions + d];
      }
      if (n.constants > 0) add(1.0);
      for (std::size_t j = 0; j < n.units; ++j) {
        double apart =
            shape.rest ? std::exp(2 * log_weights[0]) * static_cast<double>(rest[i]) : 0.0;
        for (std::size_t d = 0; d < n.dimensions; ++d) {
          const double weight = std::exp(log_weights[n.log_weights == 1 ? 0 : d]);
          const double part = weight * (z[d] - centres[j * n.dimensions + d]);
          apart += part * part;
        }
        add(std::exp(-std::exp(log_widths[j]) * apart));
      }
      for (std::size_t f = 0; f < n.linear; ++f) add(linear(i, f));
      value += scale * static_cast<double>(weights[i]) *
               loss.value(scores.data(), targets.template of<Loss>()(i, n.outputs), n.outputs);
    }
    return value;
  }

  // By central differences of the plain loops.
  Numbers slopes(const Indices& some) const {
    constexpr double kStep = 1e-6;
    Numbers out, parameters = begin.parameters;
    for (double& parameter : parameters) {
      const double here = parameter;
      parameter = here + kStep;
      const double ahead = objective(parameters, some);
      parameter = here - kStep;
      const double behind = objective(parameters, some);
      parameter = here;
      out.push_back((ahead - behind) / (2 * kStep));
    }
    return out;
  }
};

struct Batch {
  Indices rows;
  double share = 1.0;
};

constexpr std::array<double, UnitParts::kKinds> kLengths{0.03, 0.02, 0.015, 0.006, 0.0015};

// Goes through batches in one call. What is beyond the batches that were made stays NaN.
template <class Loss>
std::size_t step(const Problem<Loss>& problem, const std::vector<Batch>& batches, Place& place,
                 Numbers& values, const std::array<double, UnitParts::kKinds>& lengths = kLengths) {
  Indices order;
  std::vector<std::int64_t> starts{0};
  Numbers shares;
  for (const Batch& batch : batches) {
    order.insert(order.end(), batch.rows.begin(), batch.rows.end());
    starts.push_back(static_cast<std::int64_t>(order.size()));
    shares.push_back(batch.share);
  }
  values.assign(batches.size(), std::numeric_limits<double>::quiet_NaN());
  const StepSchedule schedule{order, starts, shares, lengths,
                              static_cast<double>(problem.shape.rows)};
  const std::size_t count =
      adam_steps(problem.step_rows(), problem.shape.parts, schedule, kRates, place.n_steps,
                 place.moments(), values.data(), reference_blas());
  place.n_steps += static_cast<std::int64_t>(count);
  return count;
}

template <class Function>
void for_each_problem(const Function& function) {
  for (const Shape& shape : kShapes) {
    for_each_example<Losses>([&](const auto& loss) {
      const Case where(name_of(loss) + ", " + shape.name);
      function(Problem<std::decay_t<decltype(loss)>>(loss, shape, Random(shape.rows)));
    });
  }
  const Case where(kLarge.name);
  function(Problem<WestonWatkins>({}, kLarge, Random(kLarge.rows)));
}

// The first step shows the gradient: means that began at zero are 1 - decay of it.
template <class Loss>
void check_first_step(const Problem<Loss>& problem, const Indices& some) {
  constexpr double kRounding = 200 * epsilon<float>();
  Place place = problem.begin;
  Numbers values;
  CHECK(step(problem, {{some, 0.5}}, place, values) == 1);
  const double expected = problem.objective(problem.begin.parameters, some);
  CHECK_NEAR(values[0], expected, kRounding * (1.0 + std::fabs(expected)));
  const Numbers slopes = problem.slopes(some);
  double size = 1.0;
  for (const double slope : slopes) size = std::max(size, std::fabs(slope));
  std::size_t i = 0;
  const auto sizes = problem.shape.parts.sizes();
  for (std::size_t kind = 0; kind < sizes.size(); ++kind) {
    for (std::size_t end = i + sizes[kind]; i < end; ++i) {
      const double gradient = place.means[i] / (1.0 - kRates.decay);
      CHECK_NEAR(gradient, slopes[i], kRounding * size);
      CHECK_NEAR(place.squares[i], (1.0 - kRates.square_decay) * gradient * gradient,
                 1e-12 * gradient * gradient);
      const double way = 0.5 * kLengths[kind] * gradient / (std::fabs(gradient) + kRates.tiny);
      CHECK_NEAR(place.parameters[i], problem.begin.parameters[i] - way, 1e-12);
    }
  }
}

TEST("adam_steps: a first step shows the objective and its gradient") {
  for_each_problem([](const auto& problem) {
    check_first_step(problem, problem.all_rows());
    // Some rows, which stand for all.
    Indices some;
    for (std::size_t i = 0; i < problem.shape.rows; i += 3)
      some.push_back(static_cast<std::int32_t>(i));
    check_first_step(problem, some);
  });
}

TEST("adam_steps: later steps are those of the formulas") {
  const Problem<WestonWatkins> problem({}, kShapes[4], Random(5));
  const Indices all = problem.all_rows();
  Place place = problem.begin;
  Numbers values;
  step(problem, {{all}}, place, values);
  step(problem, {{all}}, place, values);
  const Place before = place;
  step(problem, {{all, 0.7}}, place, values);
  const auto sizes = problem.shape.parts.sizes();
  std::size_t i = 0;
  for (std::size_t kind = 0; kind < sizes.size(); ++kind) {
    for (std::size_t end = i + sizes[kind]; i < end; ++i) {
      const double gradient =
          (place.means[i] - kRates.decay * before.means[i]) / (1.0 - kRates.decay);
      CHECK_NEAR(place.squares[i],
                 kRates.square_decay * before.squares[i] +
                     (1.0 - kRates.square_decay) * gradient * gradient,
                 1e-10 * (place.squares[i] + gradient * gradient));
      const double mean = place.means[i] / (1.0 - std::pow(kRates.decay, 3));
      const double square = place.squares[i] / (1.0 - std::pow(kRates.square_decay, 3));
      CHECK_NEAR(
          place.parameters[i],
          before.parameters[i] - 0.7 * kLengths[kind] * mean / (std::sqrt(square) + kRates.tiny),
          1e-12);
    }
  }
}

TEST("adam_steps: what has no length stays where it is") {
  const Problem<WestonWatkins> problem({}, kShapes[4], Random(5));
  const auto sizes = problem.shape.parts.sizes();
  for (std::size_t kind = 0; kind < sizes.size(); ++kind) {
    auto lengths = kLengths;
    lengths[kind] = 0.0;
    Place place = problem.begin;
    Numbers values;
    step(problem, {{problem.all_rows()}, {problem.all_rows()}}, place, values, lengths);
    std::size_t i = 0;
    for (std::size_t each = 0; each < sizes.size(); ++each) {
      for (std::size_t end = i + sizes[each]; i < end; ++i) {
        CHECK((place.parameters[i] == problem.begin.parameters[i]) == (each == kind));
      }
    }
  }
}

// Batches of different sizes, in an order that is not that of the rows, each of which goes another
// share of the lengths.
std::vector<Batch> cut(std::size_t n_rows) {
  std::vector<Batch> batches;
  for (std::size_t first = 0, count = 1; first < n_rows; first += count, count = count % 7 + 3) {
    batches.push_back({{}, 1.0 / static_cast<double>(batches.size() + 1)});
    for (std::size_t i = first; i < std::min(first + count, n_rows); ++i)
      batches.back().rows.push_back(static_cast<std::int32_t>(i * 7 % n_rows));
  }
  return batches;
}

TEST("adam_steps: many batches are the same to the bit as one after the other") {
  for_each_problem([](const auto& problem) {
    const std::vector<Batch> batches = cut(problem.shape.rows);
    Place together = problem.begin, single = problem.begin;
    Numbers values, value;
    CHECK(step(problem, batches, together, values) == batches.size());
    for (std::size_t batch = 0; batch < batches.size(); ++batch) {
      CHECK(step(problem, {batches[batch]}, single, value) == 1);
      CHECK(value[0] == values[batch]);
    }
    CHECK(single == together);
    Place none = problem.begin;
    CHECK(step(problem, {}, none, values) == 0);
    CHECK(none == problem.begin);
  });
}

TEST("adam_steps: ends before a batch whose value is not finite") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::size_t culprit : {0, 2, 4}) {
      Problem<WestonWatkins> problem({}, kShapes[1], Random(7));
      std::vector<Batch> batches = cut(problem.shape.rows);
      batches.resize(5);
      const auto row = static_cast<std::size_t>(batches[culprit].rows.front());
      problem.weights[row] = bad;
      const Case where("batch " + std::to_string(culprit));
      Place place = problem.begin, before = problem.begin;
      Numbers values, good;
      CHECK(step(problem, batches, place, values) == culprit);
      CHECK(!std::isfinite(values[culprit]));
      for (std::size_t later = culprit + 1; later < values.size(); ++later)
        CHECK(values[later] != values[later]);
      step(problem, {batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(culprit)},
           before, good);
      CHECK(place == before);
      for (std::size_t batch = 0; batch < culprit; ++batch) CHECK(values[batch] == good[batch]);
    }
  }
}

}  // namespace
}  // namespace widemargin::tests

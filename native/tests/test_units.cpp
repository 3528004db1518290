// The sums that the gradient in learned units is made of, and the gradient that is put together
// from them: against plain loops in double precision, and the sums the same to the bit for any
// number of threads.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "random_data.hpp"
#include "reference_blas.hpp"
#include "widemargin/units.hpp"

namespace widemargin::tests {
namespace {

using Numbers = std::vector<double>;
using Indices = std::vector<std::int32_t>;

struct Shape {
  std::size_t rows, units, dimensions, outputs, features;
};
// No rows; one of everything; fewer rows than a tile; several chunks; several threads, dimensions
// beyond what is summed side by side; chunks of several tiles.
constexpr Shape kShapes[] = {{0, 2, 3, 2, 3},   {1, 1, 1, 1, 1},    {100, 7, 5, 3, 4},
                             {300, 1, 4, 2, 6}, {1000, 6, 1, 3, 2}, {1300, 5, 37, 4, 3},
                             {5000, 3, 2, 2, 2}};

template <class T>
struct Problem {
  Shape shape;
  Padded<T> unmapped, mapped, values, gradient, coefficients, centres;
  std::vector<T> rest, widths, squares;

  Problem(const Shape& a_shape, Random random)
      : shape(a_shape),
        unmapped(shape.rows, shape.features, 1, random, -1, 1),
        mapped(shape.rows, shape.dimensions, 2, random, -1, 1),
        values(shape.rows, shape.units, 3, random, 0, 1),
        gradient(shape.rows, shape.outputs, 4, random, -1, 1),
        coefficients(shape.units, shape.outputs, 1, random, -1, 1),
        centres(shape.units, shape.dimensions, 2, random, -1, 1),
        rest(random.values<T>(shape.rows, 0, 2)),
        widths(random.values<T>(shape.units, 0.5, 2)),
        squares(random.values<T>(shape.dimensions, 0.5, 2)) {}

  std::vector<Indices> row_choices() const {
    Indices all, some, last;
    for (std::size_t i = 0; i < shape.rows; ++i) {
      all.push_back(static_cast<std::int32_t>(i));
      if (i % 3 != 1) some.push_back(static_cast<std::int32_t>(i));
    }
    if (shape.rows > 0) last.push_back(static_cast<std::int32_t>(shape.rows - 1));
    return {all, some, last, {}};
  }
};

// Sums, and the sums of the sizes of what they add up: these bound the rounding error.
struct Expected {
  Numbers values, sizes;

  explicit Expected(std::size_t size) : values(size), sizes(size) {}
  void add(std::size_t i, double term) {
    values[i] += term;
    sizes[i] += std::fabs(term);
  }
};

struct Question {
  bool rest, by_dimension, by_feature;
};

// by_unit, by_dimension and by_feature, one after the other.
template <class T>
Expected naive_sums(const Problem<T>& problem, const Indices& chosen, bool with_rest) {
  const auto [n, units, dimensions, outputs, features] = problem.shape;
  const std::size_t seen = dimensions + 2, second = units * seen, third = second + dimensions;
  Expected out(third + features * dimensions);
  for (const std::int32_t index : chosen) {
    const auto i = static_cast<std::size_t>(index);
    double length =
        with_rest ? static_cast<double>(problem.squares[0]) * static_cast<double>(problem.rest[i])
                  : 0.0;
    for (std::size_t d = 0; d < dimensions; ++d) {
      length +=
          static_cast<double>(problem.squares[d]) * problem.mapped(i, d) * problem.mapped(i, d);
    }
    for (std::size_t j = 0; j < units; ++j) {
      const auto width = static_cast<double>(problem.widths[j]);
      for (std::size_t c = 0; c < outputs; ++c) {
        const double pull =
            problem.gradient(i, c) * problem.coefficients(j, c) * problem.values(i, j);
        out.add(j * seen + dimensions, pull);
        out.add(j * seen + dimensions + 1, pull * length);
        for (std::size_t d = 0; d < dimensions; ++d) {
          const double z = problem.mapped(i, d);
          out.add(j * seen + d, pull * z);
          out.add(second + d, pull * width * z * z);
          for (std::size_t f = 0; f < features; ++f) {
            out.add(third + f * dimensions + d,
                    problem.unmapped(i, f) * pull * width * (z - problem.centres(j, d)));
          }
        }
      }
    }
  }
  return out;
}

template <class T>
Numbers native_sums(const Problem<T>& problem, const Indices& chosen, const Question& asked,
                    int n_threads) {
  const Shape& n = problem.shape;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const std::size_t second = n.units * (n.dimensions + 2), third = second + n.dimensions;
  Numbers out(third + n.features * n.dimensions, kNone);
  UnitRows<T> rows{problem.mapped.view(), asked.rest ? problem.rest.data() : nullptr,
                   problem.values.view(), problem.gradient.view()};
  UnitParameters<T> units{problem.coefficients.view(), {}, nullptr, problem.squares.data()};
  UnitSums sums{out.data()};
  if (asked.by_dimension || asked.by_feature) units.widths = problem.widths.data();
  if (asked.by_dimension) sums.by_dimension = out.data() + second;
  if (asked.by_feature) {
    rows.unmapped = problem.unmapped.view();
    units.centres = problem.centres.view();
    sums.by_feature = out.data() + third;
  }
  unit_sums<T>(rows, chosen, units, sums, reference_blas(), n_threads);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool wanted = i < second || (i < third ? asked.by_dimension : asked.by_feature);
    CHECK(wanted == (out[i] == out[i]));
    if (!wanted) out[i] = 0.0;
  }
  return out;
}

template <class T>
void check_unit_sums() {
  for (const Shape& shape : kShapes) {
    const Problem<T> problem(shape, Random(shape.rows));
    for (const Indices& chosen : problem.row_choices()) {
      for (const bool rest : {false, true}) {
        const Expected expected = naive_sums(problem, chosen, rest);
        const std::size_t second = shape.units * (shape.dimensions + 2);
        const std::size_t third = second + shape.dimensions;
        for (const int wanted : {0, 1, 2, 3}) {
          const Question asked{rest, (wanted & 1) != 0, (wanted & 2) != 0};
          const Case where(type_name<T>() + ", " + std::to_string(shape.rows) + " rows, " +
                           std::to_string(chosen.size()) + " chosen, " +
                           std::to_string(shape.dimensions) + " dimensions, asked for " +
                           std::to_string(wanted) + (rest ? ", with rest" : ""));
          const Numbers got = native_sums(problem, chosen, asked, 1);
          for (const int n_threads : {2, 3}) {
            CHECK(native_sums(problem, chosen, asked, n_threads) == got);
          }
          for (std::size_t i = 0; i < got.size(); ++i) {
            if (i >= second && !(i < third ? asked.by_dimension : asked.by_feature)) continue;
            // Terms that cancel before they are added up here may be larger than what is left.
            CHECK_NEAR(got[i], expected.values[i], 30 * epsilon<T>() * (0.1 + expected.sizes[i]));
          }
        }
      }
    }
  }
}

TEST("unit_sums: sums of W over rows, by units, dimensions and features") {
  check_unit_sums<float>();
  check_unit_sums<double>();
}

// centres, log_widths, log_weights and mapping, one after the other: with u = (z_i - c_j),
// W_ij times the derivative of -w_j (sum_d squares_d u_d^2 + squares_0 rest_i) in each.
Expected naive_gradient(const Problem<double>& problem, const Question& asked) {
  const auto [n, units, dimensions, outputs, features] = problem.shape;
  const std::size_t n_weights = asked.by_dimension ? dimensions : 1;
  const std::size_t second = units * dimensions, third = second + units;
  const std::size_t fourth = third + n_weights;
  Expected out(fourth + (asked.by_feature ? features * dimensions : 0));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < units; ++j) {
      double pull = 0.0;
      for (std::size_t c = 0; c < outputs; ++c) {
        pull += problem.gradient(i, c) * problem.coefficients(j, c) * problem.values(i, j);
      }
      pull *= problem.widths[j];
      if (asked.rest) {
        out.add(second + j, -pull * problem.squares[0] * problem.rest[i]);
        out.add(third, -2 * pull * problem.squares[0] * problem.rest[i]);
      }
      for (std::size_t d = 0; d < dimensions; ++d) {
        const double square = problem.squares[d],
                     apart = problem.mapped(i, d) - problem.centres(j, d);
        out.add(j * dimensions + d, 2 * pull * square * apart);
        out.add(second + j, -pull * square * apart * apart);
        out.add(third + (asked.by_dimension ? d : 0), -2 * pull * square * apart * apart);
        for (std::size_t f = 0; f < features && asked.by_feature; ++f) {
          out.add(fourth + f * dimensions + d, -2 * pull * square * apart * problem.unmapped(i, f));
        }
      }
    }
  }
  return out;
}

TEST("unit_gradient: centres, widths, weights and map, put together from the sums") {
  for (const Shape& shape : kShapes) {
    for (const int wanted : {0, 1, 2, 3}) {
      // A rest is one of rows in few directions, which have a common weight.
      for (const bool rest : {false, true}) {
        const Question asked{rest, (wanted & 1) != 0, (wanted & 2) != 0};
        if (rest && asked.by_dimension) continue;
        Problem<double> problem(shape, Random(shape.rows + 1));
        // A common weight serves all dimensions.
        if (!asked.by_dimension) problem.squares.assign(shape.dimensions, problem.squares[0]);
        const Case where(std::to_string(shape.rows) + " rows, " + std::to_string(shape.dimensions) +
                         " dimensions, asked for " + std::to_string(wanted) +
                         (rest ? ", with rest" : ""));
        const Numbers sums = native_sums(problem, problem.row_choices()[0], asked, 1);
        const std::size_t by_dimension = shape.units * (shape.dimensions + 2);
        Numbers parts(sums);  // what the gradient only reads lies in memory that can be written to
        const UnitSums of{
            parts.data(), asked.by_dimension ? parts.data() + by_dimension : nullptr,
            asked.by_feature ? parts.data() + by_dimension + shape.dimensions : nullptr};
        const Expected expected = naive_gradient(problem, asked);
        Numbers got(expected.values.size(), std::numeric_limits<double>::quiet_NaN());
        const std::size_t second = shape.units * shape.dimensions, third = second + shape.units;
        unit_gradient(
            {std::as_const(problem.centres).view(), problem.widths.data(), problem.squares.data()},
            of,
            {got.data(), got.data() + second, got.data() + third,
             asked.by_feature ? got.data() + third + (asked.by_dimension ? shape.dimensions : 1)
                              : nullptr},
            shape.features);
        CHECK(parts == sums);
        for (std::size_t i = 0; i < got.size(); ++i) {
          // Squares are multiplied out, so that what is left may be less than its terms.
          CHECK_NEAR(got[i], expected.values[i], 1e-11 * (1.0 + expected.sizes[i]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace widemargin::tests

// The innermost loops of every instruction set that this CPU has, and how columns are packed.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "check.hpp"
#include "random_data.hpp"
#include "widemargin/vector_code.hpp"

namespace widemargin::tests {
namespace {

// Calls function(code) for each instruction set.
template <class T, class Function>
void for_each_code(const Function& function) {
  for (const InstructionSet* set : instruction_sets()) {
    const Case where(std::string(set->name) + ", " + type_name<T>());
    function(code_of<T>(*set));
  }
}

TEST("instruction sets have different names, the widest registers first, the baseline last") {
  const auto sets = instruction_sets();
  CHECK(!sets.empty());
  std::set<std::string> names;
  std::size_t lanes = std::numeric_limits<std::size_t>::max();
  for (const InstructionSet* set : sets) {
    const std::string name = set->name;
    CHECK(name == "avx512" || name == "avx2" || name == "baseline");
    CHECK(names.insert(name).second);
    CHECK(set->single_precision.shape.lanes < lanes);
    CHECK(set->single_precision.shape.lanes == 2 * set->double_precision.shape.lanes);
    lanes = set->single_precision.shape.lanes;
  }
  CHECK(std::string(sets.back()->name) == "baseline");
  CHECK(&vector_code<float>() == &sets.front()->single_precision);
  CHECK(&vector_code<double>() == &sets.front()->double_precision);
}

// ---- the exponential

// Above these exp_of_negative gives 0: nearly where exp stops being a normal number.
template <class T>
constexpr double last_exponent() {
  return sizeof(T) == 4 ? 87.0 : 708.0;
}

constexpr double kUlps = 2.0;  // as documented

// Error in units in the last place of the exact value.
template <class T>
double ulps_off(T got, long double exact) {
  const auto rounded = static_cast<T>(exact);
  const T unit = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) /
                             static_cast<long double>(unit));
}

template <class T>
void check_exponentials(const std::vector<T>& values) {
  for_each_code<T>([&](const VectorCode<T>& code) {
    std::vector<T> got = values;
    code.exp_of_negative(got.data(), got.size());
    double worst = 0.0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double off = ulps_off(got[i], std::exp(-static_cast<long double>(values[i])));
      worst = off <= worst ? worst : off;  // a NaN stays
    }
    CHECK_NEAR(worst, 0.0, kUlps);
  });
}

template <class T>
void check_exp_accuracy() {
  Random random(1);
  check_exponentials(random.values<T>(50000, 0.0, last_exponent<T>()));
  check_exponentials(random.values<T>(20000, 0.0, 1.0));
  std::vector<T> over_all_magnitudes;
  for (double v = 1e-300; v < last_exponent<T>(); v *= 1.01) {
    over_all_magnitudes.push_back(static_cast<T>(v));
  }
  check_exponentials(over_all_magnitudes);
  // Halves of ln 2: where the argument is cut into a power of two and a rest.
  std::vector<T> borders;
  for (int half = 0; half * 0.34657359 < last_exponent<T>(); ++half) {
    const auto border = static_cast<T>(half * 0.346573590279972654709);
    for (const T towards : {T(0), std::numeric_limits<T>::infinity()}) {
      borders.push_back(std::nextafter(border, towards));
    }
    borders.push_back(border);
  }
  std::erase_if(borders, [](T v) { return !(static_cast<double>(v) < last_exponent<T>()); });
  check_exponentials(borders);
}

TEST("exp_of_negative is within 2 units in the last place, float") { check_exp_accuracy<float>(); }
TEST("exp_of_negative is within 2 units in the last place, double") {
  check_exp_accuracy<double>();
}

template <class T>
void check_exp_ends(const VectorCode<T>& code) {
  using limits = std::numeric_limits<T>;
  std::vector<T> ones = {
      T(0),    -T(0),          limits::denorm_min(),  limits::min(), limits::epsilon() / 8,
      -T(1),   -limits::min(), -limits::denorm_min(), -T(1e30),      limits::lowest(),
      -T(100), -T(1000),       -limits::infinity()};
  code.exp_of_negative(ones.data(), ones.size());
  for (const T value : ones) CHECK(value == 1);

  // Results that would be denormal, or no number at all, are 0.
  const auto end = static_cast<T>(last_exponent<T>());
  std::vector<T> zeros = {end + 1, end + 10, end + 17,      end + 38,
                          2 * end, T(1e30),  limits::max(), limits::infinity()};
  code.exp_of_negative(zeros.data(), zeros.size());
  for (const T value : zeros) CHECK(value == 0);

  // Between: off by less than the smallest result there is.
  for (int i = 0; i <= 100; ++i) {
    const T v = end + static_cast<T>(i) / 100;
    T got = v;
    code.exp_of_negative(&got, 1);
    CHECK_NEAR(got, std::exp(-static_cast<double>(v)), std::exp(-last_exponent<T>()));
  }
}

TEST("exp_of_negative at 0, near 0, below 0 and where it underflows, float") {
  for_each_code<float>(check_exp_ends<float>);
}
TEST("exp_of_negative at 0, near 0, below 0 and where it underflows, double") {
  for_each_code<double>(check_exp_ends<double>);
}

template <class T>
void check_exp_lengths(const VectorCode<T>& code) {
  constexpr std::size_t kMargin = 8;
  Random random(2);
  const std::vector<T> before = random.values<T>(70 + 2 * kMargin, 0.0, 50.0);
  std::vector<T> each = before;
  for (T& value : each) code.exp_of_negative(&value, 1);
  for (std::size_t start = 0; start < kMargin; ++start) {
    for (std::size_t count = 0; count <= 70; ++count) {
      const Case where("start " + std::to_string(start) + ", count " + std::to_string(count));
      std::vector<T> after(before.begin(),
                           before.begin() + static_cast<std::ptrdiff_t>(start + count));
      code.exp_of_negative(after.data() + start, count);
      bool inside = true, outside = true;
      for (std::size_t i = 0; i < after.size(); ++i) {
        if (i < start) {
          outside = outside && after[i] == before[i];
        } else {
          inside = inside && after[i] == each[i];
        }
      }
      CHECK(inside);
      CHECK(outside);
    }
  }
}

TEST("exp_of_negative of any length from any start is that of each number alone, float") {
  for_each_code<float>(check_exp_lengths<float>);
}
TEST("exp_of_negative of any length from any start is that of each number alone, double") {
  for_each_code<double>(check_exp_lengths<double>);
}

// ---- the hyperbolic tangent

constexpr double kTanhUlps = 4.0;  // as documented

// Of the values and of their opposites, which must be opposite to the bit.
template <class T>
void check_tangents(const std::vector<T>& values) {
  for_each_code<T>([&](const VectorCode<T>& code) {
    std::vector<T> got = values, opposite;
    for (const T value : values) opposite.push_back(-value);
    code.tanh_of(got.data(), got.size());
    code.tanh_of(opposite.data(), opposite.size());
    double worst = 0.0;
    bool is_odd = true;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double off = ulps_off(got[i], std::tanh(static_cast<long double>(values[i])));
      worst = off <= worst ? worst : off;  // a NaN stays
      is_odd = is_odd && opposite[i] == -got[i];
    }
    CHECK_NEAR(worst, 0.0, kTanhUlps);
    CHECK(is_odd);
  });
}

template <class T>
void check_tanh_accuracy() {
  Random random(3);
  check_tangents(random.values<T>(50000, 0.0, 1.0));
  check_tangents(random.values<T>(50000, 0.0, 30.0));
  std::vector<T> over_all_magnitudes;
  for (double v = static_cast<double>(std::numeric_limits<T>::min()); v < 1e30; v *= 1.01) {
    over_all_magnitudes.push_back(static_cast<T>(v));
  }
  check_tangents(over_all_magnitudes);
  // Quarters of ln 2: where twice the argument is cut into a power of two and a rest.
  std::vector<T> borders;
  for (int quarter = 1; quarter < 200; ++quarter) {
    const auto border = static_cast<T>(quarter * 0.173286795139986327355);
    for (const T towards : {T(0), std::numeric_limits<T>::infinity()}) {
      borders.push_back(std::nextafter(border, towards));
    }
    borders.push_back(border);
  }
  check_tangents(borders);
}

TEST("tanh_of is within 4 units in the last place and odd, float") { check_tanh_accuracy<float>(); }
TEST("tanh_of is within 4 units in the last place and odd, double") {
  check_tanh_accuracy<double>();
}

template <class T>
void check_tanh_ends(const VectorCode<T>& code) {
  using limits = std::numeric_limits<T>;
  std::vector<T> ones = {T(30), T(87), T(708), T(1e30), limits::max(), limits::infinity()};
  code.tanh_of(ones.data(), ones.size());
  for (const T value : ones) CHECK(value == 1);
  const std::vector<T> small = {T(0), limits::denorm_min(), 64 * limits::denorm_min(),
                                limits::min(), limits::epsilon() / 8};
  std::vector<T> same = small;
  code.tanh_of(same.data(), same.size());
  for (std::size_t i = 0; i < small.size(); ++i) CHECK(same[i] == small[i]);
  T none = limits::quiet_NaN();
  code.tanh_of(&none, 1);
  CHECK(std::isnan(none));
}

TEST("tanh_of at 0, of the smallest and largest numbers, and of none, float") {
  for_each_code<float>(check_tanh_ends<float>);
}
TEST("tanh_of at 0, of the smallest and largest numbers, and of none, double") {
  for_each_code<double>(check_tanh_ends<double>);
}

template <class T>
void check_tanh_lengths(const VectorCode<T>& code) {
  Random random(4);
  const std::vector<T> before = random.values<T>(71, -3.0, 3.0);
  std::vector<T> each = before;
  for (T& value : each) code.tanh_of(&value, 1);
  for (std::size_t count = 0; count <= 70; ++count) {
    const Case where("count " + std::to_string(count));
    std::vector<T> after = before;
    code.tanh_of(after.data(), count);
    CHECK(std::equal(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(count),
                     each.begin()));
    CHECK(after[count] == before[count]);
  }
}

TEST("tanh_of of any length is that of each number alone, float") {
  for_each_code<float>(check_tanh_lengths<float>);
}
TEST("tanh_of of any length is that of each number alone, double") {
  for_each_code<double>(check_tanh_lengths<double>);
}

// ---- packing

std::size_t place_in(const PanelShape& shape, std::size_t inner, std::size_t columns, std::size_t f,
                     std::size_t j) {
  const PanelShape::Panel panel = shape.panel_of(j, columns);
  return panel.start * inner + f * panel.width + (j - panel.start);
}

TEST("every entry of a packed table has a place of its own within the table") {
  for (const std::size_t lanes : {2, 4, 8, 16}) {
    for (const std::size_t least : {lanes, lanes / 2}) {
      const PanelShape shape{lanes, least};
      for (std::size_t columns = 0; columns <= 7 * lanes; ++columns) {
        const Case where(std::to_string(lanes) + " lanes, at least " + std::to_string(least) +
                         ", " + std::to_string(columns) + " columns");
        const std::size_t padded = shape.padded(columns);
        CHECK(padded >= columns && padded >= least && padded < columns + 2 * least);
        CHECK(padded % least == 0);
        for (const std::size_t inner : {1, 2, 5}) {
          std::vector<int> taken(inner * padded, 0);
          for (std::size_t f = 0; f < inner; ++f) {
            for (std::size_t j = 0; j < padded; ++j) {
              const std::size_t place = place_in(shape, inner, padded, f, j);
              CHECK(place < taken.size());
              if (place < taken.size()) ++taken[place];
            }
          }
          CHECK(std::count(taken.begin(), taken.end(), 1) ==
                static_cast<std::ptrdiff_t>(taken.size()));
        }
      }
    }
  }
}

TEST("panels are whole registers, at most three, but for a last one of half a register") {
  for (const std::size_t lanes : {2, 4, 8, 16}) {
    for (const std::size_t least : {lanes, lanes / 2}) {
      const PanelShape shape{lanes, least};
      for (std::size_t columns = least; columns <= 7 * lanes; columns += least) {
        const Case where(std::to_string(lanes) + " lanes, at least " + std::to_string(least) +
                         ", " + std::to_string(columns) + " columns");
        for (std::size_t start = 0; start < columns;) {
          const PanelShape::Panel panel = shape.panel_of(start, columns);
          CHECK(panel.start == start);
          CHECK(panel.width > 0 && panel.width <= 3 * lanes && start + panel.width <= columns);
          CHECK(panel.width % lanes == 0 || panel.width == least);
          if (panel.width == 0) break;
          for (std::size_t j = start; j < start + panel.width; ++j) {
            CHECK(shape.panel_of(j, columns).start == start);
            CHECK(shape.panel_of(j, columns).width == panel.width);
          }
          start += panel.width;
        }
      }
    }
  }
}

// ---- sums

constexpr std::size_t kInner[] = {0, 1, 2, 5, 16, 33, 70};
constexpr std::size_t kRows[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 17, 33};
constexpr std::size_t kMargin = 16;

template <class T>
struct Problem {
  std::size_t rows, inner, columns, stride;
  std::vector<T> left, right, packed, row_start, column_start, out;

  Problem(const PanelShape& shape, std::size_t n_rows, std::size_t n_inner, std::size_t wanted,
          Random& random)
      : rows(n_rows),
        inner(n_inner),
        columns(shape.padded(wanted)),
        stride(n_inner + 3),
        left(rows == 0 ? 1 : 1 + (rows - 1) * stride + inner, std::numeric_limits<T>::quiet_NaN()),
        right(random.values<T>(inner * columns, -1, 1)),
        packed(inner * columns),
        row_start(random.values<T>(rows, -1, 1)),
        column_start(random.values<T>(columns, -1, 1)),
        out(rows * columns + 2 * kMargin, T(kCanary)) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t f = 0; f < inner; ++f) {
        left[1 + r * stride + f] = static_cast<T>(random.uniform(-1, 1));
      }
    }
    pack(shape);
  }

  void pack(const PanelShape& shape) {
    for (std::size_t f = 0; f < inner; ++f) {
      for (std::size_t j = 0; j < columns; ++j) {
        packed[place_in(shape, inner, columns, f, j)] = right[f * columns + j];
      }
    }
  }

  // Of both operands, in which every third number comes to be zero.
  void make_positive(const PanelShape& shape) {
    for (std::vector<T>* values : {&left, &right}) {
      for (std::size_t i = 0; i < values->size(); ++i) {
        T& value = (*values)[i];
        if (value == value) value = i % 3 == 0 ? T(0) : std::fabs(value);
      }
    }
    pack(shape);
  }

  Sums<T> sums() {
    return {left.data() + 1, stride, rows,    inner,   packed.data(),
            columns,         T(1),   nullptr, nullptr, out.data() + kMargin};
  }

  template <class Term>
  void check(const Sums<T>& asked, const Term& term) {
    double worst = 0.0;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t j = 0; j < columns; ++j) {
        double sum = 0.0;
        for (std::size_t f = 0; f < inner; ++f) {
          sum += term(static_cast<double>(left[1 + r * stride + f]),
                      static_cast<double>(right[f * columns + j]));
        }
        sum *= static_cast<double>(asked.factor);
        if (asked.row_start != nullptr) sum += static_cast<double>(row_start[r]);
        if (asked.column_start != nullptr) sum += static_cast<double>(column_start[j]);
        const double off = std::fabs(static_cast<double>(out[kMargin + r * columns + j]) - sum);
        worst = off <= worst ? worst : off;
      }
    }
    CHECK_NEAR(worst, 0.0, static_cast<double>(10 * (inner + 1)) * epsilon<T>());
    const auto end = out.end() - static_cast<std::ptrdiff_t>(kMargin);
    CHECK(std::count(out.begin(), out.begin() + kMargin, T(kCanary)) == kMargin);
    CHECK(std::count(end, out.end(), T(kCanary)) == kMargin);
  }

  static constexpr double kCanary = -77.25;
};

double product(double x, double b) { return x * b; }
double squared_difference(double x, double b) { return (x - b) * (x - b); }
double absolute_difference(double x, double b) { return std::fabs(x - b); }
double chi_square(double x, double b) { return x + b > 0 ? (x - b) * (x - b) / ((x + b) / 2) : 0; }

template <class T>
void check_sums(const VectorCode<T>& code) {
  Random random(3);
  for (std::size_t columns = code.shape.least; columns <= 7 * code.shape.lanes;
       columns += code.shape.least) {
    const std::size_t which = columns / code.shape.least;
    for (std::size_t k = 0; k < std::size(kRows); ++k) {
      const std::size_t rows = kRows[k], inner = kInner[(which + k) % std::size(kInner)];
      const Case where(std::to_string(rows) + " rows, " + std::to_string(inner) + " inner, " +
                       std::to_string(columns) + " columns");
      Problem<T> problem(code.shape, rows, inner, columns, random);
      Sums<T> sums = problem.sums();
      code.squared_differences(sums);
      problem.check(sums, squared_difference);
      code.absolute_differences(sums);
      problem.check(sums, absolute_difference);
      code.products(sums);
      problem.check(sums, product);
      problem.make_positive(code.shape);
      code.chi_squares(sums);
      problem.check(sums, chi_square);
      sums.column_start = problem.column_start.data();
      code.products(sums);
      problem.check(sums, product);
      sums.factor = T(-2);
      sums.row_start = problem.row_start.data();
      code.products(sums);
      problem.check(sums, product);
    }
  }
}

TEST("sums of products and differences agree with plain loops, float") {
  for_each_code<float>(check_sums<float>);
}
TEST("sums of products and differences agree with plain loops, double") {
  for_each_code<double>(check_sums<double>);
}

template <class T>
void check_sparse_products(const VectorCode<T>& code) {
  Random random(4);
  for (std::size_t columns = code.shape.least; columns <= 7 * code.shape.lanes;
       columns += code.shape.least) {
    for (const std::size_t inner : kInner) {
      const Case where(std::to_string(inner) + " inner, " + std::to_string(columns) + " columns");
      Problem<T> problem(code.shape, 1, inner, columns, random);
      std::vector<std::int32_t> indices;
      std::vector<T> values;
      for (std::size_t f = 0; f < inner; ++f) {
        T& value = problem.left[1 + f];
        if (random.below(3) > 0) value = T(0);
        if (value == 0) continue;
        indices.push_back(static_cast<std::int32_t>(f));
        values.push_back(value);
      }
      Sums<T> sums = problem.sums();
      sums.left = nullptr;
      code.sparse_products({indices.data(), values.data(), values.size()}, sums);
      problem.check(sums, product);
      sums.factor = T(-2);
      sums.row_start = problem.row_start.data();
      sums.column_start = problem.column_start.data();
      code.sparse_products({indices.data(), values.data(), values.size()}, sums);
      problem.check(sums, product);
    }
  }
}

TEST("sums of products of a sparse row agree with plain loops") {
  for_each_code<float>(check_sparse_products<float>);
  for_each_code<double>(check_sparse_products<double>);
}

// ---- placing

template <class In, class T, class Wide, class Place>
void check_place(const Place& place) {
  Random random(5);
  for (std::size_t count = 0; count <= 70; ++count) {
    for (const bool moved : {false, true}) {
      const Case where("rows of " + type_name<In>() + ", " + std::to_string(count) + " numbers" +
                       (moved ? ", moved" : ""));
      const std::vector<In> row = random.values<In>(count + 1, -3, 3);
      const std::vector<Wide> origin = random.values<Wide>(count + 1, -3, 3);
      const std::vector<Wide> scales = random.values<Wide>(count + 1, 0.1, 2);
      std::vector<T> out(count + 2, T(-77.25)), expected = out;
      double squares = 0.0;
      for (std::size_t f = 0; f < count; ++f) {
        const Wide value = moved ? Wide(row[f + 1]) - origin[f + 1] : Wide(row[f + 1]);
        expected[f + 1] = static_cast<T>(value * scales[f + 1]);
        squares += static_cast<double>(expected[f + 1]) * static_cast<double>(expected[f + 1]);
      }
      const T norm = place(row.data() + 1, moved ? origin.data() + 1 : nullptr, scales.data() + 1,
                           count, out.data() + 1);
      CHECK(out == expected);
      CHECK_NEAR(norm, squares, 10 * epsilon<T>() * squares);
    }
  }
}

TEST("rows are placed exactly, in the wider precision, and nothing around them is written") {
  for_each_code<float>([](const VectorCode<float>& code) {
    check_place<float, float, float>(code.place_float);
    check_place<double, float, double>(code.place_double);
  });
  for_each_code<double>([](const VectorCode<double>& code) {
    check_place<float, double, double>(code.place_float);
    check_place<double, double, double>(code.place_double);
  });
}

template <class In, class T, class Wide, class Place>
void check_norms_of_bad_rows(const Place& place) {
  using limits = std::numeric_limits<In>;
  std::vector<In> bad = {limits::quiet_NaN(), limits::infinity(), -limits::infinity()};
  if (sizeof(In) > sizeof(T)) bad.push_back(static_cast<In>(1e300));
  for (const std::size_t count : {1, 7, 8, 31, 32, 33, 70}) {
    for (std::size_t f = 0; f < count; ++f) {
      for (const In value : bad) {
        std::vector<In> row(count, In(1));
        row[f] = value;
        const std::vector<decltype(In() + T())> scales(count, 1);
        std::vector<T> out(count);
        CHECK(!std::isfinite(place(row.data(), nullptr, scales.data(), count, out.data())));
      }
    }
  }
}

TEST("a number that is not finite shows in the sum of squares of a placed row, wherever it is") {
  for_each_code<float>([](const VectorCode<float>& code) {
    check_norms_of_bad_rows<float, float, float>(code.place_float);
    check_norms_of_bad_rows<double, float, double>(code.place_double);
  });
  for_each_code<double>([](const VectorCode<double>& code) {
    check_norms_of_bad_rows<float, double, double>(code.place_float);
    check_norms_of_bad_rows<double, double, double>(code.place_double);
  });
}

// ---- the largest

template <class T>
void check_largest(const VectorCode<T>& code) {
  Random random(6);
  constexpr std::size_t rows = 40;
  for (std::size_t columns = 1; columns <= 4 * code.shape.lanes; ++columns) {
    const Case where(std::to_string(columns) + " columns");
    const std::size_t padded = code.shape.padded(columns);
    std::vector<T> scores(rows * padded, -std::numeric_limits<T>::infinity());
    std::vector<std::int64_t> expected(rows + 2, -9), got = expected;
    for (std::size_t r = 0; r < rows; ++r) {
      T* const row = scores.data() + r * padded;
      const std::size_t different = 1 + r % 4;
      for (std::size_t j = 0; j < columns; ++j)
        row[j] = static_cast<T>(random.below(different)) - 2;
      expected[r + 1] = std::max_element(row, row + columns) - row;
    }
    code.largest(scores.data(), rows, padded, columns, got.data() + 1);
    CHECK(got == expected);
  }
}

TEST("the largest of scores is the first of equal ones") {
  for_each_code<float>(check_largest<float>);
  for_each_code<double>(check_largest<double>);
}

TEST("the first of scores that are all minus infinity is the largest") {
  for_each_code<float>([](const VectorCode<float>& code) {
    const std::vector<float> scores(3 * code.shape.lanes, -std::numeric_limits<float>::infinity());
    std::int64_t got = -9;
    code.largest(scores.data(), 1, scores.size(), 3, &got);
    CHECK(got == 0);
  });
}

template <class T>
void check_largest_of_no_numbers(const VectorCode<T>& code) {
  for (std::size_t columns = 1; columns <= 2 * code.shape.lanes; ++columns) {
    const Case where(std::to_string(columns) + " columns");
    for (const bool padding_too : {false, true}) {
      std::vector<T> scores(code.shape.padded(columns), -std::numeric_limits<T>::infinity());
      for (std::size_t j = 0; j < columns; ++j) {
        std::fill_n(scores.begin(), padding_too ? scores.size() : j + 1,
                    std::numeric_limits<T>::quiet_NaN());
        std::int64_t got = -9;
        code.largest(scores.data(), 1, scores.size(), columns, &got);
        CHECK(got >= 0 && got < static_cast<std::int64_t>(columns));
      }
    }
  }
}

TEST("scores that are no numbers give one of the classes") {
  for_each_code<float>(check_largest_of_no_numbers<float>);
  for_each_code<double>(check_largest_of_no_numbers<double>);
}

}  // namespace
}  // namespace widemargin::tests

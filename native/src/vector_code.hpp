// The body of each instruction set's translation unit, which defines WIDEMARGIN_VECTOR_BYTES,
// WIDEMARGIN_ROWS_AT_ONCE and WIDEMARGIN_INSTRUCTION_SET before it includes this.
//
// Everything here has internal linkage and calls no library function that might be emitted as a
// shared inline copy: the linker would be free to keep the copy that only newer CPUs can run.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "widemargin/vector_code.hpp"

// Sums live in registers only if the loops over them are unrolled as a whole.
#if defined(__clang__)
#define WIDEMARGIN_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define WIDEMARGIN_UNROLL _Pragma("GCC unroll 16")
#else
#define WIDEMARGIN_UNROLL
#endif

namespace widemargin {
namespace {

#if defined(__GNUC__)
template <class T, std::size_t Lanes>
struct RegisterOf {
  typedef T type __attribute__((vector_size(Lanes * sizeof(T))));
  typedef T unaligned __attribute__((vector_size(Lanes * sizeof(T)), aligned(sizeof(T))));
};
template <class T, std::size_t Lanes>
using Register = typename RegisterOf<T, Lanes>::type;

template <std::size_t Lanes, class T>
inline Register<T, Lanes> load(const T* from) {
  return *reinterpret_cast<const typename RegisterOf<T, Lanes>::unaligned*>(from);
}
template <std::size_t Lanes, class T>
inline void store(T* to, Register<T, Lanes> value) {
  *reinterpret_cast<typename RegisterOf<T, Lanes>::unaligned*>(to) = value;
}
template <class V>
inline V absolute(V value) {
  return value < 0 ? -value : value;
}
template <class V>
inline V positive_or_one(V value) {
  return value > 0 ? value : V{} + 1;
}
#else
// A register in plain C++, for compilers without vector types.
template <class T, std::size_t Lanes>
struct Register {
  T lane[Lanes];

  template <class Operation>
  static Register each(const Operation& operation) {
    Register result;
    for (std::size_t l = 0; l < Lanes; ++l) result.lane[l] = operation(l);
    return result;
  }
  friend Register operator+(const Register& a, const Register& b) {
    return each([&](std::size_t l) { return a.lane[l] + b.lane[l]; });
  }
  friend Register operator-(const Register& a, const Register& b) {
    return each([&](std::size_t l) { return a.lane[l] - b.lane[l]; });
  }
  friend Register operator*(const Register& a, const Register& b) {
    return each([&](std::size_t l) { return a.lane[l] * b.lane[l]; });
  }
  friend Register operator/(const Register& a, const Register& b) {
    return each([&](std::size_t l) { return a.lane[l] / b.lane[l]; });
  }
  friend Register operator+(const Register& a, T b) {
    return each([&](std::size_t l) { return a.lane[l] + b; });
  }
  friend Register operator-(const Register& a, T b) {
    return each([&](std::size_t l) { return a.lane[l] - b; });
  }
  friend Register operator*(const Register& a, T b) {
    return each([&](std::size_t l) { return a.lane[l] * b; });
  }
};
template <std::size_t Lanes, class T>
inline Register<T, Lanes> load(const T* from) {
  return Register<T, Lanes>::each([&](std::size_t l) { return from[l]; });
}
template <std::size_t Lanes, class T>
inline void store(T* to, const Register<T, Lanes>& value) {
  for (std::size_t l = 0; l < Lanes; ++l) to[l] = value.lane[l];
}
template <class V>
inline V absolute(V value) {
  for (auto& each : value.lane) each = each < 0 ? -each : each;
  return value;
}
template <class V>
inline V positive_or_one(V value) {
  for (auto& each : value.lane) each = each > 0 ? each : 1;
  return value;
}
#endif

template <class T>
constexpr std::size_t kLanes = WIDEMARGIN_VECTOR_BYTES / sizeof(T);

// Half a register is one of its own where that is no less than 16 bytes.
template <class T>
constexpr std::size_t kHalf = WIDEMARGIN_VECTOR_BYTES >= 32 ? kLanes<T> / 2 : kLanes<T>;

struct Product {
  template <class V, class T>
  static V add(V sum, T left, V right) {
    return sum + right * left;
  }
};
struct SquaredDifference {
  template <class V, class T>
  static V add(V sum, T left, V right) {
    const V difference = right - left;
    return sum + difference * difference;
  }
};
struct AbsoluteDifference {
  template <class V, class T>
  static V add(V sum, T left, V right) {
    return sum + absolute(right - left);
  }
};
// Halves are added up, and the quotient, which is 2 at the most, is taken before the product: so
// nothing overflows that the result does not.
struct ChiSquare {
  template <class V, class T>
  static V add(V sum, T left, V right) {
    const V difference = right - left;
    const V mean = right * T(0.5) + left * T(0.5);
    return sum + difference * (difference / positive_or_one(mean));
  }
};

template <std::size_t Lanes, class T>
inline void finish(const Sums<T>& sums, std::size_t row, std::size_t column,
                   Register<T, Lanes> sum) {
  Register<T, Lanes> value = sum * sums.factor;
  if (sums.column_start != nullptr) value = value + load<Lanes>(sums.column_start + column);
  if (sums.row_start != nullptr) value = value + sums.row_start[row];
  store<Lanes>(sums.out + row * sums.columns + column, value);
}

// Rows [first, first + Rows) by the panel of Registers registers that begins at `column`.
template <class Term, std::size_t Rows, std::size_t Registers, std::size_t Lanes, class T>
inline void add_up_block(const Sums<T>& sums, std::size_t first, std::size_t column) {
  using Numbers = Register<T, Lanes>;
  const T* panel = sums.packed + column * sums.inner;
  const T* left = sums.left + first * sums.left_stride;
  Numbers total[Rows][Registers];
  WIDEMARGIN_UNROLL
  for (std::size_t r = 0; r < Rows; ++r) {
    WIDEMARGIN_UNROLL
    for (std::size_t p = 0; p < Registers; ++p) total[r][p] = Numbers{};
  }
  for (std::size_t f = 0; f < sums.inner; ++f, panel += Registers * Lanes) {
    Numbers right[Registers];
    WIDEMARGIN_UNROLL
    for (std::size_t p = 0; p < Registers; ++p) right[p] = load<Lanes>(panel + p * Lanes);
    WIDEMARGIN_UNROLL
    for (std::size_t r = 0; r < Rows; ++r) {
      const T each = left[r * sums.left_stride + f];
      WIDEMARGIN_UNROLL
      for (std::size_t p = 0; p < Registers; ++p) {
        total[r][p] = Term::template add<Numbers>(total[r][p], each, right[p]);
      }
    }
  }
  WIDEMARGIN_UNROLL
  for (std::size_t r = 0; r < Rows; ++r) {
    WIDEMARGIN_UNROLL
    for (std::size_t p = 0; p < Registers; ++p) {
      finish<Lanes>(sums, first + r, column + p * Lanes, total[r][p]);
    }
  }
}

// Calls of_panel.operator()<registers, lanes>(first column) as PanelShape cuts the columns.
template <class T, class OfPanel>
inline void for_each_panel(std::size_t columns, const OfPanel& of_panel) {
  constexpr std::size_t lanes = kLanes<T>;
  std::size_t column = 0;
  for (; column + 3 * lanes <= columns; column += 3 * lanes) {
    of_panel.template operator()<3, lanes>(column);
  }
  if (column + 2 * lanes <= columns) {
    of_panel.template operator()<2, lanes>(column);
    column += 2 * lanes;
  } else if (column + lanes <= columns) {
    of_panel.template operator()<1, lanes>(column);
    column += lanes;
  }
  if (column < columns) of_panel.template operator()<1, kHalf<T>>(column);
}

template <class Term, class T>
void add_up(const Sums<T>& sums) {
  for_each_panel<T>(sums.columns,
                    [&]<std::size_t Registers, std::size_t Lanes>(std::size_t column) {
                      constexpr std::size_t at_once = WIDEMARGIN_ROWS_AT_ONCE;
                      std::size_t row = 0;
                      for (; row + at_once <= sums.rows; row += at_once) {
                        add_up_block<Term, at_once, Registers, Lanes>(sums, row, column);
                      }
                      for (; row < sums.rows; ++row)
                        add_up_block<Term, 1, Registers, Lanes>(sums, row, column);
                    });
}

template <class T>
void sparse_products(const SparseEntries<T>& entries, const Sums<T>& sums) {
  for_each_panel<T>(
      sums.columns, [&]<std::size_t Registers, std::size_t Lanes>(std::size_t column) {
        const T* panel = sums.packed + column * sums.inner;
        Register<T, Lanes> total[Registers] = {};
        for (std::size_t e = 0; e < entries.count; ++e) {
          const T* right = panel + static_cast<std::size_t>(entries.indices[e]) * Registers * Lanes;
          WIDEMARGIN_UNROLL
          for (std::size_t p = 0; p < Registers; ++p) {
            total[p] = Product::add(total[p], entries.values[e], load<Lanes>(right + p * Lanes));
          }
        }
        for (std::size_t p = 0; p < Registers; ++p) {
          finish<Lanes>(sums, 0, column + p * Lanes, total[p]);
        }
      });
}

template <bool Moved, class In, class T, class Wide>
inline T place_row(const In* row, const Wide* origin, const Wide* scale, std::size_t count,
                   T* out) {
  constexpr std::size_t lanes = kLanes<T>;
  using Numbers = Register<T, lanes>;
  // Two sums of many lanes each: a single one would be taken in order, a number at a time.
  Numbers squares[2] = {};
  const auto place_register = [&](std::size_t f, Numbers& square) {
    if constexpr (std::is_same_v<In, T>) {
      Numbers value = load<lanes>(row + f);
      if constexpr (Moved) value = value - load<lanes>(origin + f);
      value = value * load<lanes>(scale + f);
      square = square + value * value;
      store<lanes>(out + f, value);
    } else {
      T placed[lanes];
      for (std::size_t l = 0; l < lanes; ++l) {
        const Wide value = Moved ? Wide(row[f + l]) - origin[f + l] : Wide(row[f + l]);
        placed[l] = static_cast<T>(value * scale[f + l]);
      }
      const Numbers value = load<lanes>(placed);
      square = square + value * value;
      store<lanes>(out + f, value);
    }
  };
  std::size_t f = 0;
  for (; f + 2 * lanes <= count; f += 2 * lanes) {
    place_register(f, squares[0]);
    place_register(f + lanes, squares[1]);
  }
  T total = 0;
  for (; f < count; ++f) {
    const Wide value = Moved ? Wide(row[f]) - origin[f] : Wide(row[f]);
    out[f] = static_cast<T>(value * scale[f]);
    total += out[f] * out[f];
  }
  if (count < 2 * lanes) return total;
  T sums[lanes];
  store<lanes>(sums, squares[0] + squares[1]);
  for (std::size_t l = 0; l < lanes; ++l) total += sums[l];
  return total;
}

template <class In, class T, class Wide>
T place(const In* row, const Wide* origin, const Wide* scale, std::size_t count, T* out) {
  return origin == nullptr ? place_row<false>(row, origin, scale, count, out)
                           : place_row<true>(row, origin, scale, count, out);
}

// exp(-v) = 2^n exp(r) with n the integer nearest to -v / ln 2 and |r| <= ln 2 / 2. Adding the
// magic number leaves n in the low bits of the mantissa, from where a shift puts it into the
// exponent: no conversion that SIMD lacks.
template <class T>
struct PowerOfTwo;
template <>
struct PowerOfTwo<float> {
  static constexpr float kEnd = 87.0f;  // of v: beyond it the result is no normal number
  std::int32_t exponent;                // n, where a number has its exponent

  // 2^n times a number between 1/2 and 2
  float times(float number) const {
    return __builtin_bit_cast(float, __builtin_bit_cast(std::int32_t, number) + exponent);
  }
};
template <>
struct PowerOfTwo<double> {
  static constexpr double kEnd = 708.0;
  std::int64_t exponent;

  double times(double number) const {
    return __builtin_bit_cast(double, __builtin_bit_cast(std::int64_t, number) + exponent);
  }
};

// Of v between 0 and kEnd: 2^n, r, and `series` = (exp(r) - 1) / r, so that whoever needs exp(r) -
// 1 has it without cancellation.
template <class T>
struct ReducedExponential {
  PowerOfTwo<T> power;
  T rest, series;
};

inline ReducedExponential<float> reduced_exponential(float v) {
  constexpr float kLog2e = 1.44269504088896341f, kMagic = 12582912.0f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const float x = -v;
  const float shifted = x * kLog2e + kMagic;
  const float n = shifted - kMagic;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  return {{static_cast<std::int32_t>(__builtin_bit_cast(std::uint32_t, shifted) << 23)}, r, p};
}

inline ReducedExponential<double> reduced_exponential(double v) {
  constexpr double kLog2e = 1.44269504088896340736, kMagic = 6755399441055744.0;
  constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  const double x = -v;
  const double shifted = x * kLog2e + kMagic;
  const double n = shifted - kMagic;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  return {{static_cast<std::int64_t>(__builtin_bit_cast(std::uint64_t, shifted) << 52)}, r, p};
}

template <class T>
inline T exp_of_negative_one(T v) {
  constexpr T end = PowerOfTwo<T>::kEnd;
  const T limited = v < end ? v : end;
  const ReducedExponential<T> reduced = reduced_exponential(limited > 0 ? limited : T(0));
  const T result = reduced.power.times(reduced.series * reduced.rest + 1);
  return v < end ? result : T(0);
}

template <class T>
void exp_of_negative(T* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = exp_of_negative_one(values[i]);
}

// tanh(v) = -m / (2 + m) with m = exp(-2v) - 1 = 2^n (exp(r) - 1) + (2^n - 1) for v > 0. Near 0,
// where digits would be lost, n is 0 and m a product.
template <class T>
inline T tanh_one(T v) {
  constexpr T end = PowerOfTwo<T>::kEnd;
  const T doubled = 2 * (v < 0 ? -v : v);
  const ReducedExponential<T> reduced = reduced_exponential(doubled < end ? doubled : end);
  const T power = reduced.power.times(T(1));
  const T less_one = power * (reduced.series * reduced.rest) + (power - 1);
  const T result = -less_one / (2 + less_one);
  const T with_sign = v < 0 ? -result : result;
  return v == v ? with_sign : v;
}

template <class T>
void tanh_of(T* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = tanh_one(values[i]);
}

template <class T>
void largest(const T* scores, std::size_t rows, std::size_t columns, std::size_t count,
             std::int64_t* out) {
  constexpr std::size_t half = kHalf<T>;
  for (std::size_t r = 0; r < rows; ++r, scores += columns) {
    T most[half];
    for (std::size_t l = 0; l < half; ++l) most[l] = scores[l];
    for (std::size_t j = half; j < columns; j += half) {
      for (std::size_t l = 0; l < half; ++l) {
        most[l] = scores[j + l] > most[l] ? scores[j + l] : most[l];
      }
    }
    T greatest = most[0];
    for (std::size_t l = 1; l < half; ++l) greatest = most[l] > greatest ? most[l] : greatest;
    std::size_t j = 0;
    while (j < count && !(scores[j] == greatest)) ++j;
    out[r] = j < count ? static_cast<std::int64_t>(j) : 0;
  }
}

void add_scaled(const float* __restrict values, double factor, double constant,
                double* __restrict sums, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] = (sums[i] + constant) + factor * static_cast<double>(values[i]);
  }
}

}  // namespace
}  // namespace widemargin

#include "box_steps.hpp"
#include "label_steps.hpp"
#include "plane_steps.hpp"

namespace widemargin {
namespace {

template <class T>
constexpr VectorCode<T> all_code() {
  return {{kLanes<T>, kHalf<T>},
          add_up<Product, T>,
          add_up<SquaredDifference, T>,
          add_up<AbsoluteDifference, T>,
          add_up<ChiSquare, T>,
          sparse_products<T>,
          place<float, T, T>,
          place<double, T, double>,
          exp_of_negative<T>,
          tanh_of<T>,
          largest<T>,
          ascend<T>,
          judge<T>,
          weigh_row<T>,
          spread_row<T>};
}

}  // namespace

extern const InstructionSet WIDEMARGIN_INSTRUCTION_SET;
constexpr InstructionSet WIDEMARGIN_INSTRUCTION_SET = {
    WIDEMARGIN_NAME, all_code<float>(), all_code<double>(), add_scaled,  climb,
    look_at_boxes,   follow_pair,       find_extremes,      find_partner};

}  // namespace widemargin

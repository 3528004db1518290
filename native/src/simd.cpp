#include "widemargin/simd.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

// Function multiversioning needs ifunc symbols, which glibc on x86-64 has; elsewhere the baseline
// build serves.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && defined(__GNUC__)
#define WIDEMARGIN_MULTIVERSION \
  __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define WIDEMARGIN_MULTIVERSION
#endif

namespace widemargin {
namespace {

// exp(-v) = 2^n exp(r) with n the integer nearest to -v / ln 2 and |r| <= ln 2 / 2. Adding the
// magic number leaves n in the low bits of the mantissa, from where a shift puts it into the
// exponent: no conversion that SIMD lacks.
inline float exp_negative_one(float v) {
  constexpr float kLog2e = 1.44269504088896341f, kMagic = 12582912.0f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const float x = v < 87.0f ? -v : -87.0f;
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
  p = p * r + 1.0f;
  const auto exponent = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) << 23);
  const float result = std::bit_cast<float>(std::bit_cast<std::int32_t>(p) + exponent);
  return v < 87.0f ? result : 0.0f;
}

inline double exp_negative_one(double v) {
  constexpr double kLog2e = 1.44269504088896340736, kMagic = 6755399441055744.0;
  constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  const double x = v < 708.0 ? -v : -708.0;
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
  p = p * r + 1.0;
  const auto exponent = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(shifted) << 52);
  const double result = std::bit_cast<double>(std::bit_cast<std::int64_t>(p) + exponent);
  return v < 708.0 ? result : 0.0;
}

}  // namespace

WIDEMARGIN_MULTIVERSION
void exp_of_negative(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = exp_negative_one(values[i]);
}

WIDEMARGIN_MULTIVERSION
void exp_of_negative(double* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = exp_negative_one(values[i]);
}

WIDEMARGIN_MULTIVERSION
void add_absolute_difference(float x, const float* others, float* accumulator, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) accumulator[i] += std::fabs(x - others[i]);
}

WIDEMARGIN_MULTIVERSION
void add_absolute_difference(double x, const double* others, double* accumulator,
                             std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) accumulator[i] += std::fabs(x - others[i]);
}

const char* instruction_set() {
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return "avx512";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
  return "baseline";
}

}  // namespace widemargin

// What a row asks of a linear machine: formulas of a single row, by its scores f[0..k) and its
// class y. Every rule offers
//   value(f, y, k)                             the loss
//   pull(f, y, k, out)                         minus a subgradient of it in f
// and, unless its dual is trivial (`has_dual`),
//   solve(f, y, k, cap, curvature, now, next)  the coefficients of the row that are best in the
//   dual,
//                                              all others staying as they are
//   dual(now, y, k, cap)                       what the coefficients of the row add to the dual
//
// Weights are a multiple of sum_i x_i coefficients_i', so that the coefficients of a row are minus
// a subgradient of cap times its loss once all is solved. Where they change by d, the scores of the
// row change by curvature * d, and `solve` maximises
//   dual(next) - f . (next - now) - curvature / 2 |next - now|^2.
// The duality gap is the sum over rows of cap * value(f) - dual(now) + f . now, all of them >= 0.
//
// Sources: Chen, Chen, Yang, "Characterizing inverse time dependency in multi-class learning"
// (2011), equations 6, 9 and 11; the exact step of Crammer and Singer's loss is a projection on a
// simplex: Keerthi et al., "A sequential dual method for large scale multi-class linear SVMs"
// (2008).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "widemargin/aligned.hpp"
#include "widemargin/vector_code.hpp"

namespace widemargin {

// The largest score of another class than y, the first of equal ones; there are two classes or
// more.
inline std::size_t best_other(const double* f, std::size_t y, std::size_t k) {
  std::size_t best = y == 0 ? 1 : 0;
  for (std::size_t c = best + 1; c < k; ++c) {
    if (c != y && f[c] > f[best]) best = c;
  }
  return best;
}

// Where a falling function is zero, between `low` and `high`: Newton steps, and halves of the
// bracket where these leave it or do not get shorter. look(x) gives the value, and minus the slope.
template <class Look>
double find_zero(double low, double high, double at, double tolerance, const Look& look) {
  double step = high - low;
  for (int round = 0; round < 100; ++round) {
    const auto [value, fall] = look(at);
    if (std::abs(value) <= tolerance) break;
    (value > 0 ? low : high) = at;
    const double newton = at + value / fall;
    const bool is_good =
        newton > low && newton < high && 2 * std::abs(value) < std::abs(step) * fall;
    const double next = is_good ? newton : (low + high) / 2;
    step = next - at;
    if (next == at) break;
    at = next;
  }
  return at;
}

// Crammer and Singer: max(0, largest over c != y of 1 + f[c] - f[y]). A margin of exactly 1 is
// satisfied. Coefficients sum to zero; that of y is cap at the most, those of others not positive.
struct WorstHinge {
  static constexpr bool has_dual = true;

  static double value(const double* f, std::size_t y, std::size_t k) {
    return std::max(0.0, 1 + f[best_other(f, y, k)] - f[y]);
  }

  static void pull(const double* f, std::size_t y, std::size_t k, double* out) {
    std::fill_n(out, k, 0.0);
    const std::size_t worst = best_other(f, y, k);
    if (1 + f[worst] - f[y] > 0) out[y] = 1, out[worst] = -1;
  }

  // next[c] = room[c] - max(0, high[c] - level) / curvature, with room = cap for y and 0 for the
  // others; the level is where these sum to zero. Members, those with high above the level, are
  // found from all classes down: the level only rises.
  static void solve(const double* f, std::size_t y, std::size_t k, double cap, double curvature,
                    const double* now, double* next) {
    double sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      next[c] = f[c] - curvature * now[c] + (c == y ? curvature * cap : 1.0);
      sum += next[c];
    }
    const double size = curvature * cap;
    std::size_t members = k;
    double level = (sum - size) / static_cast<double>(k);
    for (std::size_t round = 0; round < k; ++round) {
      double above = 0;
      std::size_t count = 0;
      for (std::size_t c = 0; c < k; ++c) {
        const bool is_member = next[c] > level;
        above += is_member ? next[c] : 0.0;
        count += is_member ? 1 : 0;
      }
      if (count == members || count == 0) break;
      members = count;
      level = (above - size) / static_cast<double>(count);
    }
    const double inverse = 1 / curvature;
    double given = 0;
    for (std::size_t c = 0; c < k; ++c) {
      const double taken = std::min(std::max(next[c] - level, 0.0) * inverse, cap);
      next[c] = -taken;
      given += c == y ? 0.0 : taken;
    }
    next[y] = std::min(given, cap);
  }

  static double dual(const double* now, std::size_t y, std::size_t, double) { return now[y]; }
};

// Weston and Watkins: sum over c != y of max(0, 1 + f[c] - f[y]). Coefficients of other classes are
// between -cap and 0, and that of y is minus their sum.
struct SummedHinge {
  static constexpr bool has_dual = true;

  static double value(const double* f, std::size_t y, std::size_t k) {
    double sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += c == y ? 0.0 : std::max(0.0, 1 + f[c] - f[y]);
    return sum;
  }

  static void pull(const double* f, std::size_t y, std::size_t k, double* out) {
    double count = 0;
    for (std::size_t c = 0; c < k; ++c) {
      out[c] = c != y && 1 + f[c] - f[y] > 0 ? -1.0 : 0.0;
      count -= out[c];
    }
    out[y] = count;
  }

  // next[c] = -clip(wish[c] - total, 0, cap), with the total of all these; what is asked for falls
  // as the total rises.
  static void solve(const double* f, std::size_t y, std::size_t k, double cap, double curvature,
                    const double* now, double* next) {
    for (std::size_t c = 0; c < k; ++c) {
      next[c] = c == y ? 0.0 : (1 + f[c] - f[y]) / curvature - now[c] + now[y];
    }
    const double most = cap * static_cast<double>(k - 1);
    const auto short_of = [&](double at) {
      double asked = 0, fall = 1;
      for (std::size_t c = 0; c < k; ++c) {
        if (c == y) continue;
        asked += std::clamp(next[c] - at, 0.0, cap);
        fall += next[c] > at && next[c] - at < cap ? 1.0 : 0.0;
      }
      return std::pair(asked - at, fall);
    };
    const double total = find_zero(0, most, std::min(now[y], most), 1e-12 * most, short_of);
    double sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      if (c == y) continue;
      const double taken = std::clamp(next[c] - total, 0.0, cap);
      next[c] = -taken;
      sum += taken;
    }
    next[y] = sum;
  }

  static double dual(const double* now, std::size_t y, std::size_t, double) { return now[y]; }
};

// x log x, where x is a probability that rounding may have put below zero.
inline double times_log(double x) { return x > 0 ? x * std::log(x) : 0.0; }

// Multinomial logistic: log sum_c exp(f[c]) - f[y]. Coefficients are cap (1[c = y] - p[c]), with
// probabilities p, and the dual is cap times the entropy of p.
struct Softmax {
  static constexpr bool has_dual = true;

  static double value(const double* f, std::size_t y, std::size_t k) {
    const double most = *std::max_element(f, f + k);
    double sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += std::exp(f[c] - most);
    return most + std::log(sum) - f[y];
  }

  static void pull(const double* f, std::size_t y, std::size_t k, double* out) {
    const double most = *std::max_element(f, f + k);
    for (std::size_t c = 0; c < k; ++c) out[c] = most - f[c];
    exp_of_negative(out, k);
    double sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += out[c];
    for (std::size_t c = 0; c < k; ++c) out[c] = (c == y ? 1.0 : 0.0) - out[c] / sum;
  }

  // The scores after the step are h = u - stiffness p, with p = softmax(h): so with v = log p and
  // the logarithm L of the sum of exponentials
  //   v[c] + L + stiffness exp(v[c]) = u[c],   sum_c exp(v[c]) = 1.
  // Newton steps in all of these together cost a few sums, as the matrix is a diagonal with a
  // border. Probabilities are kept below 1, from where every step is one towards the solution.
  static void solve(const double* f, std::size_t y, std::size_t k, double cap, double curvature,
                    const double* now, double* next) {
    constexpr std::size_t kAtOnce = 64;
    double few[3 * kAtOnce];
    AlignedVector<double> many(k > kAtOnce ? 3 * k : 0);
    double* u = k > kAtOnce ? many.data() : few;
    double *v = u + k, *p = v + k;
    const double stiffness = curvature * cap;
    const double most = *std::max_element(f, f + k);
    double sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      u[c] = f[c] + curvature * ((c == y ? cap : 0.0) - now[c]);
      p[c] = most - f[c];
    }
    exp_of_negative(p, k);
    for (std::size_t c = 0; c < k; ++c) sum += p[c];
    double level = most + std::log(sum);
    for (std::size_t c = 0; c < k; ++c) {
      v[c] = f[c] - level;
      p[c] /= sum;
    }
    for (int round = 0; round < 60; ++round) {
      double top = 0, bottom = 0, total = 0, worst = 0;
      for (std::size_t c = 0; c < k; ++c) {
        const double rest = u[c] - v[c] - level - stiffness * p[c];
        const double share = p[c] / (1 + stiffness * p[c]);
        next[c] = rest;
        top += share * rest;
        bottom += share;
        total += p[c];
        worst = std::max(worst, std::abs(rest) * p[c]);
      }
      if (worst <= 1e-9 && std::abs(total - 1) <= 1e-9) break;
      const double shift = (top - (1 - total)) / bottom;
      level += shift;
      for (std::size_t c = 0; c < k; ++c) {
        v[c] = std::min(v[c] + (next[c] - shift) / (1 + stiffness * p[c]), 0.0);
        p[c] = -v[c];
      }
      exp_of_negative(p, k);
    }
    sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += p[c];
    for (std::size_t c = 0; c < k; ++c) next[c] = cap * ((c == y ? 1.0 : 0.0) - p[c] / sum);
  }

  static double dual(const double* now, std::size_t y, std::size_t k, double cap) {
    double sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += times_log((c == y ? 1.0 : 0.0) - now[c] / cap);
    return -cap * sum;
  }
};

// Perceptron: largest f[c] - f[y]. Of equal scores the first counts as the largest. The machine of
// zeros is the best one that there is under a regulariser, so there is nothing to solve.
struct WorstMistake {
  static constexpr bool has_dual = false;

  static double value(const double* f, std::size_t y, std::size_t k) {
    return *std::max_element(f, f + k) - f[y];
  }

  static void pull(const double* f, std::size_t y, std::size_t k, double* out) {
    std::fill_n(out, k, 0.0);
    const auto best = static_cast<std::size_t>(std::max_element(f, f + k) - f);
    if (best != y) out[y] = 1, out[best] = -1;
  }
};

// One class against the rest: the sum of a loss of one score over all classes, with the sign 1 for
// y and -1 for the others.
template <class Loss>
struct AgainstRest {
  static constexpr bool has_dual = Loss::has_dual;

  static double sign(std::size_t c, std::size_t y) { return c == y ? 1.0 : -1.0; }

  static double value(const double* f, std::size_t y, std::size_t k) {
    double sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += Loss::value(sign(c, y) * f[c]);
    return sum;
  }

  static void pull(const double* f, std::size_t y, std::size_t k, double* out) {
    for (std::size_t c = 0; c < k; ++c) out[c] = sign(c, y) * Loss::pull(sign(c, y) * f[c]);
  }

  static void solve(const double* f, std::size_t y, std::size_t k, double cap, double curvature,
                    const double* now, double* next) {
    for (std::size_t c = 0; c < k; ++c) {
      const double s = sign(c, y);
      next[c] = s * Loss::solve(s * f[c], cap, curvature, s * now[c]);
    }
  }

  static double dual(const double* now, std::size_t y, std::size_t k, double cap) {
    double sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += Loss::dual(sign(c, y) * now[c], cap);
    return sum;
  }
};

// max(0, 1 - m). A margin of exactly 1 is satisfied.
struct Hinge {
  static constexpr bool has_dual = true;
  static double value(double margin) { return std::max(0.0, 1 - margin); }
  static double pull(double margin) { return margin < 1 ? 1.0 : 0.0; }
  static double solve(double margin, double cap, double curvature, double now) {
    return std::clamp(now + (1 - margin) / curvature, 0.0, cap);
  }
  static double dual(double now, double) { return now; }
};

// log(1 + exp(-m)). The dual is cap times the entropy of now / cap.
struct BinaryEntropy {
  static constexpr bool has_dual = true;
  static double value(double margin) {
    return std::max(0.0, -margin) + std::log1p(std::exp(-std::abs(margin)));
  }
  static double pull(double margin) { return 1 / (1 + std::exp(margin)); }
  // The margin after the step is margin + curvature (cap pull(that) - now).
  static double solve(double margin, double cap, double curvature, double now) {
    const double start = margin - curvature * now, stiffness = curvature * cap;
    const double high = start + stiffness, tolerance = 1e-9 * (1 + std::abs(margin));
    const auto short_of = [&](double after) {
      const double share = pull(after);
      return std::pair(start + stiffness * share - after, 1 + stiffness * share * (1 - share));
    };
    return cap * pull(find_zero(start, high, std::clamp(margin, start, high), tolerance, short_of));
  }
  static double dual(double now, double cap) {
    return -cap * (times_log(now / cap) + times_log(1 - now / cap));
  }
};

// max(0, -m). At zero a row counts as wrong, or no first step would be taken.
struct Mistake {
  static constexpr bool has_dual = false;
  static double value(double margin) { return std::max(0.0, -margin); }
  static double pull(double margin) { return margin <= 0 ? 1.0 : 0.0; }
};

}  // namespace widemargin

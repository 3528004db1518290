// Losses of one row: scores f[0..k), its target, and what the solvers need of them. A loss sees no
// features, no coefficients and no C. Every loss offers
//   value(f, target, k)                      the loss
//   gradient(f, target, k, g)                its gradient in f; returns the value
//   hessian_product(f, target, k, u, d)      d = H(f) u, H the (generalised) Hessian
//   hessian_diagonal(f, target, k, h)
// and says what a target is (the index of the right class, a sign for each output, or a number for
// each), its name in Python, and its parameters. Being on the list at the end is all that it takes:
// passes, bindings and native tests fold over that list.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <variant>

#include "widemargin/loss_targets.hpp"
#include "widemargin/type_list.hpp"
#include "widemargin/vector_code.hpp"

namespace widemargin {

// Weston-Watkins squared hinge: 1/2 sum over c != y of max(0, 1 + f[c] - f[y])^2. A margin of
// exactly 1 is satisfied.
struct WestonWatkins {
  static constexpr const char* name = "WestonWatkins";
  using Targets = ClassTargets;

  template <class T>
  static T slack(const T* f, std::size_t y, std::size_t c) {
    const T margin = 1 + f[c] - f[y];
    return c != y && margin > 0 ? margin : T(0);
  }

  template <class T>
  T value(const T* f, std::size_t y, std::size_t k) const {
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += slack(f, y, c) * slack(f, y, c);
    return sum / 2;
  }

  template <class T>
  T gradient(const T* f, std::size_t y, std::size_t k, T* g) const {
    T sum = 0, pull_up = 0;
    for (std::size_t c = 0; c < k; ++c) {
      g[c] = slack(f, y, c);
      sum += g[c] * g[c];
      pull_up += g[c];
    }
    g[y] = -pull_up;
    return sum / 2;
  }

  template <class T>
  void hessian_product(const T* f, std::size_t y, std::size_t k, const T* u, T* d) const {
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      d[c] = slack(f, y, c) > 0 ? u[c] - u[y] : T(0);
      sum += d[c];
    }
    d[y] = -sum;
  }

  template <class T>
  void hessian_diagonal(const T* f, std::size_t y, std::size_t k, T* h) const {
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      h[c] = slack(f, y, c) > 0 ? T(1) : T(0);
      sum += h[c];
    }
    h[y] = sum;
  }
};

// Crammer-Singer squared hinge, 1/2 max(0, m)^2 with m the largest 1 + f[c] - f[y] over c != y,
// which has a kink where two wrong classes tie, and iterates collect there. So the maximum is
// rounded off:
//   m = max over distributions p of  sum_c p[c] (1 + f[c] - f[y]) + smoothing/2 (1 - |p|^2).
// Where the worst wrong class leads the next by `smoothing` or more, p puts all on it and m is the
// plain maximum; at a tie m is larger by less than smoothing/2. The optimal p is the projection on
// the simplex.
struct CrammerSinger {
  static constexpr const char* name = "CrammerSinger";
  using Targets = ClassTargets;
  double smoothing;

  static auto parameters() {
    return std::tuple(parameter("smoothing", &CrammerSinger::smoothing, {0.1, 1.0}));
  }

  // Relative to the worst wrong class, so that small differences of large scores keep their digits.
  template <class T>
  struct Worst {
    T value;      // m, or 0 where the row keeps its margin
    T score;      // of the worst wrong class
    T threshold;  // p[c] = max(0, (f[c] - score - threshold) / smoothing)
    T members;    // how many p[c] > 0
  };

  template <class T>
  Worst<T> worst(const T* f, std::size_t y, std::size_t k) const {
    const T mu = static_cast<T>(smoothing);
    T score = 0;
    bool found = false;
    for (std::size_t c = 0; c < k; ++c) {
      if (c != y && (!found || f[c] > score)) score = f[c], found = true;
    }
    const T largest = 1 + score - f[y];
    // m exceeds the maximum by less than smoothing/2, so a row far inside needs no projection.
    if (!found || largest <= -mu / 2) return {T(0), T(0), T(0), T(0)};
    T threshold = -mu, members = 0;
    for (std::size_t round = 0; round <= k; ++round) {
      T sum = 0, count = 0;
      for (std::size_t c = 0; c < k; ++c) {
        if (c != y && f[c] - score > threshold) sum += f[c] - score, count += 1;
      }
      if (count == members) break;
      members = count;
      threshold = (sum - mu) / count;
    }
    Worst<T> w{T(0), score, threshold, members};
    T rounding = mu / 2;
    for (std::size_t c = 0; c < k; ++c) {
      const T p = probability(f, y, c, w);
      rounding += p * (f[c] - score) - mu / 2 * p * p;
    }
    w.value = std::max(largest + rounding, T(0));
    return w;
  }

  template <class T>
  T probability(const T* f, std::size_t y, std::size_t c, const Worst<T>& w) const {
    const T above = f[c] - w.score - w.threshold;
    return c != y && above > 0 ? above / static_cast<T>(smoothing) : T(0);
  }

  template <class T>
  T value(const T* f, std::size_t y, std::size_t k) const {
    const T m = worst(f, y, k).value;
    return m * m / 2;
  }

  template <class T>
  T gradient(const T* f, std::size_t y, std::size_t k, T* g) const {
    const Worst<T> w = worst(f, y, k);
    for (std::size_t c = 0; c < k; ++c)
      g[c] = w.value > 0 ? w.value * probability(f, y, c, w) : T(0);
    g[y] = -w.value;
    return w.value * w.value / 2;
  }

  // H = p p' + m / smoothing (I - 1 1' / |S|) on the members S, all of it in the differences u[c] -
  // u[y].
  template <class T>
  void hessian_product(const T* f, std::size_t y, std::size_t k, const T* u, T* d) const {
    const Worst<T> w = worst(f, y, k);
    std::fill_n(d, k, T(0));
    if (w.value <= 0) return;
    T along = 0, mean = 0;
    for (std::size_t c = 0; c < k; ++c) {
      const T p = probability(f, y, c, w);
      if (p > 0) along += p * (u[c] - u[y]), mean += (u[c] - u[y]) / w.members;
    }
    const T stiffness = w.value / static_cast<T>(smoothing);
    for (std::size_t c = 0; c < k; ++c) {
      const T p = probability(f, y, c, w);
      if (p > 0) d[c] = p * along + stiffness * (u[c] - u[y] - mean);
    }
    d[y] = -along;
  }

  template <class T>
  void hessian_diagonal(const T* f, std::size_t y, std::size_t k, T* h) const {
    const Worst<T> w = worst(f, y, k);
    const T stiffness =
        w.value > 0 ? w.value / static_cast<T>(smoothing) * (1 - 1 / w.members) : T(0);
    for (std::size_t c = 0; c < k; ++c) {
      const T p = w.value > 0 ? probability(f, y, c, w) : T(0);
      h[c] = p > 0 ? p * p + stiffness : T(0);
    }
    h[y] = w.value > 0 ? T(1) : T(0);
  }
};

// A hinge that is squared up to a violation of delta and linear beyond, so that a row which is far
// on the wrong side, as one with a wrong label, pulls with the force delta at the most. A margin of
// exactly 1 is satisfied; a violation of exactly delta still curves.
template <class T>
struct HuberisedHinge {
  T delta;
  T value(T violation) const {
    return violation <= delta ? violation * violation / 2 : delta * (violation - delta / 2);
  }
  T slope(T violation) const { return std::min(violation, delta); }
  bool curves(T violation) const { return violation > 0 && violation <= delta; }
};

// Weston-Watkins with a Huberised hinge: sum over c != y of hinge(max(0, 1 + f[c] - f[y])).
struct HuberisedWestonWatkins {
  static constexpr const char* name = "HuberisedWestonWatkins";
  using Targets = ClassTargets;
  double delta;

  // Tried are values of which none is the violation where all scores tie: it would bend there.
  static auto parameters() {
    return std::tuple(parameter("delta", &HuberisedWestonWatkins::delta, {1.25, 3.0}));
  }

  template <class T>
  HuberisedHinge<T> hinge() const {
    return {static_cast<T>(delta)};
  }

  template <class T>
  T value(const T* f, std::size_t y, std::size_t k) const {
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += hinge<T>().value(WestonWatkins::slack(f, y, c));
    return sum;
  }

  template <class T>
  T gradient(const T* f, std::size_t y, std::size_t k, T* g) const {
    T sum = 0, pull_up = 0;
    for (std::size_t c = 0; c < k; ++c) {
      const T violation = WestonWatkins::slack(f, y, c);
      g[c] = hinge<T>().slope(violation);
      sum += hinge<T>().value(violation);
      pull_up += g[c];
    }
    g[y] = -pull_up;
    return sum;
  }

  template <class T>
  void hessian_product(const T* f, std::size_t y, std::size_t k, const T* u, T* d) const {
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      d[c] = hinge<T>().curves(WestonWatkins::slack(f, y, c)) ? u[c] - u[y] : T(0);
      sum += d[c];
    }
    d[y] = -sum;
  }

  template <class T>
  void hessian_diagonal(const T* f, std::size_t y, std::size_t k, T* h) const {
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      h[c] = hinge<T>().curves(WestonWatkins::slack(f, y, c)) ? T(1) : T(0);
      sum += h[c];
    }
    h[y] = sum;
  }
};

// Multinomial logistic: log sum_c exp(f[c]) - f[y].
struct Logistic {
  static constexpr const char* name = "Logistic";
  using Targets = ClassTargets;

  // p[c] = exp(f[c]) / sum; returns the logarithm of the sum, less `from`.
  template <class T>
  static T softmax(const T* f, std::size_t k, T* p, T from = 0) {
    const T largest = *std::max_element(f, f + k);
    for (std::size_t c = 0; c < k; ++c) p[c] = largest - f[c];
    exp_of_negative(p, k);
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += p[c];
    for (std::size_t c = 0; c < k; ++c) p[c] /= sum;
    return largest - from + std::log(sum);
  }

  template <class T>
  T value(const T* f, std::size_t y, std::size_t k) const {
    const T largest = *std::max_element(f, f + k);
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += std::exp(f[c] - largest);
    return largest - f[y] + std::log(sum);  // as softmax, without a place for the probabilities
  }

  template <class T>
  T gradient(const T* f, std::size_t y, std::size_t k, T* g) const {
    const T value = softmax(f, k, g, f[y]);
    g[y] -= 1;
    return value;
  }

  template <class T>
  void hessian_product(const T* f, std::size_t, std::size_t k, const T* u, T* d) const {
    softmax(f, k, d);
    T mean = 0;
    for (std::size_t c = 0; c < k; ++c) mean += d[c] * u[c];
    for (std::size_t c = 0; c < k; ++c) d[c] *= u[c] - mean;
  }

  template <class T>
  void hessian_diagonal(const T* f, std::size_t, std::size_t k, T* h) const {
    softmax(f, k, h);
    for (std::size_t c = 0; c < k; ++c) h[c] *= 1 - h[c];
  }
};

// Squared hinge of independent outputs: 1/2 sum over c of max(0, 1 - t[c] f[c])^2. A margin of
// exactly 1 is satisfied.
struct SquaredHinge {
  static constexpr const char* name = "SquaredHinge";
  using Targets = SignedTargets;

  template <class T>
  static T slack(const T* f, const std::int8_t* t, std::size_t c) {
    const T margin = 1 - static_cast<T>(t[c]) * f[c];
    return margin > 0 ? margin : T(0);
  }

  template <class T>
  T value(const T* f, const std::int8_t* t, std::size_t k) const {
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += slack(f, t, c) * slack(f, t, c);
    return sum / 2;
  }

  template <class T>
  T gradient(const T* f, const std::int8_t* t, std::size_t k, T* g) const {
    for (std::size_t c = 0; c < k; ++c) g[c] = -static_cast<T>(t[c]) * slack(f, t, c);
    return value(f, t, k);
  }

  template <class T>
  void hessian_product(const T* f, const std::int8_t* t, std::size_t k, const T* u, T* d) const {
    for (std::size_t c = 0; c < k; ++c) d[c] = slack(f, t, c) > 0 ? u[c] : T(0);
  }

  template <class T>
  void hessian_diagonal(const T* f, const std::int8_t* t, std::size_t k, T* h) const {
    for (std::size_t c = 0; c < k; ++c) h[c] = slack(f, t, c) > 0 ? T(1) : T(0);
  }
};

// The Huberised hinge of independent outputs: sum over c of hinge(max(0, 1 - t[c] f[c])).
struct HuberisedSquaredHinge {
  static constexpr const char* name = "HuberisedSquaredHinge";
  using Targets = SignedTargets;
  double delta;

  static auto parameters() {
    return std::tuple(parameter("delta", &HuberisedSquaredHinge::delta, {1.25, 3.0}));
  }

  template <class T>
  HuberisedHinge<T> hinge() const {
    return {static_cast<T>(delta)};
  }

  template <class T>
  T value(const T* f, const std::int8_t* t, std::size_t k) const {
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) sum += hinge<T>().value(SquaredHinge::slack(f, t, c));
    return sum;
  }

  template <class T>
  T gradient(const T* f, const std::int8_t* t, std::size_t k, T* g) const {
    for (std::size_t c = 0; c < k; ++c) {
      g[c] = -static_cast<T>(t[c]) * hinge<T>().slope(SquaredHinge::slack(f, t, c));
    }
    return value(f, t, k);
  }

  template <class T>
  void hessian_product(const T* f, const std::int8_t* t, std::size_t k, const T* u, T* d) const {
    hessian_diagonal(f, t, k, d);
    for (std::size_t c = 0; c < k; ++c) d[c] *= u[c];
  }

  template <class T>
  void hessian_diagonal(const T* f, const std::int8_t* t, std::size_t k, T* h) const {
    for (std::size_t c = 0; c < k; ++c) {
      h[c] = hinge<T>().curves(SquaredHinge::slack(f, t, c)) ? T(1) : T(0);
    }
  }
};

// Logistic loss of independent outputs: sum over c of log(1 + exp(-t[c] f[c])).
struct BinaryLogistic {
  static constexpr const char* name = "BinaryLogistic";
  using Targets = SignedTargets;

  // 1 / (1 + exp(x)), without overflow on either side
  template <class T>
  static T falling_sigmoid(T x) {
    const T small = std::exp(-std::fabs(x));
    return x > 0 ? small / (1 + small) : 1 / (1 + small);
  }

  template <class T>
  T value(const T* f, const std::int8_t* t, std::size_t k) const {
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      const T agreement = static_cast<T>(t[c]) * f[c];
      sum += std::log1p(std::exp(-std::fabs(agreement))) + std::max(T(0), -agreement);
    }
    return sum;
  }

  template <class T>
  T gradient(const T* f, const std::int8_t* t, std::size_t k, T* g) const {
    for (std::size_t c = 0; c < k; ++c) {
      const T sign = static_cast<T>(t[c]);
      g[c] = -sign * falling_sigmoid(sign * f[c]);
    }
    return value(f, t, k);
  }

  template <class T>
  void hessian_product(const T* f, const std::int8_t* t, std::size_t k, const T* u, T* d) const {
    hessian_diagonal(f, t, k, d);
    for (std::size_t c = 0; c < k; ++c) d[c] *= u[c];
  }

  template <class T>
  void hessian_diagonal(const T* f, const std::int8_t*, std::size_t k, T* h) const {
    for (std::size_t c = 0; c < k; ++c) h[c] = falling_sigmoid(f[c]) * falling_sigmoid(-f[c]);
  }
};

// Squared error of independent outputs: 1/2 sum over c of (f[c] - t[c])^2.
struct SquaredError {
  static constexpr const char* name = "SquaredError";
  using Targets = RealTargets;

  template <class T>
  T value(const T* f, const double* t, std::size_t k) const {
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      const T error = f[c] - static_cast<T>(t[c]);
      sum += error * error;
    }
    return sum / 2;
  }

  template <class T>
  T gradient(const T* f, const double* t, std::size_t k, T* g) const {
    for (std::size_t c = 0; c < k; ++c) g[c] = f[c] - static_cast<T>(t[c]);
    return value(f, t, k);
  }

  template <class T>
  void hessian_product(const T*, const double*, std::size_t k, const T* u, T* d) const {
    std::copy_n(u, k, d);
  }

  template <class T>
  void hessian_diagonal(const T*, const double*, std::size_t k, T* h) const {
    std::fill_n(h, k, T(1));
  }
};

struct WeighedSquaredHinge : Weighed<SquaredHinge> {
  static constexpr const char* name = "WeighedSquaredHinge";
};

struct WeighedHuberisedSquaredHinge : Weighed<HuberisedSquaredHinge> {
  static constexpr const char* name = "WeighedHuberisedSquaredHinge";

  static auto parameters() {
    double WeighedHuberisedSquaredHinge::* const place = &HuberisedSquaredHinge::delta;
    return std::tuple(parameter("delta", place, {1.25, 3.0}));
  }
};

struct WeighedBinaryLogistic : Weighed<BinaryLogistic> {
  static constexpr const char* name = "WeighedBinaryLogistic";
};

using Losses = TypeList<WestonWatkins, CrammerSinger, HuberisedWestonWatkins, Logistic,
                        SquaredHinge, HuberisedSquaredHinge, BinaryLogistic, SquaredError,
                        WeighedSquaredHinge, WeighedHuberisedSquaredHinge, WeighedBinaryLogistic>;

// A loss with the targets of all rows.
template <class Loss>
struct Judge {
  Loss loss;
  typename Loss::Targets targets;
};

using AnyLoss = Losses::In<std::variant>;
using AnyJudge = Losses::Wrapped<std::variant, Judge>;

}  // namespace widemargin

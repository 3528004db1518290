// What the target of a row may be, and losses in which each output of a row has its own weight.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace widemargin {

// One right class a row.
struct ClassTargets {
  const std::int32_t* labels;
  std::size_t operator()(std::size_t row, std::size_t) const {
    return static_cast<std::size_t>(labels[row]);
  }
};

// +1 or -1 for every output of a row.
struct SignedTargets {
  const std::int8_t* signs;
  const std::int8_t* operator()(std::size_t row, std::size_t k) const { return signs + row * k; }
};

// Any number for every output of a row, in double precision whatever the scores are.
struct RealTargets {
  const double* values;
  const double* operator()(std::size_t row, std::size_t k) const { return values + row * k; }
};

// A loss of independent outputs in which every output of a row has a weight of its own: the target
// is the sign times the weight, and the loss is the sum over c of |t[c]| loss(f[c], sign of t[c]).
template <class Loss>
struct Weighed : Loss {
  using Targets = RealTargets;

  static std::int8_t sign(double target) { return target < 0 ? -1 : 1; }

  template <class T>
  T value(const T* f, const double* t, std::size_t k) const {
    T sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      const std::int8_t own = sign(t[c]);
      sum += static_cast<T>(std::fabs(t[c])) * Loss::value(f + c, &own, 1);
    }
    return sum;
  }

  template <class T>
  T gradient(const T* f, const double* t, std::size_t k, T* g) const {
    for (std::size_t c = 0; c < k; ++c) {
      const std::int8_t own = sign(t[c]);
      Loss::gradient(f + c, &own, 1, g + c);
      g[c] *= static_cast<T>(std::fabs(t[c]));
    }
    return value(f, t, k);
  }

  template <class T>
  void hessian_product(const T* f, const double* t, std::size_t k, const T* u, T* d) const {
    hessian_diagonal(f, t, k, d);
    for (std::size_t c = 0; c < k; ++c) d[c] *= u[c];
  }

  template <class T>
  void hessian_diagonal(const T* f, const double* t, std::size_t k, T* h) const {
    for (std::size_t c = 0; c < k; ++c) {
      const std::int8_t own = sign(t[c]);
      Loss::hessian_diagonal(f + c, &own, 1, h + c);
      h[c] *= static_cast<T>(std::fabs(t[c]));
    }
  }
};

}  // namespace widemargin

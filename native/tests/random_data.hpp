// Random test data, the same on every platform: the standard fixes the numbers of the engine, but
// not those of its distributions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "widemargin/views.hpp"

namespace widemargin::tests {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1.0p-53;
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(engine_() % count); }

  template <class T>
  std::vector<T> values(std::size_t count, double low, double high) {
    std::vector<T> out(count);
    for (T& value : out) value = static_cast<T>(uniform(low, high));
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

// A matrix whose rows are further apart than they are long. What lies between them is NaN, so
// reading it shows in results, and `padding_intact` tells whether anything wrote there.
template <class T>
class Padded {
 public:
  Padded(std::size_t rows, std::size_t columns, std::size_t padding)
      : rows_(rows),
        columns_(columns),
        stride_(columns + padding),
        values_(rows * stride_, std::numeric_limits<T>::quiet_NaN()) {}

  Padded(std::size_t rows, std::size_t columns, std::size_t padding, Random& random, double low,
         double high)
      : Padded(rows, columns, padding) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        (*this)(i, j) = static_cast<T>(random.uniform(low, high));
      }
    }
  }

  T& operator()(std::size_t i, std::size_t j) { return values_[i * stride_ + j]; }
  double operator()(std::size_t i, std::size_t j) const {
    return static_cast<double>(values_[i * stride_ + j]);
  }
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }

  Matrix<T> view() { return {values_.data(), rows_, columns_, stride_}; }
  Matrix<const T> view() const { return {values_.data(), rows_, columns_, stride_}; }

  // Without the padding, in double precision.
  std::vector<double> entries() const {
    std::vector<double> out;
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j < columns_; ++j) out.push_back((*this)(i, j));
    }
    return out;
  }

  bool padding_intact() const {
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = columns_; j < stride_; ++j) {
        const T value = values_[i * stride_ + j];
        if (value == value) return false;
      }
    }
    return true;
  }

 private:
  std::size_t rows_, columns_, stride_;
  std::vector<T> values_;
};

template <class T>
constexpr double epsilon() {
  return static_cast<double>(std::numeric_limits<T>::epsilon());
}

template <class T>
std::string type_name() {
  return std::is_same_v<T, float> ? "float" : "double";
}

}  // namespace widemargin::tests

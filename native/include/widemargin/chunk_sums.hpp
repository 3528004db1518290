// Sums over rows that are the same to the bit for any number of threads: each chunk of rows has a
// place of its own, and they are added up in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "widemargin/parallel.hpp"

namespace widemargin {

// Sums of `size` numbers a chunk, added up chunk by chunk.
class ChunkSums {
 public:
  ChunkSums(std::size_t rows, std::size_t size)
      : size_(size), sums_(chunk_count(rows) * size, 0.0) {}

  double* of(std::size_t chunk) { return sums_.data() + chunk * size_; }

  template <class T>
  void add(std::size_t chunk, const std::vector<T>& part) {
    double* sum = of(chunk);
    for (std::size_t i = 0; i < size_; ++i) sum[i] += static_cast<double>(part[i]);
  }

  void total(double* out) const {
    std::fill_n(out, size_, 0.0);
    for (std::size_t start = 0; start < sums_.size(); start += size_) {
      for (std::size_t i = 0; i < size_; ++i) out[i] += sums_[start + i];
    }
  }

 private:
  std::size_t size_;
  std::vector<double> sums_;
};

}  // namespace widemargin

#include "widemargin/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <variant>
#include <vector>

#include "widemargin/parallel.hpp"
#include "widemargin/prepared_basis.hpp"

namespace widemargin {
namespace {

double largest_of(const std::vector<double>& values) {
  return values.empty() ? 0.0 : *std::max_element(values.begin(), values.end());
}

// |x|^2 + |b|^2 - 2 x.b is off by a few units in the last place of |x|^2 + |b|^2. Where that would
// show in an exp(-distance) of type T, it is summed again from differences: sum_again(j) for
// vector j.
template <class T, class SumAgain>
void squared_distances(double* sums, double row_norm, const std::vector<double>& basis_norms,
                       double largest_norm, const SumAgain& sum_again) {
  const std::size_t count = basis_norms.size();
  constexpr double precision = 4 * std::numeric_limits<double>::epsilon();
  constexpr double tolerated = sizeof(T) == 4 ? 1e-7 : 1e-10;
  constexpr double vanishing = sizeof(T) == 4 ? 104 : 746;  // exp(-vanishing) is 0
  for (std::size_t j = 0; j < count; ++j) {
    const double squared = row_norm + basis_norms[j] - 2 * sums[j];
    sums[j] = squared > 0 ? squared : 0.0;
  }
  if (precision * (row_norm + largest_norm) <= tolerated) return;
  for (std::size_t j = 0; j < count; ++j) {
    const double error = precision * (row_norm + basis_norms[j]);
    if (error > tolerated && sums[j] < vanishing + error) sums[j] = sum_again(j);
  }
}

// |x - b|^2 of two sparse rows, whose indices rise.
template <class In>
double squared_distance(const SparseMatrix<In>& left, std::size_t i, const SparseMatrix<In>& right,
                        std::size_t j) {
  auto a = left.starts[i], b = right.starts[j];
  const auto a_end = left.starts[i + 1], b_end = right.starts[j + 1];
  double sum = 0;
  while (a < a_end || b < b_end) {
    const bool take_left = b == b_end || (a < a_end && left.indices[a] <= right.indices[b]);
    const bool take_right = a == a_end || (b < b_end && right.indices[b] <= left.indices[a]);
    const double x = take_left ? static_cast<double>(left.values[a++]) : 0.0;
    const double y = take_right ? static_cast<double>(right.values[b++]) : 0.0;
    sum += (x - y) * (x - y);
  }
  return sum;
}

template <class In>
std::vector<In> dense_rows(const SparseMatrix<In>& rows, std::size_t first, std::size_t count) {
  std::vector<In> dense(count * rows.columns, In(0));
  for (std::size_t i = 0; i < count; ++i) {
    In* const row = dense.data() + i * rows.columns;
    for (auto e = rows.starts[first + i]; e < rows.starts[first + i + 1]; ++e) {
      row[rows.indices[e]] = rows.values[e];
    }
  }
  return dense;
}

// Fills out a tile of rows at a time; values_of(first, count, scratch, values) computes a tile.
template <class T, class ValuesOf>
void fill_by_tiles(const PreparedBasis<T>& prepared, Matrix<T> out, int n_threads,
                   const ValuesOf& values_of) {
  for_each_chunk(out.rows, n_threads, [&](std::size_t, std::size_t begin, std::size_t end) {
    Scratch<T> scratch;
    scratch.sums.resize(kTileRows * prepared.columns());
    T* const values = scratch.sums.data();
    for (std::size_t first = begin; first < end; first += kTileRows) {
      const std::size_t count = std::min(kTileRows, end - first);
      values_of(first, count, scratch, values);
      for (std::size_t i = 0; i < count; ++i) {
        std::copy_n(values + i * prepared.columns(), out.columns, out.row(first + i));
      }
    }
  });
}

template <class T, class Rows, class In>
void fill_dense(const AnyKernel& kernel, const Rows& rows, Matrix<const In> basis, Matrix<T> out,
                int n_threads) {
  const PreparedBasis<T> prepared(kernel, basis, vector_code<T>());
  fill_by_tiles(prepared, out, n_threads,
                [&](std::size_t first, std::size_t count, Scratch<T>& scratch, T* values) {
                  prepared.values(rows, first, count, /*check=*/false, scratch, values);
                });
}

template <class T, class In, class Kernel>
void fill_sparse(const Kernel& kernel, const SparseMatrix<In>& rows, const SparseMatrix<In>& basis,
                 Matrix<T> out, int n_threads) {
  const std::size_t count = basis.rows;
  const double scale = kernel.scale();
  // Sums of many entries lose digits of single precision, and where rows have a common offset, they
  // cancel: so they are added up in double precision.

  // The basis by feature: entries of feature f are entries[starts[f]] up to entries[starts[f + 1]].
  struct Entry {
    std::size_t vector;
    double value;
  };
  std::vector<std::size_t> starts(basis.columns + 1, 0);
  const auto total = static_cast<std::size_t>(basis.starts[count]);
  for (std::size_t e = 0; e < total; ++e) ++starts[static_cast<std::size_t>(basis.indices[e]) + 1];
  for (std::size_t f = 0; f < basis.columns; ++f) starts[f + 1] += starts[f];
  std::vector<Entry> entries(total);
  std::vector<std::size_t> next(starts.begin(), starts.end() - 1);

  // What a vector adds on its own where the row is zero, to which the common entries are
  // corrections; |b|^2 for products.
  constexpr Term term = Kernel::term;
  constexpr bool by_products = term == Term::product || term == Term::squared_difference;
  const auto alone = [](double value) {
    return by_products ? value * value : term_of<term>(value, 0.0);
  };
  std::vector<double> own(count, 0.0);
  for (std::size_t j = 0; j < count; ++j) {
    for (auto e = basis.starts[j]; e < basis.starts[j + 1]; ++e) {
      const auto value = static_cast<double>(basis.values[e]) * scale;
      entries[next[static_cast<std::size_t>(basis.indices[e])]++] = {j, value};
      own[j] += alone(value);
    }
  }
  [[maybe_unused]] const double largest_norm = largest_of(own);

  for_each_chunk(rows.rows, n_threads, [&](std::size_t, std::size_t begin, std::size_t end) {
    std::vector<double> sums(count);
    for (std::size_t i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0);
      double row_own = 0;
      for (auto e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
        const auto value = static_cast<double>(rows.values[e]) * scale;
        const auto feature = static_cast<std::size_t>(rows.indices[e]);
        row_own += alone(value);
        for (std::size_t b = starts[feature]; b < starts[feature + 1]; ++b) {
          const double other = entries[b].value;
          sums[entries[b].vector] +=
              by_products ? value * other
                          : term_of<term>(value, other) - alone(value) - alone(other);
        }
      }
      if constexpr (!by_products) {
        for (std::size_t j = 0; j < count; ++j) sums[j] = std::max(0.0, sums[j] + row_own + own[j]);
      } else if constexpr (is_distance(term)) {
        squared_distances<T>(sums.data(), row_own, own, largest_norm, [&](std::size_t j) {
          return squared_distance(rows, i, basis, j) * scale * scale;
        });
      }
      for (std::size_t j = 0; j < count; ++j) out.row(i)[j] = static_cast<T>(sums[j]);
      kernel.finish(out.row(i), count, vector_code<T>());
    }
  });
}

}  // namespace

template <class T, class In>
void kernel_block(const AnyKernel& kernel, Matrix<const In> rows, Matrix<const In> basis,
                  Matrix<T> out, int n_threads) {
  fill_dense(kernel, rows, basis, out, n_threads);
}

template <class T, class In>
void kernel_block(const AnyKernel& kernel, const SparseMatrix<In>& rows, Matrix<const In> basis,
                  Matrix<T> out, int n_threads) {
  if (std::holds_alternative<AdaptiveRbfKernel>(kernel)) {
    return fill_dense(kernel, rows, basis, out, n_threads);
  }
  const PreparedBasis<T> prepared(kernel, basis, vector_code<T>());
  fill_by_tiles(prepared, out, n_threads,
                [&](std::size_t first, std::size_t count, Scratch<T>& scratch, T* values) {
                  const std::vector<In> tile = dense_rows(rows, first, count);
                  prepared.values(contiguous(tile.data(), count, rows.columns), 0, count,
                                  /*check=*/false, scratch, values);
                });
}

template <class T, class In>
void kernel_block(const AnyKernel& kernel, const SparseMatrix<In>& rows,
                  const SparseMatrix<In>& basis, Matrix<T> out, int n_threads) {
  std::visit(
      [&](const auto& each) {
        if constexpr (std::is_same_v<std::decay_t<decltype(each)>, AdaptiveRbfKernel>) {
          throw std::invalid_argument("the basis of an adaptive kernel must be dense");
        } else {
          fill_sparse(each, rows, basis, out, n_threads);
        }
      },
      kernel);
}

#define WIDEMARGIN_INSTANTIATE(T, In)                                                            \
  template void kernel_block<T, In>(const AnyKernel&, Matrix<const In>, Matrix<const In>,        \
                                    Matrix<T>, int);                                             \
  template void kernel_block<T, In>(const AnyKernel&, const SparseMatrix<In>&, Matrix<const In>, \
                                    Matrix<T>, int);                                             \
  template void kernel_block<T, In>(const AnyKernel&, const SparseMatrix<In>&,                   \
                                    const SparseMatrix<In>&, Matrix<T>, int);
WIDEMARGIN_INSTANTIATE(float, float)
WIDEMARGIN_INSTANTIATE(float, double)
WIDEMARGIN_INSTANTIATE(double, float)
WIDEMARGIN_INSTANTIATE(double, double)

}  // namespace widemargin

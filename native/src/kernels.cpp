#include "widemargin/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "widemargin/parallel.hpp"

namespace widemargin {
namespace {

// Translation leaves a distance as it is; with the basis near the origin, |x|^2 + |b|^2 - 2 x.b
// loses no digits to a common offset of the data.
template <class In>
std::vector<double> column_means(Matrix<const In> basis) {
  std::vector<double> means(basis.columns, 0.0);
  for (std::size_t j = 0; j < basis.rows; ++j) {
    for (std::size_t f = 0; f < basis.columns; ++f)
      means[f] += static_cast<double>(basis.row(j)[f]);
  }
  for (double& mean : means) mean /= static_cast<double>(std::max<std::size_t>(basis.rows, 1));
  return means;
}

template <class T, class In>
T moved_and_scaled(const In* row, const std::vector<In>& origin, In scale, T* out) {
  T norm = 0;
  for (std::size_t f = 0; f < origin.size(); ++f) {
    out[f] = static_cast<T>((row[f] - origin[f]) * scale);
    norm += out[f] * out[f];
  }
  return norm;
}

template <class T>
struct PreparedBasis {
  std::vector<T> values;  // rows x columns, or its transpose for kernels of absolute differences
  std::vector<T> norms;
};

template <class T, class In, class Kernel>
PreparedBasis<T> prepare(const Kernel& kernel, Matrix<const In> basis,
                         const std::vector<In>& origin) {
  PreparedBasis<T> prepared{std::vector<T>(basis.rows * basis.columns), std::vector<T>(basis.rows)};
  std::vector<T> row(basis.columns);
  for (std::size_t j = 0; j < basis.rows; ++j) {
    prepared.norms[j] =
        moved_and_scaled(basis.row(j), origin, static_cast<In>(kernel.scale()), row.data());
    for (std::size_t f = 0; f < basis.columns; ++f) {
      prepared.values[Kernel::sums_products ? j * basis.columns + f : f * basis.rows + j] = row[f];
    }
  }
  return prepared;
}

}  // namespace

template <class T, class In, class Kernel>
void kernel_block(const Kernel& kernel, Matrix<const In> rows, Matrix<const In> basis,
                  Matrix<T> out, const Blas& blas, int n_threads) {
  const std::size_t features = rows.columns, count = basis.rows;
  std::vector<In> origin(features, In(0));
  if (Kernel::is_distance) {
    const std::vector<double> means = column_means(basis);
    for (std::size_t f = 0; f < features; ++f) origin[f] = static_cast<In>(means[f]);
  }
  const auto scale = static_cast<In>(kernel.scale());
  const PreparedBasis<T> prepared = prepare<T>(kernel, basis, origin);

  for_each_chunk(rows.rows, n_threads, [&](std::size_t, std::size_t begin, std::size_t end) {
    std::vector<T> tile(std::min(kRowsPerTile, end - begin) * features), norms(kRowsPerTile);
    for (std::size_t first = begin; first < end; first += kRowsPerTile) {
      const std::size_t length = std::min(kRowsPerTile, end - first);
      for (std::size_t i = 0; i < length; ++i) {
        norms[i] = moved_and_scaled(rows.row(first + i), origin, scale, tile.data() + i * features);
      }
      if constexpr (Kernel::sums_products) {
        blas.gemm<T>(false, true, length, count, features, T(1), tile.data(), features,
                     prepared.values.data(), features, T(0), out.row(first), out.stride);
      } else {
        for (std::size_t i = 0; i < length; ++i) {
          T* sums = out.row(first + i);
          std::fill_n(sums, count, T(0));
          for (std::size_t f = 0; f < features; ++f) {
            add_absolute_difference(tile[i * features + f], prepared.values.data() + f * count,
                                    sums, count);
          }
        }
      }
      for (std::size_t i = 0; i < length; ++i) {
        kernel.finish(out.row(first + i), count, norms[i], prepared.norms.data());
      }
    }
  });
}

template <class T, class In, class Kernel>
void kernel_block(const Kernel& kernel, const SparseMatrix<In>& rows, const SparseMatrix<In>& basis,
                  Matrix<T> out, const Blas&, int n_threads) {
  const std::size_t count = basis.rows;
  const auto scale = static_cast<In>(kernel.scale());

  // The basis by feature: entries of feature f are entries[starts[f]] up to entries[starts[f + 1]].
  struct Entry {
    std::size_t vector;
    T value;
  };
  std::vector<std::size_t> starts(basis.columns + 1, 0);
  const auto total = static_cast<std::size_t>(basis.starts[count]);
  for (std::size_t e = 0; e < total; ++e) ++starts[static_cast<std::size_t>(basis.indices[e]) + 1];
  for (std::size_t f = 0; f < basis.columns; ++f) starts[f + 1] += starts[f];
  std::vector<Entry> entries(total);
  std::vector<std::size_t> next(starts.begin(), starts.end() - 1);

  // What a vector adds on its own: |b|^2, or |b|_1, to which the common entries are corrections.
  std::vector<T> own(count, T(0));
  for (std::size_t j = 0; j < count; ++j) {
    for (auto e = basis.starts[j]; e < basis.starts[j + 1]; ++e) {
      const auto value = static_cast<T>(basis.values[e] * scale);
      entries[next[static_cast<std::size_t>(basis.indices[e])]++] = {j, value};
      own[j] += Kernel::sums_products ? value * value : std::fabs(value);
    }
  }

  for_each_chunk(rows.rows, n_threads, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      T* sums = out.row(i);
      std::fill_n(sums, count, T(0));
      T row_own = 0;
      for (auto e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
        const auto value = static_cast<T>(rows.values[e] * scale);
        const auto feature = static_cast<std::size_t>(rows.indices[e]);
        row_own += Kernel::sums_products ? value * value : std::fabs(value);
        for (std::size_t b = starts[feature]; b < starts[feature + 1]; ++b) {
          const T other = entries[b].value;
          sums[entries[b].vector] +=
              Kernel::sums_products
                  ? value * other
                  : std::fabs(value - other) - std::fabs(value) - std::fabs(other);
        }
      }
      if constexpr (!Kernel::sums_products) {
        for (std::size_t j = 0; j < count; ++j)
          sums[j] = std::max(T(0), sums[j] + row_own + own[j]);
      }
      kernel.finish(sums, count, row_own, own.data());
    }
  });
}

#define WIDEMARGIN_INSTANTIATE(T, In, Kernel)                                                  \
  template void kernel_block<T, In, Kernel>(const Kernel&, Matrix<const In>, Matrix<const In>, \
                                            Matrix<T>, const Blas&, int);                      \
  template void kernel_block<T, In, Kernel>(const Kernel&, const SparseMatrix<In>&,            \
                                            const SparseMatrix<In>&, Matrix<T>, const Blas&, int);
#define WIDEMARGIN_INSTANTIATE_ALL(Kernel)      \
  WIDEMARGIN_INSTANTIATE(float, float, Kernel)  \
  WIDEMARGIN_INSTANTIATE(float, double, Kernel) \
  WIDEMARGIN_INSTANTIATE(double, double, Kernel)
WIDEMARGIN_INSTANTIATE_ALL(LinearKernel)
WIDEMARGIN_INSTANTIATE_ALL(PolynomialKernel)
WIDEMARGIN_INSTANTIATE_ALL(RbfKernel)
WIDEMARGIN_INSTANTIATE_ALL(LaplacianKernel)

}  // namespace widemargin

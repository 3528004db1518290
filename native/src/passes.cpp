#include "widemargin/passes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <variant>
#include <vector>

#include "widemargin/chunk_sums.hpp"
#include "widemargin/parallel.hpp"

namespace widemargin {
namespace {

// Solves and products of small matrices: those of few classes take less time than a thread to wake.
int threads_for_solves(std::size_t products, int n_threads) {
  constexpr std::size_t products_of_thread = 200'000;
  return threads_for(products, products_of_thread, n_threads);
}

template <class T>
void gather(Matrix<const T> source, RowIndices chosen, std::vector<T>& tile) {
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::copy_n(source.row(static_cast<std::size_t>(chosen[i])), source.columns,
                tile.data() + i * source.columns);
  }
}

// Calls task(chunk, tile of indices) over all chosen rows, tile by tile.
template <class Task>
void for_each_tile(RowIndices chosen, int n_threads, const Task& task) {
  for_each_chunk(chosen.size(), n_threads,
                 [&](std::size_t chunk, std::size_t begin, std::size_t end) {
                   auto work = task(chunk);
                   for (std::size_t first = begin; first < end; first += kRowsPerTile) {
                     work(chosen.subspan(first, std::min(kRowsPerTile, end - first)));
                   }
                 });
}

// gram += M' diag(h) M for the blocks of columns M side by side and h column r of `curvature`, over
// the rows where h exceeds `least`. Only the lower triangle is filled.
template <class Sum, class T, std::size_t Blocks>
void add_weighted_gram(const std::array<Matrix<const T>, Blocks>& blocks, RowIndices chosen,
                       Matrix<const T> curvature, std::size_t r, T least, const Blas& blas,
                       Sum* gram) {
  std::size_t width = 0;
  for (const auto& block : blocks) width += block.columns;
  std::vector<Sum> tile(kRowsPerTile * width);
  std::size_t filled = 0;
  for (const auto index : chosen) {
    const auto row = static_cast<std::size_t>(index);
    const T h = curvature.row(row)[r];
    if (h <= least) continue;
    const Sum root = std::sqrt(static_cast<Sum>(h));
    Sum* out = tile.data() + filled * width;
    for (const auto& block : blocks) {
      const T* values = block.row(row);
      for (std::size_t j = 0; j < block.columns; ++j) *out++ = root * static_cast<Sum>(values[j]);
    }
    if (++filled == kRowsPerTile) {
      blas.add_gram<Sum>(width, filled, tile.data(), width, gram);
      filled = 0;
    }
  }
  blas.add_gram<Sum>(width, filled, tile.data(), width, gram);
}

// Factorises the leading part of a matrix, with its diagonal raised by as small a share of it as
// makes up for the rounding error of its sums.
void factorise_raised(std::size_t columns, double* matrix, std::size_t stride, const Blas& blas) {
  const std::vector<double> summed(matrix, matrix + columns * stride);
  if (blas.cholesky(columns, matrix, stride)) return;
  bool finite = true;
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t j = 0; j <= i; ++j) finite = finite && std::isfinite(summed[i * stride + j]);
  }
  // A diagonal that is raised by `columns` times itself exceeds the rest of its row.
  const double most = 1e3 * static_cast<double>(columns);
  for (double share = 1e-15; finite && share <= most; share *= 10.0) {
    std::copy(summed.begin(), summed.end(), matrix);
    for (std::size_t j = 0; j < columns; ++j) matrix[j * stride + j] *= 1.0 + share;
    if (blas.cholesky(columns, matrix, stride)) return;
  }
  throw std::runtime_error(
      "the curvature of the objective is not finite; check the scale of X and of C");
}

// out = W H(F) u for one row
template <class T, class Loss>
void curve_row(const Judge<Loss>& judge, const ScoredRows<T>& rows, std::size_t row, const T* moved,
               T* out) {
  const std::size_t k = rows.scores.columns;
  judge.loss.hessian_product(rows.scores.row(row), judge.targets(row, k), k, moved, out);
  for (std::size_t c = 0; c < k; ++c) out[c] *= rows.weights[row];
}

// Adds up what sum_rows(judge, begin, end) returns, an array of numbers, over all chunks of rows.
template <std::size_t Size, class T, class SumRows>
std::array<double, Size> summed_by_chunk(const ScoredRows<T>& rows, int n_threads,
                                         const SumRows& sum_rows) {
  ChunkSums sums(rows.scores.rows, Size);
  std::visit(
      [&](const auto& judge) {
        for_each_chunk(rows.scores.rows, n_threads,
                       [&](std::size_t chunk, std::size_t begin, std::size_t end) {
                         const std::array<double, Size> part = sum_rows(judge, begin, end);
                         std::copy(part.begin(), part.end(), sums.of(chunk));
                       });
      },
      rows.judge);
  std::array<double, Size> total;
  sums.total(total.data());
  return total;
}

}  // namespace

template <class T>
double derivatives(const ScoredRows<T>& rows, Matrix<T> gradient, Matrix<T> curvature, bool* active,
                   int n_threads) {
  const std::size_t k = rows.scores.columns;
  const auto sum_rows = [&](const auto& judge, std::size_t begin, std::size_t end) {
    double sum = 0.0;
    for (std::size_t i = begin; i < end; ++i) {
      const T* f = rows.scores.row(i);
      T *g = gradient.row(i), *h = curvature.row(i);
      const T weight = rows.weights[i];
      sum += static_cast<double>(weight) *
             static_cast<double>(judge.loss.gradient(f, judge.targets(i, k), k, g));
      judge.loss.hessian_diagonal(f, judge.targets(i, k), k, h);
      T size = 0;
      for (std::size_t c = 0; c < k; ++c) {
        g[c] *= weight;
        h[c] *= weight;
        size += std::fabs(g[c]) + h[c];
      }
      active[i] = size > 0;
    }
    return std::array{sum};
  };
  return summed_by_chunk<1>(rows, n_threads, sum_rows)[0];
}

template <class T>
double loss_value(const ScoredRows<T>& rows, int n_threads) {
  const std::size_t k = rows.scores.columns;
  const auto sum_rows = [&](const auto& judge, std::size_t begin, std::size_t end) {
    double sum = 0.0;
    for (std::size_t i = begin; i < end; ++i) {
      sum += static_cast<double>(rows.weights[i]) *
             static_cast<double>(judge.loss.value(rows.scores.row(i), judge.targets(i, k), k));
    }
    return std::array{sum};
  };
  return summed_by_chunk<1>(rows, n_threads, sum_rows)[0];
}

template <class T>
AlongStep along_step(const ScoredRows<T>& rows, Matrix<const T> moved, double step, int n_threads) {
  const std::size_t k = rows.scores.columns;
  const auto sum_rows = [&](const auto& judge, std::size_t begin, std::size_t end) {
    std::vector<T> scratch(3 * k);
    T *f = scratch.data(), *g = f + k, *d = g + k;
    double value = 0.0, slope = 0.0, curvature = 0.0;
    for (std::size_t i = begin; i < end; ++i) {
      const T *start = rows.scores.row(i), *u = moved.row(i);
      for (std::size_t c = 0; c < k; ++c) f[c] = start[c] + static_cast<T>(step) * u[c];
      const auto weight = static_cast<double>(rows.weights[i]);
      value += weight * static_cast<double>(judge.loss.gradient(f, judge.targets(i, k), k, g));
      judge.loss.hessian_product(f, judge.targets(i, k), k, u, d);
      T row_slope = 0, row_curvature = 0;
      for (std::size_t c = 0; c < k; ++c) row_slope += g[c] * u[c], row_curvature += d[c] * u[c];
      slope += weight * static_cast<double>(row_slope);
      curvature += weight * static_cast<double>(row_curvature);
    }
    return std::array{value, slope, curvature};
  };
  const auto [value, slope, curvature] = summed_by_chunk<3>(rows, n_threads, sum_rows);
  return {value, slope, curvature};
}

template <class T>
void curved_rows(const ScoredRows<T>& rows, Matrix<const T> moved, Matrix<T> out, int n_threads) {
  std::visit(
      [&](const auto& judge) {
        for_each_chunk(rows.scores.rows, n_threads,
                       [&](std::size_t, std::size_t begin, std::size_t end) {
                         for (std::size_t i = begin; i < end; ++i)
                           curve_row(judge, rows, i, moved.row(i), out.row(i));
                       });
      },
      rows.judge);
}

template <class T>
void hessian_product(const ScoredRows<T>& rows, Matrix<const T> columns, RowIndices chosen,
                     Matrix<const T> direction, double* out, const Blas& blas, int n_threads) {
  const std::size_t width = columns.columns, k = direction.columns;
  ChunkSums sums(chosen.size(), width * k);
  for_each_tile(chosen, n_threads, [&](std::size_t chunk) {
    return [&, chunk, tile = std::vector<T>(kRowsPerTile * width),
            moved = std::vector<T>(kRowsPerTile * k), curved = std::vector<T>(kRowsPerTile * k),
            part = std::vector<T>(width * k)](RowIndices some) mutable {
      gather(columns, some, tile);
      blas.gemm<T>(false, false, some.size(), k, width, T(1), tile.data(), width, direction.data,
                   direction.stride, T(0), moved.data(), k);
      std::visit(
          [&](const auto& judge) {
            for (std::size_t i = 0; i < some.size(); ++i) {
              const auto row = static_cast<std::size_t>(some[i]);
              curve_row(judge, rows, row, moved.data() + i * k, curved.data() + i * k);
            }
          },
          rows.judge);
      blas.gemm<T>(true, false, width, k, some.size(), T(1), tile.data(), width, curved.data(), k,
                   T(0), part.data(), k);
      sums.add(chunk, part);
    };
  });
  sums.total(out);
}

template <class T>
void scores(Matrix<const T> columns, Matrix<const T> direction, Matrix<T> out, const Blas& blas,
            int n_threads) {
  for_each_chunk(columns.rows, n_threads, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t first = begin; first < end; first += kRowsPerTile) {
      blas.gemm<T>(false, false, std::min(kRowsPerTile, end - first), direction.columns,
                   columns.columns, T(1), columns.row(first), columns.stride, direction.data,
                   direction.stride, T(0), out.row(first), out.stride);
    }
  });
}

template <class T>
void transposed_product(Matrix<const T> columns, RowIndices chosen, Matrix<const T> gradient,
                        double* out, const Blas& blas, int n_threads) {
  const std::size_t width = columns.columns, k = gradient.columns;
  ChunkSums sums(chosen.size(), width * k);
  for_each_tile(chosen, n_threads, [&](std::size_t chunk) {
    return [&, chunk, tile = std::vector<T>(kRowsPerTile * width),
            right = std::vector<T>(kRowsPerTile * k),
            part = std::vector<T>(width * k)](RowIndices some) mutable {
      gather(columns, some, tile);
      gather(gradient, some, right);
      blas.gemm<T>(true, false, width, k, some.size(), T(1), tile.data(), width, right.data(), k,
                   T(0), part.data(), k);
      sums.add(chunk, part);
    };
  });
  sums.total(out);
}

template <class T>
void add_weighted_grams(Matrix<const T> columns, Matrix<const T> candidates, RowIndices chosen,
                        Matrix<const T> curvature, std::span<const T> least, bool precise,
                        double* matrices, const Blas& blas, int n_threads) {
  const std::array blocks{columns, candidates};
  const std::size_t width = columns.columns + candidates.columns, size = width * width;
  const std::size_t products = curvature.columns * chosen.size() * size;
  for_each_index(curvature.columns, threads_for_solves(products, n_threads), [&](std::size_t r) {
    double* matrix = matrices + r * size;
    if (precise || std::is_same_v<T, double>) {
      add_weighted_gram(blocks, chosen, curvature, r, least[r], blas, matrix);
      return;
    }
    std::vector<T> gram(size, T(0));
    add_weighted_gram(blocks, chosen, curvature, r, least[r], blas, gram.data());
    for (std::size_t i = 0; i < size; ++i) matrix[i] += static_cast<double>(gram[i]);
  });
}

void factorise(std::size_t count, std::size_t columns, std::size_t stride, double* matrices,
               bool raise, bool* failed, const Blas& blas, int n_threads) {
  const std::size_t products = count * columns * columns * (columns / 6 + 1);
  for_each_index(count, threads_for_solves(products, n_threads), [&](std::size_t r) {
    double* matrix = matrices + r * stride * stride;
    for (std::size_t j = 0; j < columns; ++j) matrix[j * stride + j] += 1.0;
    failed[r] = false;
    if (raise) {
      factorise_raised(columns, matrix, stride, blas);
    } else {
      failed[r] = !blas.cholesky(columns, matrix, stride);
    }
  });
}

void precondition(std::span<const double> factors, Matrix<const double> right, Matrix<double> out,
                  const Blas& blas, int n_threads) {
  const std::size_t columns = right.rows, k = right.columns;
  const bool shared = factors.size() == columns * columns;
  for_each_index(k, threads_for_solves(k * columns * columns, n_threads), [&](std::size_t r) {
    std::vector<double> column(columns);
    for (std::size_t j = 0; j < columns; ++j) column[j] = right.row(j)[r];
    blas.cholesky_solve(columns, 1, factors.data() + (shared ? 0 : r * columns * columns),
                        column.data());
    for (std::size_t j = 0; j < columns; ++j) out.row(j)[r] = column[j];
  });
}

template <class T>
void orthogonalise(Matrix<const T> columns, Matrix<const T> coordinates, Matrix<T> candidates,
                   const Blas& blas, int n_threads) {
  if (columns.columns == 0) return;
  for_each_chunk(columns.rows, n_threads, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t first = begin; first < end; first += kRowsPerTile) {
      blas.gemm<T>(false, true, std::min(kRowsPerTile, end - first), candidates.columns,
                   columns.columns, T(-1), columns.row(first), columns.stride, coordinates.data,
                   coordinates.stride, T(1), candidates.row(first), candidates.stride);
    }
  });
}

void candidate_model(const CandidateSums& sums, std::size_t n_matrices, double* matrices,
                     double* slope, double* bend, const Blas& blas, int n_threads) {
  const std::size_t columns = sums.residual.rows, count = sums.overlap.rows;
  const std::size_t all = columns + count, k = sums.residual.columns;
  const std::size_t products = n_matrices * all * all * (count + 1);
  for_each_index(n_matrices, threads_for_solves(products, n_threads), [&](std::size_t r) {
    double *factor = matrices + r * all * all, *cross = factor + columns * all,
           *own = cross + columns;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j <= i; ++j) own[i * all + j] += sums.overlap.row(i)[j];
    }

    blas.forward_solve(columns, count, factor, all, cross, all);
    blas.subtract_outer(count, columns, cross, own, all);

    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        bend[(r * count + i) * count + j] = bend[(r * count + j) * count + i] = own[i * all + j];
      }
    }
    const bool serves_all = n_matrices == 1;
    std::vector<double> residual(columns);
    for (std::size_t output = serves_all ? 0 : r; output < (serves_all ? k : r + 1); ++output) {
      for (std::size_t j = 0; j < columns; ++j) residual[j] = sums.residual.row(j)[output];
      blas.forward_solve(columns, 1, factor, all, residual.data(), columns);
      for (std::size_t i = 0; i < count; ++i) {
        double sum = sums.slopes.row(i)[output];
        for (std::size_t j = 0; j < columns; ++j) sum -= cross[i * all + j] * residual[j];
        slope[output * count + i] = sum;
      }
    }
  });
}

#define WIDEMARGIN_INSTANTIATE(T)                                                            \
  template double derivatives<T>(const ScoredRows<T>&, Matrix<T>, Matrix<T>, bool*, int);    \
  template double loss_value<T>(const ScoredRows<T>&, int);                                  \
  template AlongStep along_step<T>(const ScoredRows<T>&, Matrix<const T>, double, int);      \
  template void curved_rows<T>(const ScoredRows<T>&, Matrix<const T>, Matrix<T>, int);       \
  template void hessian_product<T>(const ScoredRows<T>&, Matrix<const T>, RowIndices,        \
                                   Matrix<const T>, double*, const Blas&, int);              \
  template void scores<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, const Blas&, int);    \
  template void transposed_product<T>(Matrix<const T>, RowIndices, Matrix<const T>, double*, \
                                      const Blas&, int);                                     \
  template void add_weighted_grams<T>(Matrix<const T>, Matrix<const T>, RowIndices,          \
                                      Matrix<const T>, std::span<const T>, bool, double*,    \
                                      const Blas&, int);                                     \
  template void orthogonalise<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, const Blas&, int);
WIDEMARGIN_INSTANTIATE(float)
WIDEMARGIN_INSTANTIATE(double)

}  // namespace widemargin

#include "widemargin/units.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "unit_tiles.hpp"
#include "widemargin/chunk_sums.hpp"
#include "widemargin/parallel.hpp"

namespace widemargin {

template <class T>
void unit_sums(const UnitRows<T>& rows, RowIndices chosen, const UnitParameters<T>& units,
               const UnitSums& out, const Blas& blas, int n_threads) {
  const UnitSumsLayout layout(rows, units, out);
  const std::vector<T> back = back_columns(units, layout);
  const std::size_t most = std::min(kRowsPerTile, chosen.size());
  ChunkSums sums(chosen.size(), layout.size);
  for_each_chunk(chosen.size(), n_threads,
                 [&](std::size_t chunk, std::size_t begin, std::size_t end) {
                   TileSums<T> tile(rows, units, back, layout, blas, most);
                   for (std::size_t first = begin; first < end; first += kRowsPerTile) {
                     const std::size_t count = std::min(kRowsPerTile, end - first);
                     sums.add(chunk, tile.over(chosen.subspan(first, count)));
                   }
                 });
  std::vector<double> total(layout.size);
  sums.total(total.data());
  std::copy_n(total.data(), layout.by_dimension, out.by_unit);
  if (out.by_dimension != nullptr) {
    std::copy_n(total.data() + layout.by_dimension, layout.dimensions, out.by_dimension);
  }
  if (out.by_feature != nullptr) {
    std::copy_n(total.data() + layout.by_feature, layout.features * layout.dimensions,
                out.by_feature);
  }
}

void unit_gradient(const UnitPlaces& units, const UnitSums& sums, const UnitGradient& out,
                   std::size_t features) {
  const std::size_t dimensions = units.centres.columns, width = dimensions + 2;
  const double* squares = units.squares;
  std::vector<double> by_dimension(dimensions, 0.0);
  double of_all = 0.0;
  for (std::size_t j = 0; j < units.centres.rows; ++j) {
    const double *moments = sums.by_unit + j * width, *centre = units.centres.row(j);
    const double sum = moments[dimensions], pull = units.widths[j];
    // sum_i W_ij |(z_i - c_j) r|^2, multiplied out: no pass over rows and units more.
    double apart = moments[dimensions + 1];
    for (std::size_t d = 0; d < dimensions; ++d) {
      apart += squares[d] * centre[d] * (sum * centre[d] - 2.0 * moments[d]);
      out.centres[j * dimensions + d] = 2.0 * pull * squares[d] * (moments[d] - centre[d] * sum);
      by_dimension[d] += pull * centre[d] * (sum * centre[d] - 2.0 * moments[d]);
    }
    out.log_widths[j] = -pull * apart;
    of_all -= 2.0 * pull * apart;
  }
  if (sums.by_dimension == nullptr) {
    out.log_weights[0] = of_all;
  } else {
    for (std::size_t d = 0; d < dimensions; ++d)
      out.log_weights[d] = -2.0 * squares[d] * (sums.by_dimension[d] + by_dimension[d]);
  }
  if (sums.by_feature == nullptr) return;
  for (std::size_t f = 0; f < features; ++f) {
    for (std::size_t d = 0; d < dimensions; ++d) {
      out.mapping[f * dimensions + d] = -2.0 * squares[d] * sums.by_feature[f * dimensions + d];
    }
  }
}

template void unit_sums<float>(const UnitRows<float>&, RowIndices, const UnitParameters<float>&,
                               const UnitSums&, const Blas&, int);
template void unit_sums<double>(const UnitRows<double>&, RowIndices, const UnitParameters<double>&,
                                const UnitSums&, const Blas&, int);

}  // namespace widemargin

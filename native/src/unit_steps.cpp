#include "widemargin/unit_steps.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>
#include <vector>

#include "unit_tiles.hpp"
#include "widemargin/aligned.hpp"
#include "widemargin/units.hpp"
#include "widemargin/vector_code.hpp"

namespace widemargin {
namespace {

using Floats = AlignedVector<float>;

// Parameters as the arithmetic of a batch takes them.
struct Rounded {
  Floats coefficients;     // of the intercepts, the units and the linear part, one below the other
  Floats centres;          // units x dimensions
  Floats weighted;         // the same times the weights of the dimensions
  Floats norms;            // of these, squared
  Floats widths, squares;  // of the weights
  Floats weights;
  Floats mapping;  // features x dimensions
};

// One batch after the other, in the same memory.
class Batches {
 public:
  Batches(const StepRows& rows, const UnitParts& parts, std::size_t most, const Blas& blas)
      : rows_(rows), parts_(parts), blas_(blas) {
    std::size_t begin = 0;
    const auto sizes = parts.sizes();
    for (std::size_t kind = 0; kind < UnitParts::kKinds; ++kind) {
      begins_[kind] = begin;
      begin += sizes[kind];
    }
    gradient_.resize(begin);
    const std::size_t m = parts.units, d = parts.dimensions, k = parts.outputs;
    at_.coefficients.resize(sizes[0]);
    at_.centres.resize(m * d);
    at_.weighted.resize(m * d);
    at_.norms.resize(m);
    at_.widths.resize(m);
    at_.squares.resize(d);
    at_.weights.resize(d);
    at_.mapping.resize(sizes[4]);
    widths_.resize(m);
    squares_.resize(d);
    unmapped_.resize(most * parts.features);
    linear_.resize(most * parts.linear);
    mapped_.resize(parts.is_mapped ? most * d : 0);
    weighted_.resize(most * d);
    rest_.resize(rows.rest != nullptr ? most : 0);
    values_.resize(most * m);
    scores_.resize(most * k);
    slopes_.resize(most * k);
    products_.resize(sizes[0]);
    by_unit_.resize(m * (d + 2));
    by_dimension_.resize(parts.log_weights > 1 ? d : 0);
    by_feature_.resize(sizes[4]);
    numbers_.resize(most);
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }

  // The objective as some rows tell it, and its gradient; `scale` is the number of rows that each
  // of them stands for.
  double evaluate(const double* parameters, RowIndices some, double scale) {
    round(parameters);
    see(some);
    unit_values(some.size());
    add_scores(some.size());
    const double loss = std::visit(
        [&](const auto& judge) { return judge_rows(judge, some, static_cast<float>(scale)); },
        rows_.judge);
    const double* coefficients = parameters;
    const std::size_t count = at_.coefficients.size();
    double squared = 0.0;
    for (std::size_t i = 0; i < count; ++i) squared += coefficients[i] * coefficients[i];
    differentiate_coefficients(coefficients, some.size());
    differentiate_units(parameters, some.size());
    return loss + 0.5 * squared;
  }

  const std::vector<double>& gradient() const { return gradient_; }
  std::size_t begin(std::size_t kind) const { return begins_[kind]; }

 private:
  enum Kind : std::size_t { kCoefficients, kCentres, kLogWidths, kLogWeights, kMapping };

  void round(const double* parameters) {
    const std::size_t m = parts_.units, d = parts_.dimensions;
    const auto copy = [&](Kind kind, Floats& out) {
      const double* from = parameters + begins_[kind];
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(from[i]);
    };
    copy(kCoefficients, at_.coefficients);
    copy(kCentres, at_.centres);
    copy(kMapping, at_.mapping);
    const double* log_weights = parameters + begins_[kLogWeights];
    for (std::size_t f = 0; f < d; ++f) {
      const double weight = positive(log_weights[parts_.log_weights == 1 ? 0 : f]);
      squares_[f] = weight * weight;
      at_.weights[f] = static_cast<float>(weight);
      at_.squares[f] = static_cast<float>(squares_[f]);
    }
    for (std::size_t j = 0; j < m; ++j) {
      widths_[j] = positive(parameters[begins_[kLogWidths] + j]);
      at_.widths[j] = static_cast<float>(widths_[j]);
      float norm = 0.0F;
      for (std::size_t f = 0; f < d; ++f) {
        const float value = at_.centres[j * d + f] * at_.weights[f];
        at_.weighted[j * d + f] = value;
        norm += value * value;
      }
      at_.norms[j] = norm;
    }
  }

  static double positive(double logarithm) {
    return std::exp(std::clamp(logarithm, -kLargestLog, kLargestLog));
  }

  const float* mapped() const { return parts_.is_mapped ? mapped_.data() : unmapped_.data(); }

  void see(RowIndices some) {
    const std::size_t p = parts_.features, d = parts_.dimensions;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto row = static_cast<std::size_t>(some[i]);
      std::copy_n(rows_.rows.row(row), p, unmapped_.data() + i * p);
      std::copy_n(rows_.linear.row(row), parts_.linear, linear_.data() + i * parts_.linear);
      if (rows_.rest != nullptr) rest_[i] = rows_.rest[row];
    }
    if (parts_.is_mapped) {
      blas_.gemm<float>(false, false, some.size(), d, p, 1.0F, unmapped_.data(), p,
                        at_.mapping.data(), d, 0.0F, mapped_.data(), d);
    }
  }

  // |a - b|^2 = |a|^2 + |b|^2 - 2 a.b: rows are standardised, so that this loses few digits.
  void unit_values(std::size_t count) {
    const std::size_t m = parts_.units, d = parts_.dimensions;
    const float* z = mapped();
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t f = 0; f < d; ++f) weighted_[i * d + f] = z[i * d + f] * at_.weights[f];
    }
    blas_.gemm<float>(false, true, count, m, d, -2.0F, weighted_.data(), d, at_.weighted.data(), d,
                      0.0F, values_.data(), m);
    for (std::size_t i = 0; i < count; ++i) {
      float norm = weighted_squares(z + i * d, at_.squares.data(), d);
      if (!rest_.empty()) norm += at_.squares[0] * rest_[i];
      float* values = values_.data() + i * m;
      for (std::size_t j = 0; j < m; ++j)
        values[j] = (values[j] + norm + at_.norms[j]) * at_.widths[j];
    }
    exp_of_negative(values_.data(), count * m);
  }

  void add_scores(std::size_t count) {
    const std::size_t m = parts_.units, k = parts_.outputs, p = parts_.linear;
    const float* of_units = at_.coefficients.data() + parts_.constants * k;
    for (std::size_t i = 0; i < count; ++i) {
      if (parts_.constants > 0) {
        std::copy_n(at_.coefficients.data(), k, scores_.data() + i * k);
      } else {
        std::fill_n(scores_.data() + i * k, k, 0.0F);
      }
    }
    blas_.gemm<float>(false, false, count, k, m, 1.0F, values_.data(), m, of_units, k, 1.0F,
                      scores_.data(), k);
    if (p > 0) {
      blas_.gemm<float>(false, false, count, k, p, 1.0F, linear_.data(), p, of_units + m * k, k,
                        1.0F, scores_.data(), k);
    }
  }

  template <class Judged>
  double judge_rows(const Judged& judge, RowIndices some, float scale) {
    const std::size_t k = parts_.outputs;
    double loss = 0.0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto row = static_cast<std::size_t>(some[i]);
      const float weight = rows_.weights[row] * scale;
      float* slopes = slopes_.data() + i * k;
      loss += static_cast<double>(weight) *
              static_cast<double>(
                  judge.loss.gradient(scores_.data() + i * k, judge.targets(row, k), k, slopes));
      for (std::size_t c = 0; c < k; ++c) slopes[c] *= weight;
    }
    return loss;
  }

  void differentiate_coefficients(const double* coefficients, std::size_t count) {
    const std::size_t m = parts_.units, k = parts_.outputs, p = parts_.linear;
    float* out = products_.data();
    if (parts_.constants > 0) {
      std::fill_n(out, k, 0.0F);
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t c = 0; c < k; ++c) out[c] += slopes_[i * k + c];
      }
      out += k;
    }
    blas_.gemm<float>(true, false, m, k, count, 1.0F, values_.data(), m, slopes_.data(), k, 0.0F,
                      out, k);
    if (p > 0) {
      blas_.gemm<float>(true, false, p, k, count, 1.0F, linear_.data(), p, slopes_.data(), k, 0.0F,
                        out + m * k, k);
    }
    for (std::size_t i = 0; i < products_.size(); ++i)
      gradient_[i] = coefficients[i] + static_cast<double>(products_[i]);
  }

  void differentiate_units(const double* parameters, std::size_t count) {
    const std::size_t m = parts_.units, d = parts_.dimensions, k = parts_.outputs;
    const UnitRows<float> rows{{mapped(), count, d, d},
                               rest_.empty() ? nullptr : rest_.data(),
                               {values_.data(), count, m, m},
                               {slopes_.data(), count, k, k},
                               {unmapped_.data(), count, parts_.features, parts_.features}};
    const UnitParameters<float> units{{at_.coefficients.data() + parts_.constants * k, m, k, k},
                                      {at_.centres.data(), m, d, d},
                                      at_.widths.data(),
                                      at_.squares.data()};
    const UnitSums sums{by_unit_.data(), by_dimension_.empty() ? nullptr : by_dimension_.data(),
                        parts_.is_mapped ? by_feature_.data() : nullptr};
    unit_sums<float>(rows, RowIndices(numbers_).first(count), units, sums, blas_, 1);
    unit_gradient({{parameters + begins_[kCentres], m, d, d}, widths_.data(), squares_.data()},
                  sums,
                  {gradient_.data() + begins_[kCentres], gradient_.data() + begins_[kLogWidths],
                   gradient_.data() + begins_[kLogWeights], gradient_.data() + begins_[kMapping]},
                  parts_.features);
  }

  const StepRows& rows_;
  const UnitParts& parts_;
  const Blas& blas_;
  std::array<std::size_t, UnitParts::kKinds> begins_{};
  Rounded at_;
  std::vector<double> gradient_, widths_, squares_, by_unit_, by_dimension_, by_feature_;
  Floats unmapped_, linear_, mapped_, weighted_, rest_, values_, scores_, slopes_, products_;
  std::vector<std::int32_t> numbers_;
};

}  // namespace

std::size_t adam_steps(const StepRows& rows, const UnitParts& parts, const StepSchedule& schedule,
                       const AdamRates& rates, std::int64_t n_steps, const AdamMoments& moments,
                       double* values, const Blas& blas) {
  const std::size_t n_batches = schedule.shares.size();
  std::int64_t most = 0;
  for (std::size_t batch = 0; batch < n_batches; ++batch)
    most = std::max(most, schedule.starts[batch + 1] - schedule.starts[batch]);
  Batches batches(rows, parts, static_cast<std::size_t>(most), blas);
  const auto sizes = parts.sizes();
  for (std::size_t batch = 0; batch < n_batches; ++batch) {
    const auto first = static_cast<std::size_t>(schedule.starts[batch]);
    const auto count = static_cast<std::size_t>(schedule.starts[batch + 1]) - first;
    values[batch] = batches.evaluate(moments.parameters, schedule.order.subspan(first, count),
                                     schedule.n_rows / static_cast<double>(count));
    if (!std::isfinite(values[batch])) return batch;
    const auto step = static_cast<double>(n_steps + 1 + static_cast<std::int64_t>(batch));
    // What running means that began at zero lack of the true ones.
    const double mean_part = 1.0 - std::pow(rates.decay, step);
    const double square_part = 1.0 - std::pow(rates.square_decay, step);
    for (std::size_t kind = 0; kind < UnitParts::kKinds; ++kind) {
      const double length = schedule.lengths[kind] * schedule.shares[batch] / mean_part;
      const std::size_t begin = batches.begin(kind);
      const double* gradient = batches.gradient().data() + begin;
      double *value = moments.parameters + begin, *mean = moments.means + begin,
             *square = moments.squares + begin;
      if (schedule.lengths[kind] == 0.0) continue;  // what does not move
      for (std::size_t i = 0; i < sizes[kind]; ++i) {
        mean[i] += (1.0 - rates.decay) * (gradient[i] - mean[i]);
        square[i] += (1.0 - rates.square_decay) * (gradient[i] * gradient[i] - square[i]);
        value[i] -= length * mean[i] / (std::sqrt(square[i] / square_part) + rates.tiny);
      }
    }
  }
  return n_batches;
}

}  // namespace widemargin

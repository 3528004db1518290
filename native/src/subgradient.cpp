#include "widemargin/subgradient.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "widemargin/aligned.hpp"
#include "widemargin/parallel.hpp"
#include "widemargin/row_rules.hpp"
#include "widemargin/vector_code.hpp"

namespace widemargin {
namespace {

// Below this share of their length, sums are brought back to it.
constexpr double kLeastShrink = 1e-3;

// Calls task with the rule of a loss.
template <class Task>
auto with_loss(const StepRule& rule, const Task& task) {
  switch (rule.loss) {
    case RowLoss::kLogistic:
      return rule.is_joint ? task(Softmax{}) : task(AgainstRest<BinaryEntropy>{});
    case RowLoss::kPerceptron:
      return rule.is_joint ? task(WorstMistake{}) : task(AgainstRest<Mistake>{});
    case RowLoss::kWestonWatkins:
      return rule.is_joint ? task(SummedHinge{}) : task(AgainstRest<Hinge>{});
    default:
      return rule.is_joint ? task(WorstHinge{}) : task(AgainstRest<Hinge>{});
  }
}

// Where the entries of a row are among those of all.
struct Entries {
  std::size_t begin, count;
};

template <class T>
Entries entries_of(const LabelRows<T>& rows, std::size_t row) {
  if (rows.starts == nullptr) return {row * rows.columns, rows.columns};
  const auto begin = static_cast<std::size_t>(rows.starts[row]);
  return {begin, static_cast<std::size_t>(rows.starts[row + 1]) - begin};
}

// Has the memory look for the entries of a row, and for the weights of its features: rows come in
// random order, and to wait for each would take as long as the work.
template <class T>
void fetch_row(const LabelRows<T>& rows, std::size_t row) {
  const Entries entries = entries_of(rows, row);
  fetch(rows.values + entries.begin, entries.count * sizeof(T));
  if (rows.starts == nullptr) return;
  fetch(rows.indices + entries.begin, entries.count * sizeof(*rows.indices));
}

template <class T>
void fetch_weights(const LabelRows<T>& rows, std::size_t row, const T* weights, std::size_t width) {
  if (rows.starts == nullptr) return;  // every row needs all of them, so that they stay near
  const Entries entries = entries_of(rows, row);
  for (std::size_t e = 0; e < entries.count; ++e) {
    const auto feature = static_cast<std::size_t>(rows.indices[entries.begin + e]);
    fetch(weights + feature * width, width * sizeof(T));
  }
}

template <class T>
double square_of(const LabelRows<T>& rows, std::size_t row) {
  const auto [begin, count] = entries_of(rows, row);
  const std::size_t end = begin + count;
  // Four sums, as one would have to wait for itself.
  double sums[4] = {rows.constant * rows.constant, 0, 0, 0};
  std::size_t e = begin;
  for (; e + 4 <= end; e += 4) {
    for (std::size_t p = 0; p < 4; ++p) {
      const auto value = static_cast<double>(rows.values[e + p]);
      sums[p] += value * value;
    }
  }
  for (; e < end; ++e) {
    sums[0] += static_cast<double>(rows.values[e]) * static_cast<double>(rows.values[e]);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class T>
void fetch_ahead(const ClassRows<T>& data, std::span<const std::int32_t> order, std::size_t place,
                 const T* weights) {
  const auto row_after = [&](std::size_t steps) {
    return static_cast<std::size_t>(order[std::min(place + steps, order.size() - 1)]);
  };
  fetch_row(data.rows, row_after(4));
  fetch_weights(data.rows, row_after(1), weights, data.width);
}

bool is_mistake(const double* f, std::size_t y, std::size_t k) {
  return k > 1 && !(f[y] > f[best_other(f, y, k)]);
}

// Adds `change` times the row to the sums, and what the mean needs to know of it.
template <class T>
class Spreader {
 public:
  Spreader(const ClassRows<T>& data, T* sums, T* earlier)
      : data_(data), sums_(sums), earlier_(earlier), change_(data.width, T(0)) {}

  void add(std::size_t row, const double* change, double mass) {
    if (std::all_of(change, change + data_.classes, [](double each) { return each == 0; })) return;
    put(row, change, 1.0, sums_);
    if (earlier_ != nullptr && mass != 0) put(row, change, mass, earlier_);
  }

 private:
  void put(std::size_t row, const double* change, double factor, T* to) {
    for (std::size_t c = 0; c < data_.classes; ++c) change_[c] = static_cast<T>(factor * change[c]);
    vector_code<T>().spread_row(data_.rows, row, change_.data(), data_.width, to);
  }

  const ClassRows<T>& data_;
  T *sums_, *earlier_;
  AlignedVector<T> change_;
};

template <class T>
class Scorer {
 public:
  explicit Scorer(const ClassRows<T>& data) : data_(data), lanes_(data.width) {}

  // out[c] = scale * score of the row by these weights.
  void find(std::size_t row, const T* weights, double scale, double* out) {
    vector_code<T>().weigh_row(data_.rows, row, weights, data_.width, lanes_.data());
    for (std::size_t c = 0; c < data_.classes; ++c) {
      out[c] = scale * static_cast<double>(lanes_[c]);
    }
  }

 private:
  const ClassRows<T>& data_;
  AlignedVector<T> lanes_;
};

template <class Loss, class T>
void learn_exactly(const StepRule& rule, const ClassRows<T>& data,
                   std::span<const std::int32_t> order, bool revisits, StepTotals& totals, T* sums,
                   T* earlier, T* coefficients, RowRecord& record) {
  const std::size_t k = data.classes;
  std::vector<double> scores(k), now(k, 0.0), next(k);
  Scorer<T> scorer(data);
  Spreader<T> spreader(data, sums, earlier);
  for (std::size_t place = 0; place < order.size(); ++place) {
    fetch_ahead(data, order, place, sums);
    const auto i = static_cast<std::size_t>(order[place]);
    const auto y = static_cast<std::size_t>(data.targets[i]);
    const double cap = data.rows.caps[i];
    if (!revisits) totals.weight += cap;
    const double scale = 1 / (rule.penalty * totals.weight);
    const double curvature = scale * square_of(data.rows, i);
    scorer.find(i, sums, scale, scores.data());
    const double loss = cap * Loss::value(scores.data(), y, k);
    record.loss += loss;
    record.mistakes += is_mistake(scores.data(), y, k) ? 1 : 0;
    if (coefficients != nullptr) {
      double along = 0;
      for (std::size_t c = 0; c < k; ++c) {
        now[c] = static_cast<double>(coefficients[i * k + c]);
        along += scores[c] * now[c];
      }
      record.gap += loss - Loss::dual(now.data(), y, k, cap) + along;
    }
    // Rows of zeros have scores that no step changes, so that as much as allowed is best.
    Loss::solve(scores.data(), y, k, cap, std::max(curvature, 1e-30), now.data(), next.data());
    for (std::size_t c = 0; c < k; ++c) {
      if (coefficients != nullptr) {
        const T rounded = static_cast<T>(next[c]);
        coefficients[i * k + c] = rounded;
        next[c] = static_cast<double>(rounded);
      }
      next[c] -= now[c];
    }
    spreader.add(i, next.data(), totals.mass);
    totals.mass += cap;
    totals.averaged += cap * totals.weight;
    ++totals.steps;
  }
}

template <class Loss, class T>
class Subgradients {
 public:
  Subgradients(const StepRule& rule, const ClassRows<T>& data, StepTotals& totals, T* sums,
               T* earlier, RowRecord& record)
      : rule_(rule),
        data_(data),
        totals_(totals),
        sums_(sums),
        record_(record),
        scorer_(data),
        spreader_(data, sums, earlier),
        scores_(data.classes),
        pulls_(rule.batch * data.classes) {}

  void step(std::span<const std::int32_t> batch) {
    const std::size_t k = data_.classes;
    const double before =
        totals_.weight > 0 ? totals_.shrink / (rule_.penalty * totals_.weight) : 0;
    double weight = 0;
    for (std::size_t b = 0; b < batch.size(); ++b) {
      const auto i = static_cast<std::size_t>(batch[b]);
      const auto y = static_cast<std::size_t>(data_.targets[i]);
      const double cap = data_.rows.caps[i];
      double* pull = pulls_.data() + b * k;
      scorer_.find(i, sums_, before, scores_.data());
      record_.loss += cap * Loss::value(scores_.data(), y, k);
      record_.mistakes += is_mistake(scores_.data(), y, k) ? 1 : 0;
      Loss::pull(scores_.data(), y, k, pull);
      for (std::size_t c = 0; c < k; ++c) pull[c] *= cap / totals_.shrink;
      weight += cap;
    }
    totals_.weight += weight;
    for (std::size_t b = 0; b < batch.size(); ++b) {
      const auto i = static_cast<std::size_t>(batch[b]);
      if (rule_.projects) lengthen(i, pulls_.data() + b * k);
      spreader_.add(i, pulls_.data() + b * k, totals_.mass);
    }
    if (rule_.projects) project();
    totals_.mass += weight * totals_.shrink;
    totals_.averaged += weight * totals_.weight;
    ++totals_.steps;
  }

 private:
  // |sums + x change'|^2 = |sums|^2 + 2 change . (sums x) + |change|^2 |x|^2
  void lengthen(std::size_t row, const double* change) {
    scorer_.find(row, sums_, 1.0, scores_.data());
    double along = 0, own = 0;
    for (std::size_t c = 0; c < data_.classes; ++c) {
      along += change[c] * scores_[c];
      own += change[c] * change[c];
    }
    totals_.square = std::max(0.0, totals_.square + 2 * along + own * square_of(data_.rows, row));
  }

  void project() {
    const double scale = totals_.shrink / (rule_.penalty * totals_.weight);
    const double length = scale * std::sqrt(totals_.square * rule_.penalty);
    if (length > 1) totals_.shrink /= length;
    if (totals_.shrink > kLeastShrink) return;
    // w and the sum of all that were before it stay as they are.
    const std::size_t count = (data_.rows.columns + 1) * data_.width;
    const T factor = static_cast<T>(totals_.shrink);
    std::for_each(sums_, sums_ + count, [factor](T& each) { each *= factor; });
    totals_.mass /= totals_.shrink;
    totals_.square *= totals_.shrink * totals_.shrink;
    totals_.shrink = 1;
  }

  const StepRule& rule_;
  const ClassRows<T>& data_;
  StepTotals& totals_;
  T* sums_;
  RowRecord& record_;
  Scorer<T> scorer_;
  Spreader<T> spreader_;
  std::vector<double> scores_, pulls_;
};

}  // namespace

template <class T>
RowRecord learn_rows(const StepRule& rule, const ClassRows<T>& data,
                     std::span<const std::int32_t> order, bool revisits, StepTotals& totals,
                     T* sums, T* earlier, T* coefficients) {
  RowRecord record;
  with_loss(rule, [&](auto loss) {
    using Loss = decltype(loss);
    if constexpr (Loss::has_dual) {
      if (rule.is_exact) {
        learn_exactly<Loss>(rule, data, order, revisits, totals, sums, earlier, coefficients,
                            record);
        return;
      }
    }
    Subgradients<Loss, T> steps(rule, data, totals, sums, earlier, record);
    for (std::size_t start = 0; start < order.size(); start += rule.batch) {
      for (std::size_t b = 0; b < rule.batch; ++b) fetch_ahead(data, order, start + b, sums);
      steps.step(order.subspan(start, std::min(rule.batch, order.size() - start)));
    }
  });
  return record;
}

template <class T>
RowRecord judge_rows(const StepRule& rule, const ClassRows<T>& data, const T* weights,
                     const T* coefficients, int n_threads) {
  const std::size_t k = data.classes, n = data.rows.rows;
  std::vector<RowRecord> parts(chunk_count(n));
  for_each_chunk(n, n_threads, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    with_loss(rule, [&](auto loss) {
      using Loss = decltype(loss);
      std::vector<double> scores(k);
      Scorer<T> scorer(data);
      RowRecord& part = parts[chunk];
      for (std::size_t i = begin; i < end; ++i) {
        const auto y = static_cast<std::size_t>(data.targets[i]);
        const double cap = data.rows.caps[i];
        if (!(cap > 0)) continue;
        scorer.find(i, weights, 1.0, scores.data());
        part.loss += cap * Loss::value(scores.data(), y, k);
        part.mistakes += is_mistake(scores.data(), y, k) ? 1 : 0;
        if constexpr (Loss::has_dual) {
          if (coefficients == nullptr) continue;
          std::copy_n(coefficients + i * k, k, scores.begin());
          part.dual += Loss::dual(scores.data(), y, k, cap);
        }
      }
    });
  });
  RowRecord all;
  for (const RowRecord& part : parts) {
    all.loss += part.loss;
    all.dual += part.dual;
    all.mistakes += part.mistakes;
  }
  return all;
}

template <class T>
void weigh_rows(const ClassRows<T>& data, const T* weights, double* out) {
  Scorer<T> scorer(data);
  for (std::size_t i = 0; i < data.rows.rows; ++i) {
    scorer.find(i, weights, 1.0, out + i * data.classes);
  }
}

#define WIDEMARGIN_INSTANTIATE(T)                                                               \
  template RowRecord learn_rows(const StepRule&, const ClassRows<T>&,                           \
                                std::span<const std::int32_t>, bool, StepTotals&, T*, T*, T*);  \
  template RowRecord judge_rows(const StepRule&, const ClassRows<T>&, const T*, const T*, int); \
  template void weigh_rows(const ClassRows<T>&, const T*, double*);
WIDEMARGIN_INSTANTIATE(float)
WIDEMARGIN_INSTANTIATE(double)
#undef WIDEMARGIN_INSTANTIATE

}  // namespace widemargin

// Steps of dual coordinate ascent, part of each instruction set's translation unit: see
// vector_code.hpp beside this file. What they do is in widemargin/label_steps.hpp.

namespace widemargin {
namespace {

constexpr std::size_t kGroup = kLabelsAtOnce;
constexpr double kLeastGradient = 1e-12;

// Entries of a row, of which the constant feature is not one.
template <class T, bool Sparse>
struct RowOf {
  const std::int32_t* indices;
  const T* values;
  std::size_t count;

  RowOf(const LabelRows<T>& rows, std::size_t row) {
    if constexpr (Sparse) {
      const auto begin = static_cast<std::size_t>(rows.starts[row]);
      indices = rows.indices + begin;
      values = rows.values + begin;
      count = static_cast<std::size_t>(rows.starts[row + 1]) - begin;
    } else {
      indices = nullptr;
      values = rows.values + row * rows.columns;
      count = rows.columns;
    }
  }
  std::size_t feature(std::size_t entry) const {
    if constexpr (Sparse) {
      return static_cast<std::size_t>(indices[entry]);
    } else {
      return entry;
    }
  }
};

// Lanes of a register that a group fills.
template <class W>
constexpr std::size_t kGroupLanes = kLanes<W> < kGroup ? kLanes<W> : kGroup;

// out[l] = sum over entries of value * weights(feature, l), for Groups groups of labels.
template <std::size_t Groups, class Row, class W>
inline void add_up_scores(const Row& row, const W* weights, std::size_t width,
                          const W* constant_weights, W constant, W* out) {
  constexpr std::size_t lanes = kGroupLanes<W>, registers = Groups * kGroup / lanes;
  Register<W, lanes> sums[registers];
  WIDEMARGIN_UNROLL
  for (std::size_t p = 0; p < registers; ++p) {
    sums[p] = load<lanes>(constant_weights + p * lanes) * constant;
  }
  for (std::size_t e = 0; e < row.count; ++e) {
    const W* from = weights + row.feature(e) * width;
    const auto value = static_cast<W>(row.values[e]);
    WIDEMARGIN_UNROLL
    for (std::size_t p = 0; p < registers; ++p) {
      sums[p] = sums[p] + load<lanes>(from + p * lanes) * value;
    }
  }
  WIDEMARGIN_UNROLL
  for (std::size_t p = 0; p < registers; ++p) store<lanes>(out + p * lanes, sums[p]);
}

template <class Row, class W>
inline void find_scores(const Row& row, const W* weights, std::size_t width,
                        const W* constant_weights, W constant, W* out) {
  std::size_t l = 0;
  for (; l + 3 * kGroup <= width; l += 3 * kGroup) {
    add_up_scores<3>(row, weights + l, width, constant_weights + l, constant, out + l);
  }
  if (l + 2 * kGroup <= width) {
    add_up_scores<2>(row, weights + l, width, constant_weights + l, constant, out + l);
    l += 2 * kGroup;
  }
  if (l < width) {
    add_up_scores<1>(row, weights + l, width, constant_weights + l, constant, out + l);
  }
}

// weights(feature, l) += value * change[l] for all entries.
template <class Row, class W>
inline void spread_change(const Row& row, const W* change, std::size_t width, W constant,
                          W* constant_weights, W* weights) {
  constexpr std::size_t lanes = kGroupLanes<W>;
  for (std::size_t e = 0; e < row.count; ++e) {
    W* to = weights + row.feature(e) * width;
    const auto value = static_cast<W>(row.values[e]);
    for (std::size_t l = 0; l < width; l += lanes) {
      store<lanes>(to + l, load<lanes>(to + l) + load<lanes>(change + l) * value);
    }
  }
  for (std::size_t l = 0; l < width; ++l) constant_weights[l] += change[l] * constant;
}

inline std::uint64_t draw(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15u;
  std::uint64_t word = state;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
  return word ^ (word >> 31);
}

inline double larger(double a, double b) { return a > b ? a : b; }
inline double smaller(double a, double b) { return a < b ? a : b; }

// What a group of labels of one row would do, each for itself.
struct GroupSteps {
  double sign[kGroup], gradient[kGroup], cap[kGroup], step[kGroup];
  bool moves, is_settled;
};

inline GroupSteps look_at_group(const LabelLanes& lanes, std::size_t l, unsigned bits,
                                const double* margins, const double* scores,
                                const double* coefficients, double row_cap, double inverse_square) {
  GroupSteps out;
  double moves = 0, unsettled = 0;
  for (std::size_t j = 0; j < kGroup; ++j) {
    const bool has = (bits >> j) & 1;
    const double sign = has ? 1.0 : -1.0;
    const double gradient = (margins != nullptr ? margins[l + j] : 1.0) - sign * scores[j];
    const double cap = row_cap * (has ? lanes.with_label[l + j] : lanes.without_label[l + j]);
    const double now = coefficients[j], live = lanes.live[l + j];
    const double wanted = now + gradient * (inverse_square * lanes.inverse_scale[l + j]);
    // Gradients as small as the rounding of scores would keep coefficients moving for ever.
    const bool counts = gradient > kLeastGradient || gradient < -kLeastGradient;
    const double step = counts ? (smaller(larger(wanted, 0.0), cap) - now) * live : 0.0;
    const bool at_zero = now <= 0, at_cap = now >= cap;
    const double upward = at_cap ? 0.0 : larger(gradient, 0.0);
    const double downward = at_zero ? 0.0 : smaller(gradient, 0.0);
    lanes.highest[l + j] = larger(lanes.highest[l + j], upward * live);
    lanes.lowest[l + j] = smaller(lanes.lowest[l + j], downward * live);
    lanes.gap[l + j] += (cap * larger(gradient, 0.0) - now * gradient) * live;
    // A coefficient at its bound, which its gradient holds there more firmly than any moved.
    const bool held = (at_zero && gradient < lanes.low[l + j]) ||
                      (at_cap && gradient > lanes.high[l + j]) || cap <= 0;
    out.sign[j] = sign;
    out.gradient[j] = gradient;
    out.cap[j] = cap;
    out.step[j] = step;
    moves += step != 0 ? 1.0 : 0.0;
    unsettled += held ? 0.0 : live;
  }
  out.moves = moves > 0;
  out.is_settled = unsettled == 0;
  return out;
}

template <class T, bool Sparse>
std::uint64_t ascend_rows(const LabelRows<T>& rows, const LabelLanes& lanes, LabelPlace& place,
                          std::uint64_t most_entries) {
  const std::size_t width = lanes.width, groups = width / kGroup;
  double* constant_weights = lanes.weights + rows.columns * width;
  double* scores = lanes.scratch;
  double* change = lanes.scratch + width;
  std::uint64_t entries = 0;
  while (place.next < place.active && entries < most_entries) {
    // The order is shuffled on the way.
    const std::size_t left = place.active - place.next;
    const auto drawn =
        place.next + static_cast<std::size_t>(
                         (draw(place.random) >> 32) * static_cast<std::uint64_t>(left) >> 32);
    const std::int32_t chosen = place.order[drawn];
    place.order[drawn] = place.order[place.next];
    place.order[place.next] = chosen;
    const auto i = static_cast<std::size_t>(chosen);
    const RowOf<T, Sparse> row(rows, i);
    entries += row.count + 1;
    find_scores(row, lanes.weights, width, constant_weights, rows.constant, scores);
    const double square = rows.squares[i];
    // A row of zeros has a gradient that no step changes: any that is large enough ends at a bound.
    const double inverse = square > 0 ? 1.0 / square : 1e200;
    double* coefficients = lanes.coefficients + i * width;
    const std::uint8_t* signs = lanes.signs + i * groups;
    const double* margins = lanes.margins != nullptr ? lanes.margins + i * width : nullptr;
    bool moves = false, is_settled = true;
    if (lanes.prior == nullptr) {
      for (std::size_t l = 0; l < width; l += kGroup) {
        const GroupSteps found = look_at_group(lanes, l, signs[l / kGroup], margins, scores + l,
                                               coefficients + l, rows.caps[i], inverse);
        is_settled = is_settled && found.is_settled;
        moves = moves || found.moves;
        for (std::size_t j = 0; j < kGroup; ++j) {
          const double step = found.step[j], scale = lanes.scale[l + j];
          lanes.dual[l + j] += step * (found.gradient[j] - 0.5 * step * square * scale);
          coefficients[l + j] += step;
          change[l + j] = found.sign[j] * step * scale;
        }
      }
    } else {
      for (std::size_t l = 0; l < width; ++l) change[l] = 0;
      for (std::size_t l = 0; l < width; l += kGroup) {
        const GroupSteps found = look_at_group(lanes, l, signs[l / kGroup], margins, scores + l,
                                               coefficients + l, rows.caps[i], inverse);
        is_settled = is_settled && found.is_settled;
        if (!found.moves) continue;
        for (std::size_t j = 0; j < kGroup; ++j) {
          if (found.step[j] == 0) continue;
          // Labels that had their turn before it have changed its score.
          const double scale = lanes.scale[l + j], now = coefficients[l + j];
          const double gradient = found.gradient[j] - found.sign[j] * square * change[l + j];
          const double wanted = now + gradient * (inverse * lanes.inverse_scale[l + j]);
          const double step = smaller(larger(wanted, 0.0), found.cap[j]) - now;
          if (step == 0) continue;
          moves = true;
          lanes.dual[l + j] += step * (gradient - 0.5 * step * square * scale);
          coefficients[l + j] = now + step;
          const double* related = lanes.prior + (l + j) * width;
          const double factor = found.sign[j] * step;
          for (std::size_t k = 0; k < width; ++k) change[k] += factor * related[k];
        }
      }
    }
    if (moves) {
      ++place.moved;
      spread_change(row, change, width, rows.constant, constant_weights, lanes.weights);
    }
    if (is_settled) {
      --place.active;
      place.order[place.next] = place.order[place.active];
      place.order[place.active] = chosen;
    } else {
      ++place.next;
    }
  }
  return entries;
}

// The gap of rows [place.next, place.active) as they are, in their order.
template <class T, bool Sparse>
std::uint64_t judge_rows(const LabelRows<T>& rows, const LabelLanes& lanes, LabelPlace& place,
                         std::uint64_t most_entries) {
  const std::size_t width = lanes.width, groups = width / kGroup;
  const double* constant_weights = lanes.weights + rows.columns * width;
  std::uint64_t entries = 0;
  for (; place.next < rows.rows && entries < most_entries; ++place.next) {
    const std::size_t i = place.next;
    const RowOf<T, Sparse> row(rows, i);
    entries += row.count + 1;
    find_scores(row, lanes.weights, width, constant_weights, rows.constant, lanes.scratch);
    for (std::size_t l = 0; l < width; ++l) {
      const bool has = (lanes.signs[i * groups + l / kGroup] >> (l % kGroup)) & 1;
      const double margin = lanes.margins != nullptr ? lanes.margins[i * width + l] : 1.0;
      const double gradient = margin - (has ? lanes.scratch[l] : -lanes.scratch[l]);
      const double cap = rows.caps[i] * (has ? lanes.with_label[l] : lanes.without_label[l]);
      lanes.gap[l] += cap * larger(gradient, 0.0) - lanes.coefficients[i * width + l] * gradient;
    }
  }
  return entries;
}

template <class T>
std::uint64_t ascend(const LabelRows<T>& rows, const LabelLanes& lanes, LabelPlace& place,
                     std::uint64_t most_entries) {
  return rows.starts != nullptr ? ascend_rows<T, true>(rows, lanes, place, most_entries)
                                : ascend_rows<T, false>(rows, lanes, place, most_entries);
}

template <class T>
std::uint64_t judge(const LabelRows<T>& rows, const LabelLanes& lanes, LabelPlace& place,
                    std::uint64_t most_entries) {
  return rows.starts != nullptr ? judge_rows<T, true>(rows, lanes, place, most_entries)
                                : judge_rows<T, false>(rows, lanes, place, most_entries);
}

template <class T>
void weigh_row(const LabelRows<T>& rows, std::size_t row, const T* weights, std::size_t width,
               T* sums) {
  const T* constant_weights = weights + rows.columns * width;
  const T constant = static_cast<T>(rows.constant);
  if (rows.starts != nullptr) {
    find_scores(RowOf<T, true>(rows, row), weights, width, constant_weights, constant, sums);
  } else {
    find_scores(RowOf<T, false>(rows, row), weights, width, constant_weights, constant, sums);
  }
}

template <class T>
void spread_row(const LabelRows<T>& rows, std::size_t row, const T* change, std::size_t width,
                T* weights) {
  T* constant_weights = weights + rows.columns * width;
  const T constant = static_cast<T>(rows.constant);
  if (rows.starts != nullptr) {
    spread_change(RowOf<T, true>(rows, row), change, width, constant, constant_weights, weights);
  } else {
    spread_change(RowOf<T, false>(rows, row), change, width, constant, constant_weights, weights);
  }
}

}  // namespace
}  // namespace widemargin

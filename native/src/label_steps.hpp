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

// out[l] = sum over entries of value * weights(feature, l), for Groups groups of Unit labels. A sum
// of few registers is several sums of every so many entries, or each addition would wait for the
// last.
template <std::size_t Unit, std::size_t Groups, class Row, class W>
inline void add_up_scores(const Row& row, const W* weights, std::size_t width,
                          const W* constant_weights, W constant, W* out) {
  constexpr std::size_t lanes = std::min(kLanes<W>, Unit), registers = Groups * Unit / lanes;
  constexpr std::size_t strands = registers >= 4 ? 1 : 4 / registers;
  Register<W, lanes> sums[strands][registers];
  WIDEMARGIN_UNROLL
  for (std::size_t p = 0; p < registers; ++p) {
    sums[0][p] = load<lanes>(constant_weights + p * lanes) * constant;
    WIDEMARGIN_UNROLL
    for (std::size_t s = 1; s < strands; ++s) sums[s][p] = Register<W, lanes>{};
  }
  const auto add = [&](std::size_t e, Register<W, lanes>* to) {
    const W* from = weights + row.feature(e) * width;
    const auto value = static_cast<W>(row.values[e]);
    WIDEMARGIN_UNROLL
    for (std::size_t p = 0; p < registers; ++p)
      to[p] = to[p] + load<lanes>(from + p * lanes) * value;
  };
  std::size_t e = 0;
  for (; e + strands <= row.count; e += strands) {
    WIDEMARGIN_UNROLL
    for (std::size_t s = 0; s < strands; ++s) add(e + s, sums[s]);
  }
  for (; e < row.count; ++e) add(e, sums[0]);
  WIDEMARGIN_UNROLL
  for (std::size_t p = 0; p < registers; ++p) {
    WIDEMARGIN_UNROLL
    for (std::size_t s = 1; s < strands; ++s) sums[0][p] = sums[0][p] + sums[s][p];
    store<lanes>(out + p * lanes, sums[0][p]);
  }
}

// The width is a multiple of Unit.
template <std::size_t Unit, class Row, class W>
inline void find_scores(const Row& row, const W* weights, std::size_t width,
                        const W* constant_weights, W constant, W* out) {
  std::size_t l = 0;
  for (; l + 3 * Unit <= width; l += 3 * Unit) {
    add_up_scores<Unit, 3>(row, weights + l, width, constant_weights + l, constant, out + l);
  }
  if (l + 2 * Unit <= width) {
    add_up_scores<Unit, 2>(row, weights + l, width, constant_weights + l, constant, out + l);
    l += 2 * Unit;
  }
  if (l < width) {
    add_up_scores<Unit, 1>(row, weights + l, width, constant_weights + l, constant, out + l);
  }
}

// weights(feature, l) += value * change[l] for all entries.
template <std::size_t Unit, class Row, class W>
inline void spread_change(const Row& row, const W* change, std::size_t width, W constant,
                          W* constant_weights, W* weights) {
  constexpr std::size_t lanes = std::min(kLanes<W>, Unit);
  for (std::size_t e = 0; e < row.count; ++e) {
    W* to = weights + row.feature(e) * width;
    const auto value = static_cast<W>(row.values[e]);
    for (std::size_t l = 0; l < width; l += lanes) {
      store<lanes>(to + l, load<lanes>(to + l) + load<lanes>(change + l) * value);
    }
  }
  for (std::size_t l = 0; l < width; ++l) constant_weights[l] += change[l] * constant;
}

// The random word that a counter stands for.
inline std::uint64_t mixed(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
  return word ^ (word >> 31);
}
constexpr std::uint64_t kCount = 0x9E3779B97F4A7C15u;

inline std::uint64_t draw(std::uint64_t& state) { return mixed(state += kCount); }

// Where a draw among so many places ends.
inline std::size_t drawn_place(std::uint64_t word, std::size_t places) {
  return static_cast<std::size_t>((word >> 32) * static_cast<std::uint64_t>(places) >> 32);
}

// The row that will probably come so many steps after this one, unless a row is let go before.
inline std::size_t probable_row(const LabelPlace& place, std::size_t steps) {
  const std::size_t first = place.next + steps;
  if (first >= place.active) return static_cast<std::size_t>(place.order[place.next]);
  const std::uint64_t word = mixed(place.random + steps * kCount);
  return static_cast<std::size_t>(place.order[first + drawn_place(word, place.active - first)]);
}

// Has the memory look for rows to come while this one is worked on: they come in random order, and
// to wait for each takes longer than the work. Where the entries of a row are must be known first.
template <class T, bool Sparse>
inline void fetch_ahead(const LabelRows<T>& rows, const LabelLanes& lanes,
                        const LabelPlace& place) {
  const std::size_t far = probable_row(place, 5), near = probable_row(place, 2);
  if constexpr (Sparse) fetch(rows.starts + far, 1);
  fetch(rows.squares + far, 1);
  fetch(rows.caps + far, 1);
  fetch(lanes.signs + far * (lanes.width / kGroup), 1);
  const RowOf<T, Sparse> row(rows, near);
  if constexpr (Sparse) fetch(row.indices, row.count * sizeof(*row.indices));
  fetch(row.values, row.count * sizeof(T));
  fetch(lanes.coefficients + near * lanes.width, lanes.width * sizeof(double));
}

inline double larger(double a, double b) { return a > b ? a : b; }
inline double smaller(double a, double b) { return a < b ? a : b; }

// What a group of labels of one row would do, each for itself.
struct GroupSteps {
  double sign[kGroup], gradient[kGroup], cap[kGroup], step[kGroup];
  bool moves, is_settled;
};

// The numbers of a group, in the loop below out of reach of every other pointer: that is what lets
// a compiler take all its labels at once.
struct GroupNumbers {
  double number[kGroup];

  explicit GroupNumbers(const double* from) {
    for (std::size_t j = 0; j < kGroup; ++j) number[j] = from[j];
  }
  double operator[](std::size_t j) const { return number[j]; }
  double& operator[](std::size_t j) { return number[j]; }
  void put(double* to) const {
    for (std::size_t j = 0; j < kGroup; ++j) to[j] = number[j];
  }
};

inline GroupSteps look_at_group(const LabelLanes& lanes, std::size_t l, unsigned bits,
                                const double* margins, const double* scores,
                                const double* coefficients, double row_cap, double inverse_square) {
  GroupSteps out;
  const GroupNumbers score(scores), coefficient(coefficients), live(lanes.live + l);
  const GroupNumbers low(lanes.low + l), high(lanes.high + l), scale(lanes.inverse_scale + l);
  const GroupNumbers with_label(lanes.with_label + l), without_label(lanes.without_label + l);
  GroupNumbers highest(lanes.highest + l), lowest(lanes.lowest + l), gap(lanes.gap + l);
  double margin[kGroup], moves[kGroup], unsettled[kGroup];
  for (std::size_t j = 0; j < kGroup; ++j) {
    margin[j] = margins != nullptr ? margins[l + j] : 1.0;
    out.sign[j] = (bits >> j) & 1 ? 1.0 : -1.0;
  }
  for (std::size_t j = 0; j < kGroup; ++j) {
    const double gradient = margin[j] - out.sign[j] * score[j];
    const double cap = row_cap * (out.sign[j] > 0 ? with_label[j] : without_label[j]);
    const double now = coefficient[j];
    const double wanted = now + gradient * (inverse_square * scale[j]);
    // Gradients as small as the rounding of scores would keep coefficients moving for ever.
    const double size = gradient < 0 ? -gradient : gradient;
    const double step = (smaller(larger(wanted, 0.0), cap) - now) * live[j];
    const double upward = now < cap ? larger(gradient, 0.0) : 0.0;
    const double downward = now > 0 ? smaller(gradient, 0.0) : 0.0;
    highest[j] = larger(highest[j], upward * live[j]);
    lowest[j] = smaller(lowest[j], downward * live[j]);
    gap[j] += (cap * larger(gradient, 0.0) - now * gradient) * live[j];
    // A coefficient at its bound is held there, if its gradient does so more firmly than any moved.
    const double at_zero = now > 0 ? 1.0 : (gradient < low[j] ? 0.0 : 1.0);
    const double at_cap = now < cap ? 1.0 : (gradient > high[j] ? 0.0 : 1.0);
    const double free = cap > 0 ? at_zero * at_cap : 0.0;
    out.gradient[j] = gradient;
    out.cap[j] = cap;
    out.step[j] = size > kLeastGradient ? step : 0.0;
    moves[j] = out.step[j] != 0 ? 1.0 : 0.0;
    unsettled[j] = free * live[j];
  }
  highest.put(lanes.highest + l);
  lowest.put(lanes.lowest + l);
  gap.put(lanes.gap + l);
  double moving = 0, open = 0;
  for (std::size_t j = 0; j < kGroup; ++j) {
    moving += moves[j];
    open += unsettled[j];
  }
  out.moves = moving > 0;
  out.is_settled = open == 0;
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
    const std::size_t drawn = place.next + drawn_place(draw(place.random), left);
    const std::int32_t chosen = place.order[drawn];
    place.order[drawn] = place.order[place.next];
    place.order[place.next] = chosen;
    fetch_ahead<T, Sparse>(rows, lanes, place);
    const auto i = static_cast<std::size_t>(chosen);
    const RowOf<T, Sparse> row(rows, i);
    entries += row.count + 1;
    find_scores<kGroup>(row, lanes.weights, width, constant_weights, rows.constant, scores);
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
        const GroupNumbers scale(lanes.scale + l);
        GroupNumbers dual(lanes.dual + l), now(coefficients + l), changed(change + l);
        for (std::size_t j = 0; j < kGroup; ++j) {
          const double step = found.step[j];
          dual[j] += step * (found.gradient[j] - 0.5 * step * square * scale[j]);
          now[j] += step;
          changed[j] = found.sign[j] * step * scale[j];
        }
        dual.put(lanes.dual + l);
        now.put(coefficients + l);
        changed.put(change + l);
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
      spread_change<kGroup>(row, change, width, rows.constant, constant_weights, lanes.weights);
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
    find_scores<kGroup>(row, lanes.weights, width, constant_weights, rows.constant, lanes.scratch);
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
    find_scores<kClassesAtOnce>(RowOf<T, true>(rows, row), weights, width, constant_weights,
                                constant, sums);
  } else {
    find_scores<kClassesAtOnce>(RowOf<T, false>(rows, row), weights, width, constant_weights,
                                constant, sums);
  }
}

template <class T>
void spread_row(const LabelRows<T>& rows, std::size_t row, const T* change, std::size_t width,
                T* weights) {
  T* constant_weights = weights + rows.columns * width;
  const T constant = static_cast<T>(rows.constant);
  if (rows.starts != nullptr) {
    spread_change<kClassesAtOnce>(RowOf<T, true>(rows, row), change, width, constant,
                                  constant_weights, weights);
  } else {
    spread_change<kClassesAtOnce>(RowOf<T, false>(rows, row), change, width, constant,
                                  constant_weights, weights);
  }
}

}  // namespace
}  // namespace widemargin

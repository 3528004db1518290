#include "widemargin/label_box.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "widemargin/parallel.hpp"
#include "widemargin/vector_code.hpp"

namespace widemargin {
namespace {

constexpr float kInnerShare = 0.02f;        // of the first step of a block: less waits for a later
constexpr std::size_t kStepsOfRow = 3;      // that a label takes in a turn, at the most
constexpr std::size_t kTurns = 5;           // of all labels in a block, where R relates them
constexpr double kTurnShare = 0.1;          // of the gain of the first turn: after less, none comes
constexpr std::size_t kPanelsOfTile = 8;    // of rows, whose gradients follow together
constexpr std::size_t kLabelsOfTile = 128;  // so that their sums stay in the cache, too
constexpr float kFlat = 1e-37f;             // a curvature below is none

float as_float(double value) {
  constexpr double most = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -most, most));
}

std::size_t rounded_up(std::size_t count, std::size_t unit) {
  return (count + unit - 1) / unit * unit;
}

// Rows of equal length one after the other, as the right operand of sums: `columns` is padded.
template <class T, class RowOf>
void pack(const PanelShape& shape, std::size_t inner, std::size_t count, std::size_t columns,
          const RowOf& row_of, T* out) {
  for (std::size_t start = 0; start < columns;) {
    const PanelShape::Panel panel = shape.panel_of(start, columns);
    const std::size_t there = std::min(panel.width, count > start ? count - start : 0);
    for (std::size_t f = 0; f < inner; ++f) {
      T* const to = out + start * inner + f * panel.width;
      const auto* from = row_of(f) + start;
      for (std::size_t j = 0; j < there; ++j) to[j] = static_cast<T>(from[j]);
      std::fill(to + there, to + panel.width, T(0));
    }
    start += panel.width;
  }
}

}  // namespace

LabelBox::LabelBox(SlotKernel& kernel, LabelProblem problem, std::size_t cache_bytes, int n_threads)
    : problem_(std::move(problem)),
      is_diagonal_(true),
      n_threads_(n_threads),
      rows_(kernel, cache_bytes, n_threads),
      coefficients_(problem_.labels * problem_.rows, 0.0),
      gradients_(coefficients_.size()),
      promise_(problem_.rows),
      row_gap_(problem_.rows),
      row_dual_(problem_.rows) {
  const std::size_t n = problem_.rows, k = problem_.labels;
  for (std::size_t l = 0; l < k; ++l) {
    for (std::size_t m = 0; m < k; ++m) {
      is_diagonal_ = is_diagonal_ && (l == m || problem_.relation[l * k + m] == 0);
    }
  }
  for (std::size_t l = 0; l < k && !is_diagonal_; ++l) {
    for (std::size_t m = 0; m < k; ++m) {
      const double own = problem_.relation[m * k + m];
      influence_.push_back(own > 0 ? as_float(problem_.relation[l * k + m] / own) : 0.0f);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto slot = static_cast<Slot>(i);
    kernel.put(slot, i);
    rows_.move_in(slot);
    diagonal_.push_back(kernel.diagonal(slot) + problem_.offset);
  }
  start_gradients();
  block_rows_ = std::min({kBlockRows, rows_.capacity(), n});
}

// Gradients of a machine without coefficients.
void LabelBox::start_gradients() {
  for (std::size_t e = 0; e < gradients_.size(); ++e) {
    gradients_[e] = problem_.signs[e] * (problem_.margins.empty() ? 1.0 : problem_.margins[e]);
  }
}

LabelBox::Standing LabelBox::look() {
  const auto look_at_boxes = instruction_sets().front()->look_at_boxes;
  const std::size_t n = problem_.rows, k = problem_.labels;
  for_each_chunk(n, n_threads_, [&](std::size_t, std::size_t begin, std::size_t end) {
    std::fill(promise_.begin() + begin, promise_.begin() + end, 0.0);
    std::fill(row_gap_.begin() + begin, row_gap_.begin() + end, 0.0);
    std::fill(row_dual_.begin() + begin, row_dual_.begin() + end, 0.0);
    for (std::size_t l = 0; l < k; ++l) {
      const std::size_t first = l * n + begin;
      const double* const margins = problem_.margins.empty() ? nullptr : &problem_.margins[first];
      look_at_boxes(
          {end - begin, problem_.signs.data() + first, margins, coefficients_.data() + first,
           gradients_.data() + first, problem_.row_caps.data() + begin, diagonal_.data() + begin,
           problem_.relation[l * k + l], problem_.label_caps[2 * l], problem_.label_caps[2 * l + 1],
           promise_.data() + begin, row_gap_.data() + begin, row_dual_.data() + begin});
    }
  });
  return {std::accumulate(row_gap_.begin(), row_gap_.end(), 0.0),
          std::accumulate(row_dual_.begin(), row_dual_.end(), 0.0)};
}

std::vector<Slot> LabelBox::promising(double share) const {
  const double best = *std::max_element(promise_.begin(), promise_.end());
  std::vector<Slot> rows;
  for (std::size_t i = 0; i < problem_.rows && best > 0; ++i) {
    if (promise_[i] > share * best) rows.push_back(static_cast<Slot>(i));
  }
  return rows;
}

// Calls work(group, threads) for groups of labels that know nothing of each other: all together, if
// R relates them; else each thread has its own, so that threads meet but once. `threads` are those
// that the work of a group may use itself.
template <class Work>
void LabelBox::for_each_group(const Work& work) {
  const std::size_t k = problem_.labels;
  const std::size_t wanted = is_diagonal_ ? static_cast<std::size_t>(std::max(n_threads_, 1)) : 1;
  const std::size_t count = std::min(wanted, k);
  for_each_index(count, n_threads_, [&](std::size_t g) {
    Group group;
    group.first = k * g / count;
    group.labels = k * (g + 1) / count - group.first;
    work(group, count == 1 ? n_threads_ : 1);
  });
}

double LabelBox::move(std::span<const Slot> rows) {
  std::vector<double> gains(problem_.labels, 0.0);
  const std::size_t at_once = rows_.capacity() / block_rows_ * block_rows_;
  for (std::size_t start = 0; start < rows.size(); start += at_once) {
    const auto some = rows.subspan(start, std::min(at_once, rows.size() - start));
    rows_.fetch(some, pointers_);
    for_each_group([&](Group& group, int threads) {
      for (std::size_t first = 0; first < some.size(); first += block_rows_) {
        const std::size_t count = std::min(block_rows_, some.size() - first);
        load(group, some.subspan(first, count), pointers_.data() + first);
        solve(group, gains.data() + group.first);
        spread(group, false, threads);
      }
    });
  }
  return std::accumulate(gains.begin(), gains.end(), 0.0);
}

// Takes up a block of rows, whose kernel values are at hand.
void LabelBox::load(Group& group, std::span<const Slot> slots, const float* const* rows) const {
  group.slots = slots;
  group.rows = rows;
  const PanelShape& shape = vector_code<float>().shape;
  group.padded = rounded_up(slots.size(), shape.lanes);
  group.columns = shape.padded(slots.size());
  group.inner.assign(group.padded * group.padded, 0.0f);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    for (std::size_t j = 0; j < slots.size(); ++j) {
      group.inner[i * group.padded + j] = rows[i][slots[j]];
    }
  }
  group.changes.assign(group.labels * slots.size(), 0.0);
}

// Moves the coefficients of the block, with gradients of the block alone; adds what is gained.
void LabelBox::solve(Group& group, double* gains) {
  gather(group);
  // Labels that R relates undo a part of each other's steps, so that they have several turns.
  const std::size_t most = is_diagonal_ ? 1 : kTurns;
  double first = 0, gained = 0;
  for (std::size_t turn = 0; turn < most; ++turn) {
    gained = 0;
    for (std::size_t l = 0; l < group.labels; ++l) {
      const double gain = climb(group, l);
      gains[l] += gain;
      gained += gain;
    }
    if (turn == 0) first = gained;
    if (gained <= kTurnShare * first) break;
  }
  for (std::size_t l = 0; l < group.labels; ++l) keep(group, l);
}

// Takes the gradients of the block, and how far each coefficient may move, side by side: rows of a
// block are drawn at random, so that each number is somewhere else in memory.
void LabelBox::gather(Group& group) const {
  const std::size_t n = problem_.rows, m = group.slots.size(), padded = group.padded;
  for (auto* each : {&group.local, &group.down, &group.up, &group.change}) {
    each->assign(group.labels * padded, 0.0f);
  }
  group.least.assign(group.labels, 0.0f);
  group.shifts.assign(is_diagonal_ ? 0 : group.labels * group.columns, 0.0f);
  for (std::size_t l = 0; l < group.labels; ++l) {
    const std::size_t label = group.first + l;
    for (std::size_t j = 0; j < m; ++j) {
      const std::size_t i = group.slots[j], to = l * padded + j;
      const Bounds bounds = bounds_of(label, i);
      const double now = coefficients_[label * n + i];
      group.local[to] = as_float(gradients_[label * n + i]);
      group.down[to] = as_float(bounds.lower - now);
      group.up[to] = as_float(bounds.upper - now);
    }
  }
}

LabelBox::Bounds LabelBox::bounds_of(std::size_t label, std::size_t row) const {
  const double cap = problem_.cap(label, row);
  return problem_.sign(label, row) > 0 ? Bounds{0.0, cap} : Bounds{-cap, 0.0};
}

// Steps of one label in the block.
double LabelBox::climb(Group& group, std::size_t place) const {
  const std::size_t m = group.slots.size(), padded = group.padded, first = place * padded;
  const std::size_t label = group.first + place;
  const double relation = problem_.relation[label * problem_.labels + label];
  std::vector<float>& room = group.room;
  room.assign(3 * padded, 1.0f);
  float *const gradient = room.data(), *const curvature = gradient + padded;
  float* const inverse = curvature + padded;
  std::copy_n(group.local.data() + first, padded, gradient);
  for (std::size_t j = 0; j < m; ++j) {
    curvature[j] = std::max(as_float(relation * diagonal_[group.slots[j]]), kFlat);
    inverse[j] = 1.0f / curvature[j];
  }
  if (!is_diagonal_) hear_of_labels(group, place, gradient);
  const double gain = instruction_sets().front()->climb(
      {padded, group.inner.data(), as_float(relation), as_float(problem_.offset), curvature,
       inverse, gradient, group.down.data() + first, group.up.data() + first,
       group.change.data() + first, kInnerShare, group.least.data() + place, kStepsOfRow * m});
  if (!is_diagonal_ && gain > 0) note_shift(group, place, gradient);
  return gain;
}

// Writes down where the coefficients of a label have moved.
void LabelBox::keep(Group& group, std::size_t place) {
  const std::size_t m = group.slots.size(), first = place * group.padded;
  const std::size_t label = group.first + place;
  for (std::size_t j = 0; j < m; ++j) {
    if (group.change[first + j] == 0) continue;
    const std::size_t i = group.slots[j];
    double& coefficient = coefficients_[label * problem_.rows + i];
    const Bounds bounds = bounds_of(label, i);
    const double wanted = coefficient + static_cast<double>(group.change[first + j]);
    double value = std::clamp(wanted, bounds.lower, bounds.upper);
    if (group.up[first + j] == 0) value = bounds.upper;
    if (group.down[first + j] == 0) value = bounds.lower;
    group.changes[place * m + j] = value - coefficient;
    coefficient = value;
  }
}

// Lets the gradients of a label in the block follow what all labels have done there so far. A label
// asks when its turn comes, which is one product; to tell all others of each change takes several
// times as long, as their gradients would be read and written.
void LabelBox::hear_of_labels(Group& group, std::size_t place, float* gradient) const {
  const std::size_t k = problem_.labels;
  group.heard.resize(group.columns);
  vector_code<float>().products({influence_.data() + place * k, k, 1, k, group.shifts.data(),
                                 group.columns, 1.0f, nullptr, nullptr, group.heard.data()});
  for (std::size_t j = 0; j < group.slots.size(); ++j) {
    group.before[j] = gradient[j] -= group.heard[j];
  }
}

// Notes by how much the steps of a label have lowered its own gradients: those of another label m
// fall by R_ml / R_ll of it.
void LabelBox::note_shift(Group& group, std::size_t place, const float* gradient) const {
  const PanelShape& shape = vector_code<float>().shape;
  const std::size_t m = group.slots.size();
  for (std::size_t start = 0; start < m;) {
    const PanelShape::Panel panel = shape.panel_of(start, group.columns);
    float* const to = group.shifts.data() + start * problem_.labels + place * panel.width;
    const std::size_t there = std::min(panel.width, m - start);
    for (std::size_t j = 0; j < there; ++j) to[j] += group.before[start + j] - gradient[start + j];
    start += panel.width;
  }
}

// What the changes of all labels do to the score of each: labels x block, of those with any.
void LabelBox::relate(Group& group) const {
  const std::size_t k = problem_.labels, m = group.slots.size();
  group.moving.clear();
  group.related.assign(group.labels * m, 0.0);
  if (is_diagonal_) {
    for (std::size_t l = 0; l < group.labels; ++l) {
      const std::size_t label = group.first + l;
      const double relation = problem_.relation[label * k + label];
      const double* const changes = group.changes.data() + l * m;
      if (std::all_of(changes, changes + m, [](double each) { return each == 0; })) continue;
      for (std::size_t j = 0; j < m; ++j)
        group.related[group.moving.size() * m + j] = relation * changes[j];
      group.moving.push_back(label);
    }
    return;
  }
  const auto& code = vector_code<double>();
  const std::size_t columns = code.shape.padded(m);
  AlignedVector<double> packed(k * columns), sums(k * columns);
  pack<double>(
      code.shape, k, m, columns, [&](std::size_t l) { return group.changes.data() + l * m; },
      packed.data());
  code.products({problem_.relation.data(), k, k, k, packed.data(), columns, 1.0, nullptr, nullptr,
                 sums.data()});
  for (std::size_t l = 0; l < k; ++l) {
    std::copy_n(sums.data() + l * columns, m, group.related.data() + l * m);
    group.moving.push_back(l);
  }
}

// Lets the gradients of all rows follow the changes of the block. Products are of single precision;
// where they must be exact, coefficients come as the sum of two such numbers.
void LabelBox::spread(Group& group, bool exactly, int threads) {
  relate(group);
  const std::size_t n = problem_.rows, m = group.slots.size(), count = group.moving.size();
  if (count == 0) return;
  const std::size_t parts = exactly ? 2 : 1;
  AlignedVector<float> left(parts * count * m);
  std::vector<double> constants(count);
  for (std::size_t e = 0; e < count * m; ++e) {
    left[e] = as_float(group.related[e]);
    if (exactly) left[count * m + e] = as_float(group.related[e] - static_cast<double>(left[e]));
    constants[e / m] += problem_.offset * group.related[e];
  }
  const auto& code = vector_code<float>();
  const auto add_scaled = instruction_sets().front()->add_scaled;
  const std::size_t width = kPanelsOfTile * 3 * code.shape.lanes;
  struct Room {
    AlignedVector<float> packed, sums;
  };
  for_each_index_with<Room>((n + width - 1) / width, threads, [&](std::size_t tile, Room& room) {
    const std::size_t first = tile * width, there = std::min(width, n - first);
    const std::size_t columns = code.shape.padded(there);
    room.packed.resize(m * columns);
    room.sums.resize(kLabelsOfTile * columns);
    pack<float>(
        code.shape, m, there, columns, [&](std::size_t i) { return group.rows[i] + first; },
        room.packed.data());
    for (std::size_t begin = 0; begin < parts * count; begin += kLabelsOfTile) {
      const std::size_t some = std::min(kLabelsOfTile, parts * count - begin);
      code.products({left.data() + begin * m, m, some, m, room.packed.data(), columns, 1.0f,
                     nullptr, nullptr, room.sums.data()});
      for (std::size_t r = 0; r < some; ++r) {
        const std::size_t place = (begin + r) % count;
        const double constant = begin + r < count ? constants[place] : 0.0;
        add_scaled(room.sums.data() + r * columns, -1.0, -constant,
                   gradients_.data() + group.moving[place] * n + first, there);
      }
    }
  });
}

LabelBox::Supports LabelBox::supports() const {
  const std::size_t n = problem_.rows;
  Supports found;
  std::vector<bool> has_any(n);
  for (std::size_t e = 0; e < coefficients_.size(); ++e) {
    if (coefficients_[e] == 0) continue;
    ++found.vectors;
    has_any[e % n] = true;
  }
  found.patterns = static_cast<std::size_t>(std::count(has_any.begin(), has_any.end(), true));
  return found;
}

std::size_t LabelBox::refresh(std::size_t first) {
  const std::size_t n = problem_.rows, k = problem_.labels;
  if (first == 0) start_gradients();
  std::vector<Slot> block;
  std::size_t next = first;
  for (; next < n && block.size() < block_rows_; ++next) {
    for (std::size_t l = 0; l < k; ++l) {
      if (coefficients_[l * n + next] == 0) continue;
      block.push_back(static_cast<Slot>(next));
      break;
    }
  }
  if (block.empty()) return n;
  rows_.fetch(block, pointers_);
  for_each_group([&](Group& group, int threads) {
    load(group, block, pointers_.data());
    for (std::size_t l = 0; l < group.labels; ++l) {
      for (std::size_t j = 0; j < block.size(); ++j) {
        group.changes[l * block.size() + j] = coefficients_[(group.first + l) * n + block[j]];
      }
    }
    spread(group, true, threads);
  });
  return next;
}

}  // namespace widemargin

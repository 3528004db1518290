#include "widemargin/slot_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "widemargin/parallel.hpp"

namespace widemargin {
namespace {

constexpr std::size_t kRowsOfTask = 8;                // of a block, that a thread takes at a time
constexpr std::size_t kProductsOfThread = 1'000'000;  // so that waking another one is worth it

// For its type alone.
template <class T>
T first_number(const Matrix<const T>& rows) {
  return *rows.data;
}
template <class T>
T first_number(const SparseMatrix<T>& rows) {
  return *rows.values;
}

double scale_of(const AnyKernel& kernel) {
  return std::visit([](const auto& each) { return each.scale(); }, kernel);
}

}  // namespace

DenseSlots::DenseSlots(const AnyKernel& kernel, std::vector<double> origin)
    : kernel_(kernel),
      code_(&vector_code<float>()),
      panel_(3 * code_->shape.lanes),
      origin_(std::move(origin)),
      scales_(origin_.size(), scale_of(kernel)),
      placed_(origin_.size()) {
  if (std::holds_alternative<AdaptiveRbfKernel>(kernel_)) {
    throw std::invalid_argument("a kernel that belongs to one basis has no slots");
  }
}

void DenseSlots::put(Slot slot, std::size_t row) {
  std::visit(
      [&](const auto& rows) {
        if constexpr (requires { rows.data; }) {
          const auto* from = rows.row(row);
          for (std::size_t f = 0; f < features(); ++f) {
            placed_[f] =
                static_cast<float>((static_cast<double>(from[f]) - origin_[f]) * scales_[f]);
          }
        } else {
          for (std::size_t f = 0; f < features(); ++f) {
            placed_[f] = static_cast<float>(-origin_[f] * scales_[f]);
          }
          for (auto e = rows.starts[row]; e < rows.starts[row + 1]; ++e) {
            const auto f = static_cast<std::size_t>(rows.indices[e]);
            const double value = static_cast<double>(rows.values[e]);
            placed_[f] = static_cast<float>((value - origin_[f]) * scales_[f]);
          }
        }
      },
      batch_);
  const std::size_t needed = stride(slot + 1) * features();
  if (table_.size() < needed)
    table_.resize(std::max(needed, table_.size() * 3 / 2 / panel_ * panel_));
  float* const column = table_.data() + place(slot);
  for (std::size_t f = 0; f < features(); ++f) column[f * panel_] = placed_[f];
}

void DenseSlots::keep(std::span<const std::int64_t> slots, std::span<const std::int64_t> rows) {
  if (slots.empty()) return;
  const auto last = static_cast<std::size_t>(*std::max_element(slots.begin(), slots.end()));
  std::visit(
      [&](const auto& batch) {
        using Number = std::remove_cvref_t<decltype(first_number(batch))>;
        if (!std::holds_alternative<std::vector<Number>>(kept_)) {
          const bool is_new = std::visit([](const auto& each) { return each.empty(); }, kept_);
          if (!is_new) throw std::invalid_argument("rows are of another precision than those kept");
          kept_ = std::vector<Number>();
        }
        auto& kept = std::get<std::vector<Number>>(kept_);
        const std::size_t needed = (last + 1) * features();
        if (kept.size() < needed)
          kept.resize(needed + kept.size() / 2 / (features() + 1) * features());
        for (std::size_t i = 0; i < slots.size(); ++i) {
          Number* const out = kept.data() + static_cast<std::size_t>(slots[i]) * features();
          const auto row = static_cast<std::size_t>(rows[i]);
          if constexpr (requires { batch.data; }) {
            std::copy_n(batch.row(row), features(), out);
          } else {
            std::fill_n(out, features(), Number(0));
            for (auto e = batch.starts[row]; e < batch.starts[row + 1]; ++e) {
              out[batch.indices[e]] = batch.values[e];
            }
          }
        }
      },
      batch_);
}

template <class T>
void DenseSlots::kept_rows(std::span<const std::int64_t> slots, T* out) const {
  std::visit(
      [&](const auto& kept) {
        for (const std::int64_t number : slots) {
          const std::size_t first = static_cast<std::size_t>(number) * features();
          if (first + features() <= kept.size()) {
            std::transform(kept.begin() + static_cast<std::ptrdiff_t>(first),
                           kept.begin() + static_cast<std::ptrdiff_t>(first + features()), out,
                           [](auto value) { return static_cast<T>(value); });
          } else {
            std::fill_n(out, features(), T(0));
          }
          out += features();
        }
      },
      kept_);
}
template void DenseSlots::kept_rows(std::span<const std::int64_t>, float*) const;
template void DenseSlots::kept_rows(std::span<const std::int64_t>, double*) const;

void DenseSlots::copy_row(Slot slot, float* out) const {
  const float* const column = table_.data() + place(slot);
  for (std::size_t f = 0; f < features(); ++f) out[f] = column[f * panel_];
}

void DenseSlots::rows(std::span<const Slot> slots, std::size_t count, float* out,
                      std::size_t out_stride, int n_threads) {
  if (out_stride != stride(count)) throw std::invalid_argument("out has the wrong stride");
  if (count == 0) return;
  const std::size_t tasks = (slots.size() + kRowsOfTask - 1) / kRowsOfTask;
  const std::size_t products = slots.size() * count * products_per_value();
  for_each_index_with<std::vector<float>>(
      tasks, threads_for(products, kProductsOfThread, n_threads),
      [&](std::size_t task, std::vector<float>& left) {
        const std::size_t first = task * kRowsOfTask;
        const std::size_t some = std::min(kRowsOfTask, slots.size() - first);
        left.resize(kRowsOfTask * features());
        for (std::size_t i = 0; i < some; ++i)
          copy_row(slots[first + i], left.data() + i * features());
        float* const values = out + first * out_stride;
        add_up(left.data(), some, table_.data(), out_stride, values);
      });
}

void DenseSlots::add_up(const float* left, std::size_t count, const float* table,
                        std::size_t columns, float* out) const {
  const Sums<float> sums{left,    features(), count,   features(), table,
                         columns, 1.0f,       nullptr, nullptr,    out};
  std::visit(
      [&](const auto& kernel) {
        using Kernel = std::decay_t<decltype(kernel)>;
        add_up_terms(Kernel::term, sums, *code_);
        kernel.finish(out, count * columns, *code_);
      },
      kernel_);
}

void DenseSlots::some(Slot slot, std::span<const Slot> others, float* out) {
  // A table of the others alone, a panel at a time.
  gathered_.resize((features() + 1) * panel_);
  float* const values = gathered_.data() + features() * panel_;
  placed_.resize(features());
  copy_row(slot, placed_.data());
  for (std::size_t first = 0; first < others.size(); first += panel_) {
    const std::size_t count = std::min(panel_, others.size() - first);
    for (std::size_t f = 0; f < features(); ++f) {
      for (std::size_t b = 0; b < count; ++b) {
        gathered_[f * panel_ + b] = table_[place(others[first + b]) + f * panel_];
      }
    }
    add_up(placed_.data(), 1, gathered_.data(), panel_, values);
    std::copy_n(values, count, out + first);
  }
}

double DenseSlots::diagonal(Slot slot) {
  float value;
  some(slot, std::span<const Slot>(&slot, 1), &value);
  return static_cast<double>(value);
}

CalledSlots::CalledSlots(Put put, Values values, Diagonal diagonal, std::size_t products_per_value)
    : put_(std::move(put)),
      values_(std::move(values)),
      diagonal_(std::move(diagonal)),
      products_per_value_(products_per_value) {}

void CalledSlots::rows(std::span<const Slot> slots, std::size_t count, float* out,
                       std::size_t stride, int) {
  while (all_.size() < count) all_.push_back(static_cast<Slot>(all_.size()));
  values_(slots, std::span<const Slot>(all_).first(count), out, stride);
}

void CalledSlots::some(Slot slot, std::span<const Slot> others, float* out) {
  values_(std::span<const Slot>(&slot, 1), others, out, others.size());
}

}  // namespace widemargin

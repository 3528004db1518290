// Kernel values among rows that come and go. Each row lives in a slot; a slot that is given up is
// taken by a later row. Values are of single precision, as they are kept by the thousand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "widemargin/aligned.hpp"
#include "widemargin/kernels.hpp"
#include "widemargin/vector_code.hpp"
#include "widemargin/views.hpp"

namespace widemargin {

using Slot = std::uint32_t;

// Rows as they come in, a batch at a time.
using AnyRows = std::variant<Matrix<const float>, Matrix<const double>, SparseMatrix<float>,
                             SparseMatrix<double>>;

class SlotKernel {
 public:
  virtual ~SlotKernel() = default;

  // Puts row `row` of the batch into the slot.
  virtual void put(Slot slot, std::size_t row) = 0;
  // Numbers from one row of values to the next, for slots [0, count).
  virtual std::size_t stride(std::size_t count) const { return count; }
  // out[a * stride + b] = k(slots[a], b) for every b < count; numbers beyond mean nothing. Values
  // of slots that no row lives in mean nothing either.
  virtual void rows(std::span<const Slot> slots, std::size_t count, float* out, std::size_t stride,
                    int n_threads) = 0;
  // out[b] = k(slot, others[b])
  virtual void some(Slot slot, std::span<const Slot> others, float* out) = 0;
  virtual double diagonal(Slot slot) = 0;
  // What a value costs, in multiply-adds.
  virtual std::size_t products_per_value() const = 0;
};

// Kernels of the library, for rows that can be kept dense. Coordinates are moved to an origin and
// scaled in double precision before they are rounded, so that a common offset costs no digits;
// distances are summed from differences.
class DenseSlots : public SlotKernel {
 public:
  DenseSlots(const AnyKernel& kernel, std::vector<double> origin);

  // Rows that put() takes from now on; they must stay where they are for as long as it is called.
  void use_batch(const AnyRows& rows) { batch_ = rows; }

  // Keeps rows of the batch as they came, by slot: those of put() are moved, scaled and rounded.
  // All batches that rows are kept of have one precision.
  void keep(std::span<const std::int64_t> slots, std::span<const std::int64_t> rows);
  // The rows that were kept for slots, one after the other; zeros where none was.
  template <class T>
  void kept_rows(std::span<const std::int64_t> slots, T* out) const;

  std::size_t features() const { return origin_.size(); }
  std::size_t batch_rows() const {
    return std::visit([](const auto& rows) { return rows.rows; }, batch_);
  }
  void put(Slot slot, std::size_t row) override;
  std::size_t stride(std::size_t count) const override {
    return (count + panel_ - 1) / panel_ * panel_;
  }
  void rows(std::span<const Slot> slots, std::size_t count, float* out, std::size_t stride,
            int n_threads) override;
  void some(Slot slot, std::span<const Slot> others, float* out) override;
  double diagonal(Slot slot) override;
  std::size_t products_per_value() const override { return features() + 1; }

 private:
  // Of feature 0; those of the others follow at a distance of `panel_`.
  std::size_t place(Slot slot) const { return slot / panel_ * panel_ * features() + slot % panel_; }
  void copy_row(Slot slot, float* out) const;
  // Kernel values of rows as they are in the table, and columns of a table, in whole panels.
  void add_up(const float* left, std::size_t count, const float* table, std::size_t columns,
              float* out) const;

  AnyKernel kernel_;
  const VectorCode<float>* code_;
  std::size_t panel_;  // columns that the innermost loops take at once
  std::vector<double> origin_;
  std::vector<double> scales_;
  AnyRows batch_;
  std::variant<std::vector<float>, std::vector<double>> kept_;  // slots x features
  std::vector<float> placed_;
  AlignedVector<float> table_;
  AlignedVector<float> gathered_;
};

// Values that something else computes: a function of the caller's, or a matrix that is there.
class CalledSlots : public SlotKernel {
 public:
  using Put = std::function<void(Slot, std::size_t)>;
  // As `rows` and `some`: values of slots `left` with slots `right`, row by row.
  using Values = std::function<void(std::span<const Slot> left, std::span<const Slot> right,
                                    float* out, std::size_t stride)>;
  using Diagonal = std::function<double(Slot)>;

  CalledSlots(Put put, Values values, Diagonal diagonal, std::size_t products_per_value);

  void put(Slot slot, std::size_t row) override { put_(slot, row); }
  void rows(std::span<const Slot> slots, std::size_t count, float* out, std::size_t stride,
            int n_threads) override;
  void some(Slot slot, std::span<const Slot> others, float* out) override;
  double diagonal(Slot slot) override { return diagonal_(slot); }
  std::size_t products_per_value() const override { return products_per_value_; }

 private:
  Put put_;
  Values values_;
  Diagonal diagonal_;
  std::size_t products_per_value_;
  std::vector<Slot> all_;  // 0, 1, 2, ...
};

}  // namespace widemargin

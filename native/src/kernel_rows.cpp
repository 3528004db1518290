#include "widemargin/kernel_rows.hpp"

#include <algorithm>

namespace widemargin {
namespace {

constexpr std::size_t kManyMissing = 8;  // a row that lacks more than 1/8 is computed as a whole
constexpr std::size_t kLogPerSlot = 8;   // moves that are remembered for each slot
constexpr std::size_t kShortestLog = 4096;

}  // namespace

KernelRows::KernelRows(SlotKernel& kernel, std::size_t max_bytes, int n_threads)
    : kernel_(&kernel), max_bytes_(max_bytes), n_threads_(n_threads) {}

void KernelRows::move_in(Slot slot) {
  if (slot >= entries_.size()) entries_.resize(slot + 1);
  move_out(slot);
  entries_[slot].moved_in = moves();
  log_.push_back(slot);
  if (log_.size() > kShortestLog + kLogPerSlot * entries_.size()) {
    // Rows that have not followed so far are computed anew when they are asked for.
    const std::size_t forgotten = log_.size() / 2;
    log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(forgotten));
    first_move_ += forgotten;
  }
}

void KernelRows::move_out(Slot slot) {
  let_go(slot);
  entries_[slot].values = nullptr;
}

void KernelRows::unstage() {
  for (const Slot slot : staged_) {
    Entry& entry = entries_[slot];
    if (entry.own.empty()) entry.values = nullptr;
  }
  staged_.clear();
}

void KernelRows::stage(std::span<const Slot> slots, std::size_t columns, std::size_t inhabited,
                       std::uint64_t moves) {
  unstage();
  const std::size_t stride = kernel_->stride(columns);
  block_.resize(slots.size() * stride);
  if (columns > 0) kernel_->rows(slots, columns, block_.data(), stride, n_threads_);
  computed_ += slots.size() * inhabited;
  staged_.assign(slots.begin(), slots.end());
  staged_columns_ = columns;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Entry& entry = entries_[slots[i]];
    entry.values = block_.data() + i * stride;
    entry.followed = moves;
  }
}

void KernelRows::catch_up_with_staged() {
  for (Slot slot = 0; slot < entries_.size(); ++slot) {
    Entry& entry = entries_[slot];
    if (entry.own.empty() || entry.followed < first_move_) continue;
    bool knows_all = true;
    for (std::uint64_t move = entry.followed; move < moves() && knows_all; ++move) {
      const Entry& theirs = entries_[log_[move - first_move_]];
      knows_all =
          theirs.moved_in != move || (theirs.values != nullptr && theirs.followed > entry.moved_in);
    }
    if (knows_all) catch_up(slot);
  }
}

std::span<const float> KernelRows::row(Slot slot) {
  Entry& entry = entries_[slot];
  if (entry.own.empty() && entry.values != nullptr) {
    const float* const from = entry.values;
    keep(slot, entries_.size());
    std::copy_n(from, staged_columns_, entry.own.data());
    entry.values = entry.own.data();
  }
  if (entry.values == nullptr) {
    compute(slot);
  } else if (entry.followed != moves()) {
    catch_up(slot);
  }
  touch(slot);
  return {entry.values, entries_.size()};
}

void KernelRows::compute(Slot slot) {
  const std::size_t stride = kernel_->stride(entries_.size());
  keep(slot, stride);
  Entry& entry = entries_[slot];
  kernel_->rows(std::span<const Slot>(&slot, 1), entries_.size(), entry.own.data(), stride,
                n_threads_);
  computed_ += entries_.size();
  entry.values = entry.own.data();
  entry.followed = moves();
}

void KernelRows::catch_up(Slot slot) {
  Entry& entry = entries_[slot];
  if (entry.followed < first_move_) return compute(slot);
  keep(slot, entries_.size());
  entry.values = entry.own.data();
  missing_.clear();
  for (std::uint64_t move = entry.followed; move < moves(); ++move) {
    const Slot other = log_[move - first_move_];
    const Entry& theirs = entries_[other];
    if (theirs.moved_in != move) continue;  // who moved in then has left again
    if (theirs.values != nullptr && theirs.followed > entry.moved_in) {
      entry.own[other] = theirs.values[slot];
    } else {
      missing_.push_back(other);
    }
  }
  if (missing_.size() > entries_.size() / kManyMissing) return compute(slot);
  if (!missing_.empty()) {
    found_.resize(missing_.size());
    kernel_->some(slot, missing_, found_.data());
    computed_ += missing_.size();
    for (std::size_t i = 0; i < missing_.size(); ++i) entry.own[missing_[i]] = found_[i];
  }
  entry.followed = moves();
}

// Makes room for `length` values of the slot, at the cost of rows that were not used for longest.
void KernelRows::keep(Slot slot, std::size_t length) {
  Entry& entry = entries_[slot];
  touch(slot);
  if (entry.own.size() >= length) return;
  // Some room to grow, as slots become more one by one.
  const std::size_t wanted =
      length <= entry.own.capacity() ? entry.own.capacity() : length + length / 8;
  bytes_ -= entry.own.size() * sizeof(float);
  while (bytes_ + wanted * sizeof(float) > max_bytes_ && oldest_ != slot) let_go(oldest_);
  entry.own.resize(wanted);
  bytes_ += wanted * sizeof(float);
}

void KernelRows::touch(Slot slot) {
  if (newest_ == slot) return;
  if (!entries_[slot].own.empty()) unlink(slot);
  link_newest(slot);
}

void KernelRows::let_go(Slot slot) {
  Entry& entry = entries_[slot];
  if (entry.own.empty()) return;
  unlink(slot);
  bytes_ -= entry.own.size() * sizeof(float);
  std::vector<float>().swap(entry.own);
  entry.values = nullptr;
}

void KernelRows::unlink(Slot slot) {
  Entry& entry = entries_[slot];
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  entry.newer = entry.older = kNone;
}

void KernelRows::link_newest(Slot slot) {
  Entry& entry = entries_[slot];
  entry.older = newest_;
  entry.newer = kNone;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = slot;
  newest_ = slot;
}

}  // namespace widemargin

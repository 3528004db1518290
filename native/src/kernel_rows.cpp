#include "widemargin/kernel_rows.hpp"

#include <algorithm>

namespace widemargin {
namespace {

constexpr std::size_t kManyMissing = 8;  // a row that lacks more than 1/8 is computed as a whole
constexpr std::size_t kLogPerSlot = 2;   // entries of the log, from which all of it is tidied
// Rows that are computed at once, besides the cache: so many, or more while values are this few.
constexpr std::size_t kTogether = 32, kValuesTogether = 1 << 20;

// Some room to grow, as slots become more one by one.
std::size_t with_room(std::size_t length) { return length + length / 8; }

}  // namespace

KernelRows::KernelRows(SlotKernel& kernel, std::size_t max_bytes, int n_threads)
    : kernel_(&kernel), max_bytes_(max_bytes), n_threads_(n_threads) {}

void KernelRows::move_in(Slot slot) {
  if (slot >= entries_.size()) {
    entries_.resize(slot + 1);
    moved_in_.resize(slot + 1);
  }
  move_out(slot);
  moved_in_[slot] = moves_;
  log_.push_back({moves_, slot});
  ++moves_;
  if (log_.size() > kLogPerSlot * entries_.size() + 1) tidy_log(0);
}

void KernelRows::begin(std::size_t slots, std::uint64_t computed) {
  entries_.resize(slots);
  moved_in_.assign(slots, kNever);
  computed_ = computed;
}

// Drops moves of rows that have left again.
void KernelRows::tidy_log(std::uint64_t first) {
  const auto begin = first_after(first);
  log_.erase(std::remove_if(begin, log_.end(),
                            [&](const Move& move) { return moved_in_[move.slot] != move.number; }),
             log_.end());
}

std::vector<KernelRows::Move>::iterator KernelRows::first_after(std::uint64_t number) {
  return std::lower_bound(log_.begin(), log_.end(), number,
                          [](const Move& move, std::uint64_t n) { return move.number < n; });
}

void KernelRows::move_out(Slot slot) {
  let_go(slot);
  entries_[slot].values = nullptr;
  moved_in_[slot] = kNever;
}

void KernelRows::unstage() {
  for (const Slot slot : staged_) {
    Entry& entry = entries_[slot];
    if (entry.own.empty()) entry.values = nullptr;
  }
  if (!staged_.empty()) tidy_log(first_staged_);
  staged_.clear();
  staged_columns_ = 0;
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
  staged_moves_ = moves;
  first_staged_ = moves_ - slots.size();
  // Rows of the cache that catch up want a column: together in memory it is read at once.
  by_column_.resize(columns * slots.size());
  for (std::size_t j = 0; j < columns; ++j) {
    float* const column = by_column_.data() + j * slots.size();
    for (std::size_t i = 0; i < slots.size(); ++i) column[i] = block_[i * stride + j];
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Entry& entry = entries_[slots[i]];
    entry.values = block_.data() + i * stride;
    entry.followed = moves;
  }
}

bool KernelRows::knows(Slot row, Slot slot) const {
  return entries_[row].values != nullptr && entries_[row].followed > moved_in_[slot];
}

void KernelRows::spread_staged() {
  std::vector<Move> stayed;
  for (auto move = first_after(first_staged_); move != log_.end(); ++move) {
    if (moved_in_[move->slot] == move->number) stayed.push_back(*move);
  }
  for (Slot slot = 0; slot < staged_columns_ && !stayed.empty(); ++slot) {
    Entry& entry = entries_[slot];
    if (entry.own.empty() || moved_in_[slot] >= staged_moves_) continue;
    const bool is_current = entry.followed >= first_staged_ && entry.own.size() >= entries_.size();
    if (is_current) {
      const float* const of_block = by_column_.data() + slot * staged_.size();
      for (const Move& move : stayed) entry.own[move.slot] = of_block[move.number - first_staged_];
      entry.followed = moves_;
    } else if (std::all_of(first_after(entry.followed), log_.end(), [&](const Move& move) {
                 return moved_in_[move.slot] != move.number || knows(move.slot, slot);
               })) {
      catch_up(slot);
    }
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
  } else if (entry.followed != moves_) {
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
  entry.followed = moves_;
}

std::size_t KernelRows::capacity() const {
  const std::size_t length = with_room(kernel_->stride(entries_.size()));
  return std::max<std::size_t>(1, max_bytes_ / (length * sizeof(float)));
}

void KernelRows::fetch(std::span<const Slot> slots, std::vector<const float*>& rows) {
  std::vector<Slot> lacking;
  for (const Slot slot : slots) {
    if (entries_[slot].values == nullptr) {
      lacking.push_back(slot);
    } else {
      row(slot);  // from now on it is among the last that go
    }
  }
  const std::size_t together = std::max(kTogether, kValuesTogether / (entries_.size() + 1));
  for (std::size_t first = 0; first < lacking.size(); first += together) {
    const std::size_t count = std::min(together, lacking.size() - first);
    compute_together(std::span<const Slot>(lacking).subspan(first, count));
  }
  rows.clear();
  for (const Slot slot : slots) rows.push_back(entries_[slot].values);
}

void KernelRows::compute_together(std::span<const Slot> slots) {
  const std::size_t stride = kernel_->stride(entries_.size());
  together_.resize(slots.size() * stride);
  kernel_->rows(slots, entries_.size(), together_.data(), stride, n_threads_);
  computed_ += slots.size() * entries_.size();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    keep(slots[i], stride);
    Entry& entry = entries_[slots[i]];
    std::copy_n(together_.data() + i * stride, stride, entry.own.data());
    entry.values = entry.own.data();
    entry.followed = moves_;
  }
}

void KernelRows::catch_up(Slot slot) {
  Entry& entry = entries_[slot];
  keep(slot, entries_.size());
  entry.values = entry.own.data();
  missing_.clear();
  const bool is_in_block = slot < staged_columns_ && moved_in_[slot] < staged_moves_;
  const float* const of_block = by_column_.data() + slot * staged_.size();
  for (auto move = first_after(entry.followed); move != log_.end(); ++move) {
    const Slot other = move->slot;
    if (moved_in_[other] != move->number) continue;
    if (is_in_block && move->number >= first_staged_) {
      entry.own[other] = of_block[move->number - first_staged_];
    } else if (knows(other, slot)) {
      entry.own[other] = entries_[other].values[slot];
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
  entry.followed = moves_;
}

// Makes room for `length` values of the slot, at the cost of rows that were not used for longest.
void KernelRows::keep(Slot slot, std::size_t length) {
  Entry& entry = entries_[slot];
  if (entry.own.size() >= length) return touch(slot);
  const std::size_t wanted = with_room(length);
  const std::size_t more = (wanted - entry.own.size()) * sizeof(float);
  for (Slot last = oldest_; bytes_ + more > max_bytes_ && last != kNone;) {
    const Slot next = entries_[last].newer;
    if (last != slot) let_go(last);
    last = next;
  }
  // Memory may run out here, and the row is not in the list before it has what it needs.
  std::vector<float> wider(wanted);
  std::copy(entry.own.begin(), entry.own.end(), wider.begin());
  if (entry.own.empty()) {
    link_newest(slot);
  } else {
    touch(slot);
  }
  entry.own.swap(wider);
  if (entry.values != nullptr) entry.values = entry.own.data();
  bytes_ += more;
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

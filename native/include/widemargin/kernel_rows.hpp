// Kernel rows of slots on demand, in a bounded number of bytes; the least recently used go first.
//
// A row holds the values of its slot with all slots. As rows move into slots, values there go out
// of date. Which ones is read off a log of all moves: a row knows up to where it has followed the
// log, and catches up when it is asked for. A value that it lacks is looked up in the row of the
// other slot, which has the same one, before it is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "widemargin/slot_kernel.hpp"

namespace widemargin {

class KernelRows {
 public:
  // One row is kept even where it takes more than `max_bytes`.
  KernelRows(SlotKernel& kernel, std::size_t max_bytes, int n_threads);

  std::size_t slots() const { return entries_.size(); }
  // Says that another row lives in the slot from now on. Slots are numbered without gaps.
  void move_in(Slot slot);
  void move_out(Slot slot);
  // Of a new object: there are so many slots, nobody lives in them yet, and values were computed
  // before.
  void begin(std::size_t slots, std::uint64_t computed);
  // Computes values of these slots, which were the last to be moved in, in this order, with the
  // first `columns` slots at once, for who lived there at the time of `moves` moves; only
  // `inhabited` of these slots count. They are held besides the cache, until the next call or until
  // a row is asked for, which takes it into the cache.
  void stage(std::span<const Slot> slots, std::size_t columns, std::size_t inhabited,
             std::uint64_t moves);
  void unstage();
  // Tells rows of the cache the values of staged rows that live on.
  void spread_staged();
  // A row that stage() has computed, or else one of the cache. Values are good until the next call
  // of anything here.
  std::span<const float> row(Slot slot);
  // Rows of several slots, no more than fit (capacity()), of which nobody moves in or out
  // meanwhile; those that the cache lacks are computed together. Good until the next call of
  // anything here.
  void fetch(std::span<const Slot> slots, std::vector<const float*>& rows);
  // How many rows of all slots the cache has room for; one at the least.
  std::size_t capacity() const;
  // Values of a slot with all staged rows, in their order.
  const float* staged_column(Slot slot) const { return by_column_.data() + slot * staged_.size(); }
  std::uint64_t moves() const { return moves_; }  // how many there have been

  std::uint64_t computed() const { return computed_; }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr Slot kNone = ~Slot{0};
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  struct Move {
    std::uint64_t number;
    Slot slot;
  };
  struct Entry {
    std::vector<float> own;         // empty: not in the cache
    const float* values = nullptr;  // own, or staged; null: neither
    std::uint64_t followed = 0;     // moves of the log that the values know of
    Slot newer = kNone, older = kNone;
  };

  void tidy_log(std::uint64_t first);
  std::vector<Move>::iterator first_after(std::uint64_t number);
  void catch_up(Slot slot);
  bool knows(Slot row, Slot slot) const;  // who lives in the slot
  void compute(Slot slot);
  void compute_together(std::span<const Slot> slots);
  void keep(Slot slot, std::size_t length);
  void let_go(Slot slot);
  void touch(Slot slot);
  void unlink(Slot slot);
  void link_newest(Slot slot);

  SlotKernel* kernel_;
  std::size_t max_bytes_;
  int n_threads_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> moved_in_;  // move that brought who lives in a slot, or kNever
  std::vector<Move> log_;                // in order; of a row that has left again it may be gone
  std::uint64_t moves_ = 0;
  std::vector<Slot> staged_;
  std::size_t staged_columns_ = 0;
  std::uint64_t staged_moves_ = 0;  // as of which they are known
  std::uint64_t first_staged_ = 0;  // the move that brought the first of the staged rows
  std::vector<float> block_;        // staged rows x columns
  std::vector<float> by_column_;    // the same, transposed
  std::vector<Slot> missing_;
  std::vector<float> found_;
  std::vector<float> together_;  // rows that are computed together
  Slot newest_ = kNone, oldest_ = kNone;
  std::size_t bytes_ = 0;
  std::uint64_t computed_ = 0;
};

}  // namespace widemargin

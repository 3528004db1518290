// Dual coefficients of a multiclass machine and the gradients that go with them: the one place that
// changes either. Which changes are legal is another's to know: zero_sum.hpp.
//
// Scores       f_i(c) = sum_j beta_j(c) k_ij  with  k_ij = k(x_i, x_j) + offset
// Offset       0, or 1 for a machine with intercepts: sum_i beta_i(c) is that of class c, and is
//              regularised like the rest. It is added in double precision, never to the kernel
//              values of single precision, which may be far smaller.
// Gradient     g_i(c) = margin [c = y_i] - f_i(c), which is what the score of class c lacks
// Held         rows in slots: those with coefficients (support patterns), and others for as long as
//              somebody looks at them. All their gradients are up to date at any time; rows that
//              are not held have no coefficients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "widemargin/kernel_rows.hpp"

namespace widemargin {

class SupportSet {
 public:
  struct Coefficient {
    std::uint32_t label;
    std::uint32_t place;  // among the coefficients of its class
    double value;
    double earlier = 0;  // its changes times the moment of each, for averages over all moments
  };
  struct WrongClass {
    std::size_t label;
    double gradient;
  };

  SupportSet(SlotKernel& kernel, std::size_t n_classes, double margin, double offset,
             std::size_t cache_bytes, int n_threads);

  // Takes rows of the batch in, with `first_id` + their number in it as their names, unless they
  // are here already; gives the slots of all. Their kernel values are computed together, and are at
  // hand until release_staged().
  void admit(std::span<const std::int64_t> rows, std::int64_t first_id,
             std::span<const std::int32_t> labels, std::span<const double> caps,
             std::vector<Slot>& slots);
  // Gives the slot up. Coefficients go first, and leave the gradients of all others.
  void remove(Slot slot);
  // The slot of a row, or -1.
  std::int64_t find(std::int64_t id) const;

  // What a move of coefficients would do to gradients: both classes x n_slots().
  void gradient_change(std::span<const double> direction, std::span<double> change);
  // Adds to coefficients, whatever the bounds.
  void add(Slot slot, std::size_t label, double change);
  // Makes room for another class before those from `position` on, whose numbers rise by one: also
  // the labels of rows. Nobody has coefficients of it yet. No sweep may be under way.
  void add_class(std::size_t position);
  // Gives the row coefficients, and their past.
  void restore(Slot slot, std::span<const double> values, std::span<const double> earlier);

  // The lowest gradient of each slot.
  void find_lowest(std::vector<double>& lowest) const;
  // Of the classes that are not the row's own, the one of the lowest gradient, which is the one of
  // the highest score; the first of equal ones.
  WrongClass worst_wrong_class(Slot slot) const;

  std::size_t n_classes() const { return n_classes_; }
  std::size_t n_slots() const { return patterns_.size(); }
  bool is_held(Slot slot) const { return patterns_[slot].held; }
  bool is_support(Slot slot) const { return patterns_[slot].place != kNowhere; }
  std::span<const Slot> supports() const { return supports_; }  // in no order
  std::span<const Coefficient> coefficients(Slot slot) const { return patterns_[slot].values; }
  std::size_t label(Slot slot) const { return patterns_[slot].label; }
  double diagonal(Slot slot) const { return patterns_[slot].diagonal; }  // offset included
  double cap(Slot slot) const { return patterns_[slot].cap; }
  double gradient(Slot slot, std::size_t c) const { return gradients_[c * capacity_ + slot]; }
  std::int64_t id(Slot slot) const { return patterns_[slot].id; }
  Slot oldest_support() const;
  // The support pattern of the same label that is most alike; the slot itself if there is no other.
  Slot nearest_support(Slot slot);
  std::vector<std::uint32_t>& working_set(Slot slot) { return patterns_[slot].working_set; }
  // Slots whose coefficients may be others than at the last call, each once, in no order.
  std::vector<Slot> take_changed();
  std::size_t n_vectors() const { return n_vectors_; }
  std::uint64_t n_shifts() const { return n_shifts_; }  // passes over a column of gradients
  double dual() const { return dual_; }
  const KernelRows& kernel_rows() const { return rows_; }
  SlotKernel& kernel() { return *kernel_; }
  void release_staged() { rows_.unstage(); }
  void spread_staged() { rows_.spread_staged(); }
  // From now on rows that are admitted are compared with those that are here now, until
  // end_inspection(); coefficients must not change in between.
  void begin_inspection() {
    look_at_all();
    view_is_fixed_ = true;
  }
  void end_inspection() { view_is_fixed_ = false; }

  double moment = 0;  // what `earlier` of coefficients counts by

  // All that later steps depend on, but the rows themselves, and kernel values, which are computed
  // anew when they are asked for.
  struct Snapshot {
    // By slot; those that nobody lives in have zeros.
    std::vector<std::uint8_t> held;
    std::vector<std::int64_t> ids;
    std::vector<std::int32_t> labels;
    std::vector<double> caps, diagonals;
    std::vector<std::uint64_t> ages;
    std::vector<double> gradients;  // classes x slots
    // Slot by slot, each in its order.
    struct Coefficients {
      std::vector<std::int32_t> slots, labels, places;
      std::vector<double> values, earlier;
    } coefficients;
    struct WorkingSets {
      std::vector<std::int32_t> slots, labels;
    } working_sets;
    std::vector<std::int32_t> supports, free;  // slots, in their order
    std::uint64_t admitted = 0, n_shifts = 0, n_computed = 0;
    double dual = 0, moment = 0;
  };
  Snapshot snapshot() const;
  // Requires a snapshot that a set of so many classes can have; else std::invalid_argument.
  static void check(const Snapshot& snapshot, std::size_t n_classes);
  // Makes this set, which must be new, the one of the snapshot. rows[slot] is the row of the batch
  // that lives in the slot.
  void restore(const Snapshot& snapshot, std::span<const std::int64_t> rows);

 protected:
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  struct Pattern {
    std::int64_t id = -1;
    std::uint32_t label = 0;
    bool held = false;
    double cap = 0;
    double diagonal = 0;
    std::uint64_t age = 0;
    std::size_t place = kNowhere;  // among supports_
    std::vector<Coefficient> values;
    std::vector<std::uint32_t> working_set;  // wrong classes that a step may move, besides supports
  };

  // What rules build their steps of. A step that gains something adds it to the dual itself.
  const Pattern& pattern(Slot slot) const { return patterns_[slot]; }
  static double value(const Pattern& pattern, std::size_t c);
  const double* gradients_of(std::size_t c) const { return gradients_.data() + c * capacity_; }
  double* gradients_of(std::size_t c) { return gradients_.data() + c * capacity_; }
  std::size_t gradient_stride() const { return capacity_; }  // from one class to the next
  double margin() const { return margin_; }
  double similarity(Slot slot, Slot other) {
    return static_cast<double>(rows_.row(slot)[other]) + offset_;
  }
  // Has the kernel values of a row at hand: what may fail comes before anything changes.
  void fetch_row(Slot slot) { rows_.row(slot); }
  void put(Slot slot, std::size_t c, double value, double earlier);
  // beta_slot(c) += change, and with it the gradients of all rows. `exact` is the new value: the
  // caller puts it on a bound where it is within rounding of one.
  void shift(Slot slot, std::size_t c, double change, double exact);
  void update_place(Slot slot);
  void add_to_dual(double gain) { dual_ += gain; }

 private:
  struct Member {
    Slot slot;
    double value;
  };

  double intercept(std::size_t c) const;  // what the offset adds to scores of the class
  double score_of_staged(std::size_t staged, const std::vector<Member>& members) const;
  static const Coefficient* find(const Pattern& pattern, std::size_t c);
  static double earlier(const Pattern& pattern, std::size_t c);
  void make_room(std::size_t slots);
  void look_at_all();
  Slot free_slot();

  SlotKernel* kernel_;
  KernelRows rows_;
  std::size_t n_classes_;
  double margin_;
  double offset_;
  std::size_t capacity_ = 0;
  AlignedVector<double> gradients_;           // classes x capacity
  std::vector<Pattern> patterns_;             // by slot
  std::vector<std::vector<Member>> members_;  // coefficients by class
  std::vector<Slot> free_;
  std::vector<Slot> changed_;
  std::vector<bool> is_changed_;  // by slot: whether it is among changed_
  // What rows that are admitted are compared with: slots, who lives in them, and as of which move.
  std::size_t view_columns_ = 0, view_inhabited_ = 0;
  std::uint64_t view_moves_ = 0;
  bool view_is_fixed_ = false;
  std::vector<Slot> supports_;
  std::unordered_map<std::int64_t, Slot> slot_of_;
  std::uint64_t admitted_ = 0;
  std::size_t n_vectors_ = 0;
  std::uint64_t n_shifts_ = 0;
  double dual_ = 0;
};

}  // namespace widemargin

// Dual coefficients of a multiclass machine and the gradients that go with them: the one place that
// changes either.
//
// Problem      maximise  sum_i margin beta_i(y_i) - 1/2 sum_ij sum_c beta_i(c) beta_j(c) k_ij
//              with   k_ij = k(x_i, x_j) + offset
//              where each row of beta sums to zero, and lies between bounds that are the loss's:
//                crammer_singer   beta_i(c) <= cap_i [c = y_i]
//                weston_watkins   -cap_i <= beta_i(c) <= 0 for c != y_i
// Offset       0, or 1 for a machine with intercepts: sum_i beta_i(c) is that of class c, and is
//              regularised like the rest. It is added in double precision, never to the kernel
//              values of single precision, which may be far smaller.
// Gradient     g_i(c) = margin [c = y_i] - sum_j beta_j(c) k_ij, which is what the score of class c
//              lacks
// Held         rows in slots: those with coefficients (support patterns), and others for as long as
//              somebody looks at them. All their gradients are up to date at any time; rows that
//              are not held have no coefficients.
// Step         moves the coefficients of one row to where the dual is largest, of two classes or of
//              several, the others fixed. Rows sum to zero after each, but for the rounding of a
//              single addition: what a step leaves, its own row takes up.
//
// Source: Crammer and Singer (2001); Bordes, Bottou, Gallinari and Weston (2007), equations 7 to
// 11, where line 7 of algorithm 1 has its signs reversed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "widemargin/kernel_rows.hpp"

namespace widemargin {

enum class DualLoss { crammer_singer, weston_watkins };

class SupportSet {
 public:
  struct Coefficient {
    std::uint32_t label;
    std::uint32_t place;  // among the coefficients of its class
    double value;
    double earlier = 0;  // its changes times the moment of each, for averages over all moments
  };
  // Which classes of a row a step may move.
  enum class Scope { all, supports, working_set };
  struct Pair {
    std::size_t up = 0, down = 0;
    double violation = 0;  // g(up) - g(down), or 0 where nothing may move
  };
  struct Gap {
    double gap = 0;   // of the rows that are held
    double dual = 0;  // of the machine
  };

  SupportSet(SlotKernel& kernel, std::size_t n_classes, DualLoss loss, double margin, double offset,
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

  // Best pair of classes to move for this row. Of gradients within `tie` of one another the first
  // counts: a step leaves two equal but for rounding, and that is not to choose.
  Pair worst_pair(Slot slot, Scope scope, double kappa, double tie = 0) const;
  // Moves a pair. Returns what the dual gains.
  double step(Slot slot, const Pair& pair);
  // Moves all classes of the scope to their joint optimum; with `anew`, as if the row had no
  // coefficients yet, to which the result is added. Returns the gain.
  double solve_row(Slot slot, Scope scope, bool anew = false);
  // Whether a coefficient is strictly between its bounds.
  bool is_free(Slot slot, std::size_t c) const;
  // What a move of coefficients would do to gradients: both classes x n_slots().
  void gradient_change(std::span<const double> direction, std::span<double> change);
  // Moves coefficients along a direction as far as it gains and the bounds allow; `change` as
  // above. Returns the gain, and in `is_blocked` whether a bound was in the way.
  double move_along(std::span<const double> direction, std::span<const double> change,
                    bool& is_blocked);
  // Adds to coefficients, whatever the bounds.
  void add(Slot slot, std::size_t label, double change);
  // Coefficients of one row are added to those of another, as far as it is alike; with `bounded`,
  // these are then scaled down to its bounds.
  void merge(Slot from, Slot into, bool bounded);
  // Gives the row coefficients, and their past.
  void restore(Slot slot, std::span<const double> values, std::span<const double> earlier);

  // The lowest gradient of each slot, and the highest of classes that can go up: no pair of a row
  // violates by more than their difference.
  void find_lowest(std::vector<double>& lowest) const;
  double highest_to_raise(Slot slot) const;
  // cap times the loss of the row by the scores as they are.
  double loss_of(Slot slot) const;
  Gap gap() const;

  DualLoss loss() const { return loss_; }
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

 private:
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

  struct Member {
    Slot slot;
    double value;
  };

  double intercept(std::size_t c) const;  // what the offset adds to scores of the class
  double score_of_staged(std::size_t staged, const std::vector<Member>& members) const;
  double upper(const Pattern& pattern, std::size_t c) const;
  double lower(const Pattern& pattern, std::size_t c) const;
  static const Coefficient* find(const Pattern& pattern, std::size_t c);
  static double value(const Pattern& pattern, std::size_t c);
  static double earlier(const Pattern& pattern, std::size_t c);
  void put(Slot slot, std::size_t c, double value, double earlier);
  void list_classes(const Pattern& pattern, Scope scope, std::vector<std::uint32_t>& classes) const;
  // beta_slot(c) += change, and with it the gradients of all rows. `exact` is the new value: the
  // caller puts it on a bound where it is within rounding of one.
  void shift(Slot slot, std::size_t c, double change, double exact);
  double step_to_cap(Slot slot);
  // What every step of a row ends with.
  void settle(Slot slot);
  void drop_residue(Slot slot);
  void balance(Slot slot);
  void update_place(Slot slot);
  void make_room(std::size_t slots);
  void look_at_all();
  void find_losses(std::vector<double>& losses) const;  // of all slots, caps apart
  Slot free_slot();

  SlotKernel* kernel_;
  KernelRows rows_;
  std::size_t n_classes_;
  DualLoss loss_;
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
  // Room for one step.
  std::vector<std::uint32_t> classes_;
  std::vector<double> targets_, uppers_, lowers_, breaks_;
};

// Numbers nearest to `targets` between the bounds that sum to zero; these overwrite the targets.
// Each finite bound is met exactly, and the sum but for the rounding of the numbers themselves,
// however large the targets are.
void project_to_zero_sum(std::span<double> targets, std::span<const double> lower,
                         std::span<const double> upper, std::vector<double>& breaks);

}  // namespace widemargin

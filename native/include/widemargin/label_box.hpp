// Dual coefficients of many labels, each in a box of its own, over kernel rows that all share.
//
// Problem      maximise  sum_il m_il y_il b_il - 1/2 sum_lm R_lm b_l' K b_m  over signed
// coefficients
//              b with 0 <= y_il b_il <= cap_il, where K is the kernel plus an offset and m are the
//              margins, 1 for the Hamming loss. With b = 2 alpha y and cap = 2 C it is the dual
//              (25) of the paper, whose Delta^- - Delta^+ is 2 m.
// Gradient     g_il = m_il y_il - f_il with the scores f = K b R; it is held for all rows and
//              labels, label by label, in double precision
// Step         a block of rows, the same for all labels. First the coefficients of the block alone
//              move, a label after the other: exact steps, each on the coefficient that gains most,
//              with the kernel values of the block in the cache. Labels that R relates have a few
//              turns, or their steps would undo each other's from pass to pass. Then the gradients
//              of all rows follow in one matrix product. With a diagonal R labels know nothing of
//              each other, and are solved in parallel.
// Order        is the caller's. At random it takes a fraction of the passes that it does with those
//              first which promise most, or with rows that are alike side by side.
// Stops        it does not: the caller looks at the gap
//
// The paper moves pairs of coefficients of one label, and delays what they do to the gradients of
// other labels for as many steps as there are labels. Here the delay is a whole block, so that a
// kernel row serves all labels at the speed of a matrix product instead of that of memory. Nothing
// ties the coefficients of a label together, so that steps are of single ones.
//
// Source: Hariharan, Vishwanathan and Varma, "Efficient max-margin multi-label classification with
// applications to zero-shot learning" (2012), section 5.1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "widemargin/kernel_rows.hpp"

namespace widemargin {

// What is to be learned of the rows.
struct LabelProblem {
  std::size_t rows, labels;
  std::vector<std::int8_t> signs;  // labels x rows: +1 or -1
  std::vector<double> row_caps;    // by row
  std::vector<double> label_caps;  // labels x 2: factors of those, of rows without and with it
  std::vector<double> relation;    // labels x labels: R, symmetric
  double offset;                   // of kernel values: 1 for a machine with intercepts
  std::vector<double> margins{};   // labels x rows: what y f should reach; empty: 1 everywhere

  std::int8_t sign(std::size_t label, std::size_t row) const { return signs[label * rows + row]; }
  double cap(std::size_t label, std::size_t row) const {
    return row_caps[row] * label_caps[2 * label + (sign(label, row) > 0 ? 1 : 0)];
  }
};

class LabelBox {
 public:
  struct Standing {
    double gap = 0, dual = 0;
  };

  // Puts all rows of the kernel's batch into slots, in their order.
  LabelBox(SlotKernel& kernel, LabelProblem problem, std::size_t cache_bytes, int n_threads);

  // Of all rows and labels, by the gradients as they are.
  Standing look();
  // Rows that promised more than a share of what the best did at the last look, in their order.
  std::vector<Slot> promising(double share) const;
  // Moves the coefficients of rows, each named once, a block after the other. Returns what the dual
  // gains.
  double move(std::span<const Slot> rows);
  // Computes gradients anew from the coefficients, of some of the rows at a time: those that were
  // changed step by step have collected rounding errors. Begins at row 0; returns the row to go on
  // from, n_rows() at the end. No other work may come in between.
  std::size_t refresh(std::size_t first);

  std::size_t n_rows() const { return problem_.rows; }
  std::size_t n_labels() const { return problem_.labels; }
  // Coefficients that are not zero, and rows that have any.
  struct Supports {
    std::size_t vectors = 0, patterns = 0;
  };
  Supports supports() const;
  std::size_t block_rows() const { return block_rows_; }
  std::uint64_t computed() const { return rows_.computed(); }  // kernel values
  // Both labels x rows. Whoever writes coefficients refreshes gradients, or writes those too.
  std::span<double> coefficients() { return coefficients_; }
  std::span<double> gradients() { return gradients_; }

 private:
  static constexpr std::size_t kBlockRows = 128;  // whose kernel values stay in the cache

  // Labels that are solved together, and the block of rows that they are at.
  struct Group {
    std::size_t first = 0, labels = 0;
    std::span<const Slot> slots;
    const float* const* rows = nullptr;  // kernel rows of the slots
    std::size_t padded = 0;              // rows of the block, in whole registers
    std::size_t columns = 0;             // and as columns of a packed operand
    AlignedVector<float> inner;          // its kernel values: padded x padded, without the offset
    // Labels x padded: its gradients at first, how far each coefficient may move, and has moved.
    AlignedVector<float> local, down, up, change;
    std::vector<double> changes;  // labels x rows of the block: the latter, of coefficients
    AlignedVector<float> shifts;  // what each label took off its gradients, packed
    AlignedVector<float> heard;   // what all of that took off the gradients of one label
    std::array<float, kBlockRows> before;  // gradients of one label before its turn
    std::vector<std::size_t> moving;       // labels whose scores change
    std::vector<double> related;  // by how much, through R: those labels x rows of the block
    std::vector<float> room;
    std::vector<float> least;  // by label: the gain below which a step waits for a later block
  };

  struct Bounds {
    double lower, upper;
  };
  Bounds bounds_of(std::size_t label, std::size_t row) const;

  template <class Work>
  void for_each_group(const Work& work);
  void load(Group& group, std::span<const Slot> slots, const float* const* rows) const;
  void solve(Group& group, double* gains);
  void gather(Group& group) const;
  double climb(Group& group, std::size_t place) const;
  void keep(Group& group, std::size_t place);
  void hear_of_labels(Group& group, std::size_t place, float* gradient) const;
  void note_shift(Group& group, std::size_t place, const float* gradient) const;
  void relate(Group& group) const;
  void start_gradients();
  void spread(Group& group, bool exactly, int threads);

  LabelProblem problem_;
  bool is_diagonal_;
  int n_threads_;
  KernelRows rows_;
  std::size_t block_rows_;
  std::vector<double> diagonal_;                      // offset included
  AlignedVector<double> coefficients_, gradients_;    // labels x rows
  AlignedVector<float> influence_;                    // labels x labels: R_lm / R_mm; or empty
  std::vector<double> promise_, row_gap_, row_dual_;  // by row
  std::vector<const float*> pointers_;                // kernel rows that are at hand
};

}  // namespace widemargin

// Linear multi-label machines by dual coordinate ascent: a block of labels.
//
// Problem      max over 0 <= a_il <= cap_il of sum_il m_il a_il - 1/2 sum_kl R_kl z_k . z_l,
//              z_l = sum_i a_il y_il x_i, with a prior R over the labels of the block and margins
//              m, 1 for the Hamming loss. The score of label l is x . u_l, u_l = sum_k R_kl z_k; of
//              all these only the u_l are kept.
// Step         a row: its scores for all labels of the block, then the exact solution in each of
//              its coefficients, one after the other. What one step changes in the scores of the
//              other labels is known from R and the length of the row; all weights are changed
//              once, by the sum of the steps.
// Pass         rows in random order. A row is let go if all its coefficients are at a bound, and
//              their gradients hold them there more firmly than any projected gradient of the pass
//              before would move them, that of labels which R relates included.
// Stops        a label waits when the gap of the rows of a pass is small. When all labels do, the
//              gap of all rows is found, exactly. Labels whose own is not small go on with all
//              rows. Without a prior labels stop one by one, with one all together.
//
// Source: Hariharan, Vishwanathan, Varma, "Efficient max-margin multi-label classification with
// applications to zero-shot learning" (2012), section 6. They move one coefficient of a random row
// and label at a time, and change the weights of all labels for it; later many of one label, so
// that weights of other labels need to be changed only now and then. Going by rows, a change of all
// weights serves the coefficients of all labels from the start. The loop over rows, and the rule by
// which some are let go, are of Hsieh et al., "A dual coordinate descent method for large-scale
// linear SVM" (2008).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "widemargin/label_steps.hpp"

namespace widemargin {

class DualAscent {
 public:
  // What does not move.
  struct Problem {
    std::size_t rows = 0, columns = 0, labels = 0;
    std::vector<std::uint8_t> signs;                // rows x padded / 4: a bit for each label
    std::vector<double> with_label, without_label;  // padded
    std::vector<double> scale;                      // padded: the diagonal of the prior
    std::vector<double> prior;                      // padded x padded, or empty: a diagonal
    std::vector<double> margins;                    // rows x padded, or empty: 1
  };
  enum class Phase : std::int64_t { kAscending, kJudging, kDone };
  // All that moves.
  struct State {
    std::vector<double> weights, coefficients;
    std::vector<std::int32_t> order;
    // Of each label, padded; `share` is that of the gap wanted at which the label waits.
    std::vector<double> low, high, lowest, highest, gap, dual, live, share;
    Phase phase = Phase::kAscending;
    std::int64_t next = 0, active = 0, moved = 0, passes = 0;
    std::uint64_t random = 0;
    bool is_stuck = false;  // no step improves it
    bool is_exact = false;  // it is done, and the gaps are as small as they were to be
  };

  static std::size_t padded(std::size_t labels) {
    return (labels + kLabelsAtOnce - 1) / kLabelsAtOnce * kLabelsAtOnce;
  }

  // std::invalid_argument if the sizes of the problem do not go together.
  DualAscent(Problem problem, std::uint64_t seed);

  // Goes on until about so many entries of rows were read, or all labels are done: the gap is at
  // the most `tol` times the primal objective, or there were so many passes.
  template <class T>
  void work(const LabelRows<T>& rows, double tol, std::int64_t max_passes,
            std::uint64_t most_entries);
  // Returns the gap of each label, of all rows, as it is now; what is under way stays as it is.
  template <class T>
  std::vector<double> find_gaps(const LabelRows<T>& rows);

  bool is_done() const { return state_.phase == Phase::kDone; }
  const Problem& problem() const { return problem_; }
  const State& state() const { return state_; }
  // Goes on from there; std::invalid_argument if this problem cannot have come there.
  void restore(State state);

 private:
  LabelLanes lanes();
  LabelPlace place();
  void keep(const LabelPlace& place);
  void begin_pass();
  void end_pass(double tol, std::int64_t max_passes);
  void end_judging(double tol, std::int64_t max_passes);
  void find_bounds();
  std::vector<bool> have_small_gaps(double tol, bool by_share) const;

  Problem problem_;
  State state_;
  std::vector<double> inverse_scale_, scratch_;
};

}  // namespace widemargin

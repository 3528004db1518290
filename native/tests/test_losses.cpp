// Every loss: derivatives against finite differences, the shape of its Hessian, and what sets it
// apart.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "examples.hpp"
#include "random_data.hpp"
#include "widemargin/losses.hpp"

namespace widemargin::tests {
namespace {

constexpr std::size_t kOutputs[] = {1, 2, 3, 70};

template <class Loss>
constexpr bool has_classes = std::is_same_v<typename Loss::Targets, ClassTargets>;
template <class Loss>
constexpr bool has_numbers = std::is_same_v<typename Loss::Targets, RealTargets>;

// A loss with the target of one row.
template <class Loss>
struct RowJudge {
  Loss loss;
  std::vector<std::int32_t> label;
  std::vector<std::int8_t> signs;
  std::vector<double> numbers;

  RowJudge(const Loss& a_loss, std::size_t k, Random& random)
      : loss(a_loss), label(1), signs(k), numbers(k) {
    label[0] = static_cast<std::int32_t>(random.below(k));
    for (std::int8_t& sign : signs) sign = random.below(2) == 0 ? 1 : -1;
    if (has_numbers<Loss>) numbers = random.values<double>(k, -3, 3);
  }

  auto target() const {
    if constexpr (has_classes<Loss>) {
      return ClassTargets{label.data()}(0, signs.size());
    } else if constexpr (has_numbers<Loss>) {
      return RealTargets{numbers.data()}(0, numbers.size());
    } else {
      return SignedTargets{signs.data()}(0, signs.size());
    }
  }

  template <class T>
  T value(const std::vector<T>& f) const {
    return loss.value(f.data(), target(), f.size());
  }
  template <class T>
  std::vector<T> gradient(const std::vector<T>& f, T* value = nullptr) const {
    std::vector<T> g(f.size());
    const T returned = loss.gradient(f.data(), target(), f.size(), g.data());
    if (value != nullptr) *value = returned;
    return g;
  }
  template <class T>
  std::vector<T> hessian_product(const std::vector<T>& f, const std::vector<T>& u) const {
    std::vector<T> d(f.size());
    loss.hessian_product(f.data(), target(), f.size(), u.data(), d.data());
    return d;
  }
  template <class T>
  std::vector<T> hessian_diagonal(const std::vector<T>& f) const {
    std::vector<T> h(f.size());
    loss.hessian_diagonal(f.data(), target(), f.size(), h.data());
    return h;
  }
};

template <class Function>
void for_each_loss(const Function& function) {
  for_each_example<Losses>(function);
}

// Calls function(judge, scores) for each loss, number of outputs and kind of scores: small ones,
// where most margins are violated and many classes are close; larger ones; and far apart.
template <class Function>
void for_each_point(const Function& function) {
  for_each_loss([&](const auto& loss) {
    for (const std::size_t k : kOutputs) {
      for (const double size : {0.05, 0.5, 2.0, 20.0}) {
        const Case where(name_of(loss) + ", " + std::to_string(k) + " outputs, scores up to " +
                         std::to_string(size));
        Random random(k);
        for (int repetition = 0; repetition < 5; ++repetition) {
          const RowJudge judge(loss, k, random);
          function(judge, random.values<double>(k, -size, size));
        }
      }
    }
  });
}

double dot(const std::vector<double>& left, const std::vector<double>& right) {
  double sum = 0.0;
  for (std::size_t c = 0; c < left.size(); ++c) sum += left[c] * right[c];
  return sum;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

std::vector<double> moved(std::vector<double> f, const std::vector<double>& u, double step) {
  for (std::size_t c = 0; c < f.size(); ++c) f[c] += step * u[c];
  return f;
}

template <class T>
std::vector<T> unit(std::size_t k, std::size_t c) {
  std::vector<T> u(k, T(0));
  u[c] = 1;
  return u;
}

constexpr double kStep = 1e-6;  // of central differences

TEST("gradients are the finite differences of values") {
  for_each_point([](const auto& judge, const std::vector<double>& f) {
    double value = 0.0;
    const std::vector<double> g = judge.gradient(f, &value);
    CHECK_NEAR(value, judge.value(f), 1e-13 * (1 + value));
    for (std::size_t c = 0; c < f.size(); ++c) {
      const auto u = unit<double>(f.size(), c);
      const double up = judge.value(moved(f, u, kStep)), down = judge.value(moved(f, u, -kStep));
      CHECK_NEAR(g[c], (up - down) / (2 * kStep), 1e-6 + 1e-7 * value);
    }
  });
}

TEST("Hessian products are the finite differences of gradients") {
  for_each_point([](const auto& judge, const std::vector<double>& f) {
    Random random(f.size());
    const std::vector<double> u = random.values<double>(f.size(), -1, 1);
    const std::vector<double> d = judge.hessian_product(f, u);
    const auto up = judge.gradient(moved(f, u, kStep)), down = judge.gradient(moved(f, u, -kStep));
    for (std::size_t c = 0; c < f.size(); ++c) {
      CHECK_NEAR(d[c], (up[c] - down[c]) / (2 * kStep), 1e-6 * (1 + largest_of(d)));
    }
  });
}

TEST("Hessian diagonals are those of Hessian products") {
  for_each_point([](const auto& judge, const std::vector<double>& f) {
    const std::vector<double> h = judge.hessian_diagonal(f);
    for (std::size_t c = 0; c < f.size(); ++c) {
      CHECK_NEAR(h[c], judge.hessian_product(f, unit<double>(f.size(), c))[c],
                 1e-12 * (1 + largest_of(h)));
      CHECK(h[c] >= 0);
    }
  });
}

TEST("Hessians are symmetric and positive semi-definite") {
  for_each_point([](const auto& judge, const std::vector<double>& f) {
    Random random(f.size());
    for (int repetition = 0; repetition < 5; ++repetition) {
      const std::vector<double> u = random.values<double>(f.size(), -1, 1);
      const std::vector<double> v = random.values<double>(f.size(), -1, 1);
      const std::vector<double> hu = judge.hessian_product(f, u), hv = judge.hessian_product(f, v);
      const double size = 1 + std::fabs(dot(u, hu)) + std::fabs(dot(v, hv));
      CHECK_NEAR(dot(v, hu), dot(u, hv), 1e-12 * size);
      CHECK(dot(u, hu) >= -1e-12 * size);
    }
  });
}

TEST("losses of classes do not change where all scores move alike") {
  for_each_point([](const auto& judge, const std::vector<double>& f) {
    if constexpr (has_classes<std::decay_t<decltype(judge.loss)>>) {
      const std::vector<double> ones(f.size(), 1.0), g = judge.gradient(f);
      CHECK_NEAR(judge.value(moved(f, ones, 3.0)), judge.value(f), 1e-11 * (1 + judge.value(f)));
      CHECK_NEAR(sum_of(g), 0.0, 1e-12 * (1 + largest_of(g)));
      CHECK_NEAR(largest_of(judge.hessian_product(f, ones)), 0.0, 1e-12);
    }
  });
}

TEST("float results are near the double ones") {
  for_each_point([](const auto& judge, const std::vector<double>& f) {
    if (largest_of(f) > 3) return;
    Random random(f.size());
    const std::vector<float> narrow(f.begin(), f.end());
    const std::vector<double> wide(narrow.begin(), narrow.end());
    const std::vector<float> narrow_u = random.values<float>(f.size(), -1, 1);
    const std::vector<double> wide_u(narrow_u.begin(), narrow_u.end());
    const auto compare = [](const std::vector<float>& got, const std::vector<double>& expected) {
      for (std::size_t c = 0; c < got.size(); ++c) {
        CHECK_NEAR(got[c], expected[c], 1e-4 * (1 + largest_of(expected)));
      }
    };
    float value = 0;
    compare(judge.gradient(narrow, &value), judge.gradient(wide));
    compare({value, judge.value(narrow)}, {judge.value(wide), judge.value(wide)});
    compare(judge.hessian_diagonal(narrow), judge.hessian_diagonal(wide));
    compare(judge.hessian_product(narrow, narrow_u), judge.hessian_product(wide, wide_u));
  });
}

TEST("at a tie of all outputs the derivatives hold, and equal outputs are treated alike") {
  for_each_loss([](const auto& loss) {
    for (const std::size_t k : kOutputs) {
      const Case where(name_of(loss) + ", " + std::to_string(k) + " outputs");
      Random random(k);
      RowJudge judge(loss, k, random);
      judge.label[0] = 0;
      std::fill(judge.signs.begin(), judge.signs.end(), std::int8_t{-1});
      std::fill(judge.numbers.begin(), judge.numbers.end(), -1.0);
      const std::vector<double> f(k, 0.0), g = judge.gradient(f), h = judge.hessian_diagonal(f);
      for (std::size_t c = 1; c < k; ++c) {
        CHECK_NEAR(g[c], g[k - 1], 1e-14);
        CHECK_NEAR(h[c], h[k - 1], 1e-14);
        CHECK(g[c] > 0 && h[c] > 0);
      }
      for (std::size_t c = 0; c < k; ++c) {
        const auto u = unit<double>(k, c);
        const double up = judge.value(moved(f, u, kStep)), down = judge.value(moved(f, u, -kStep));
        CHECK_NEAR(g[c], (up - down) / (2 * kStep), 1e-6);
        CHECK_NEAR(h[c], judge.hessian_product(f, u)[c], 1e-12);
      }
    }
  });
}

TEST("a single class costs nothing") {
  Random random(1);
  for_each_loss([&](const auto& loss) {
    if constexpr (has_classes<std::decay_t<decltype(loss)>>) {
      const Case where(name_of(loss));
      const RowJudge judge(loss, 1, random);
      for (const double score : {-5.0, 0.0, 5.0}) {
        const std::vector<double> f = {score}, u = {1.0};
        CHECK(judge.value(f) == 0);
        CHECK(judge.gradient(f)[0] == 0);
        CHECK(judge.hessian_product(f, u)[0] == 0);
        CHECK(judge.hessian_diagonal(f)[0] == 0);
      }
    }
  });
}

template <class T>
void check_satisfied(const RowJudge<WestonWatkins>& judge, const std::vector<T>& f) {
  CHECK(judge.value(f) == 0);
  for (const T entry : judge.gradient(f)) CHECK(entry == 0);
  for (const T entry : judge.hessian_diagonal(f)) CHECK(entry == 0);
}

TEST("a margin of exactly 1 is satisfied, for the hinges that say so") {
  Random random(2);
  RowJudge judge(WestonWatkins{}, 3, random);
  judge.label[0] = 1;
  check_satisfied<float>(judge, {0.5f, 1.5f, 0.5f});
  check_satisfied<double>(judge, {0.25, 1.25, -7});

  RowJudge hinge(SquaredHinge{}, 3, random);
  hinge.signs = {1, -1, 1};
  const std::vector<double> f = {1, -1, 2};
  CHECK(hinge.value(f) == 0);
  for (const double entry : hinge.gradient(f)) CHECK(entry == 0);
  for (const double entry : hinge.hessian_diagonal(f)) CHECK(entry == 0);
}

TEST("hinge values are those of their formulas") {
  Random random(3);
  RowJudge ww(WestonWatkins{}, 4, random);
  ww.label[0] = 2;
  const std::vector<double> f = {0.5, -3, 1, 2};
  CHECK_NEAR(ww.value(f), 0.5 * (0.5 * 0.5 + 2 * 2), 1e-15);
  RowJudge hinge(SquaredHinge{}, 4, random);
  hinge.signs = {1, -1, -1, 1};
  CHECK_NEAR(hinge.value(f), 0.5 * (0.5 * 0.5 + 2 * 2), 1e-15);
}

TEST("the squared error is that of its formula, whatever the numbers") {
  Random random(4);
  RowJudge judge(SquaredError{}, 3, random);
  judge.numbers = {0.5, -3, 1e6};
  const std::vector<double> f = {1, -1, 1e6}, g = judge.gradient(f);
  CHECK_NEAR(judge.value(f), 0.5 * (0.5 * 0.5 + 2 * 2), 1e-15);
  CHECK(g[0] == 0.5 && g[1] == 2 && g[2] == 0);
}

// ---- Crammer-Singer

constexpr double kRounding = 1e-11;  // of sums that are divided by the smoothing

// Sorted from largest to smallest: 1 + f[c] - f[y] of the wrong classes.
std::vector<double> wrong_margins(const std::vector<double>& f, std::size_t y) {
  std::vector<double> margins;
  for (std::size_t c = 0; c < f.size(); ++c) {
    if (c != y) margins.push_back(1 + f[c] - f[y]);
  }
  std::sort(margins.rbegin(), margins.rend());
  return margins;
}

// The rounded maximum, which the loss is half the square of.
double rounded_maximum(const RowJudge<CrammerSinger>& judge, const std::vector<double>& f) {
  return std::sqrt(2 * judge.value(f));
}

template <class Function>
void for_each_crammer_singer_point(const Function& function) {
  for (const double smoothing : {1e-3, 0.1, 1.0}) {
    for (const std::size_t k : {2, 3, 70}) {
      for (const double size : {0.01, 0.1, 0.5, 3.0}) {
        const Case where(std::to_string(smoothing) + " smoothing, " + std::to_string(k) +
                         " outputs, scores up to " + std::to_string(size));
        Random random(k);
        for (int repetition = 0; repetition < 20; ++repetition) {
          const RowJudge judge(CrammerSinger{smoothing}, k, random);
          function(judge, random.values<double>(k, -size, size));
        }
      }
    }
  }
}

TEST("Crammer-Singer is the plain hinge where the worst class leads by the smoothing") {
  std::size_t met = 0;
  for_each_crammer_singer_point([&](const RowJudge<CrammerSinger>& judge, std::vector<double> f) {
    const double smoothing = judge.loss.smoothing;
    const std::size_t y = judge.target(), worst = y == 0 ? 1 : 0;
    const double lead = smoothing * (1 + 1e-9);
    for (std::size_t c = 0; c < f.size(); ++c) {
      if (c != y && c != worst) f[worst] = std::max(f[worst], f[c] + lead);
    }
    const double plain = std::max(0.0, 1 + f[worst] - f[y]);
    CHECK_NEAR(judge.value(f), plain * plain / 2, 1e-12 * (1 + plain * plain));
    std::vector<double> expected(f.size(), 0.0);
    expected[worst] = plain;
    expected[y] = -plain;
    const std::vector<double> g = judge.gradient(f), h = judge.hessian_diagonal(f);
    for (std::size_t c = 0; c < f.size(); ++c) {
      CHECK_NEAR(g[c], expected[c], 1e-11 * (1 + plain) / smoothing);
      CHECK_NEAR(h[c], plain > 0 && (c == y || c == worst) ? 1.0 : 0.0, 1e-9);
    }
    met += plain > 0 ? 1 : 0;
  });
  CHECK(met > 100);
}

TEST("Crammer-Singer is nowhere below the plain hinge, and above it within the bound") {
  for_each_crammer_singer_point(
      [](const RowJudge<CrammerSinger>& judge, const std::vector<double>& f) {
        const std::vector<double> margins = wrong_margins(f, judge.target());
        const double plain = std::max(0.0, margins[0]), rounded = rounded_maximum(judge, f);
        const auto wrong = static_cast<double>(margins.size());
        CHECK(rounded >= plain - kRounding);
        CHECK(rounded <= plain + judge.loss.smoothing / 2 * (1 - 1 / wrong) + kRounding);
        CHECK(rounded < plain + judge.loss.smoothing / 2);
      });
}

TEST("Crammer-Singer exceeds the plain hinge by smoothing/2 (1 - 1/n) at a tie of n") {
  for (const double smoothing : {1e-3, 0.1, 1.0}) {
    for (const std::size_t tied : {1, 2, 3, 68}) {
      Random random(tied);
      RowJudge judge(CrammerSinger{smoothing}, 70, random);
      judge.label[0] = 69;
      std::vector<double> f(70, -2.0);
      for (std::size_t c = 0; c < tied; ++c) f[c] = 0.5;
      f[69] = 0.75;
      const double excess = smoothing / 2 * (1 - 1 / static_cast<double>(tied));
      CHECK_NEAR(rounded_maximum(judge, f), 0.75 + excess, kRounding);
    }
  }
}

TEST("Crammer-Singer is above 0 just inside the margin, where two wrong classes tie") {
  Random random(8);
  RowJudge judge(CrammerSinger{0.1}, 3, random);
  judge.label[0] = 0;
  const std::vector<double> f = {1.02, 0, 0}, g = judge.gradient(f);
  CHECK_NEAR(rounded_maximum(judge, f), 0.005, kRounding);
  CHECK_NEAR(g[0], -0.005, kRounding);
  CHECK_NEAR(g[1], 0.0025, kRounding);
  CHECK_NEAR(g[2], 0.0025, kRounding);
}

TEST("Crammer-Singer attains the maximum over distributions that defines it") {
  for_each_crammer_singer_point(
      [](const RowJudge<CrammerSinger>& judge, const std::vector<double>& f) {
        const double rounded = rounded_maximum(judge, f), smoothing = judge.loss.smoothing;
        if (rounded == 0) return;
        const std::size_t y = judge.target();
        const auto at = [&](const std::vector<double>& p) {
          double sum = smoothing / 2;
          for (std::size_t c = 0; c < f.size(); ++c) {
            if (c != y) sum += p[c] * (1 + f[c] - f[y]) - smoothing / 2 * p[c] * p[c];
          }
          return sum;
        };
        std::vector<double> best = judge.gradient(f);
        best[y] = 0;
        for (double& p : best) {
          p /= rounded;
          CHECK(p >= 0);
        }
        CHECK_NEAR(sum_of(best), 1.0, 1e-9);
        CHECK_NEAR(at(best), rounded, 1e-9);

        Random random(f.size());
        for (int repetition = 0; repetition < 5; ++repetition) {
          std::vector<double> other = random.values<double>(f.size(), 0, 1);
          other[y] = 0;
          const double total = sum_of(other), share = random.uniform(0, 1);
          for (std::size_t c = 0; c < f.size(); ++c) {
            other[c] = share * best[c] + (1 - share) * other[c] / total;
          }
          CHECK(at(other) <= rounded + 1e-9);
        }
      });
}

TEST("Crammer-Singer is 0, with no derivatives, for a row far inside its margin") {
  Random random(4);
  RowJudge judge(CrammerSinger{0.1}, 3, random);
  judge.label[0] = 0;
  for (const double score : {1.06, 2.0, 1e6}) {
    const std::vector<double> f = {score, 0, 0};
    CHECK(judge.value(f) == 0);
    for (const double entry : judge.gradient(f)) CHECK(entry == 0);
    for (const double entry : judge.hessian_diagonal(f)) CHECK(entry == 0);
    for (const double entry : judge.hessian_product(f, {1, -2, 3})) CHECK(entry == 0);
  }
}

// The same numbers, judged in more digits, give the same.
void check_crammer_singer_digits(const std::vector<float>& f, double smoothing) {
  Random random(6);
  RowJudge judge(CrammerSinger{smoothing}, f.size(), random);
  judge.label[0] = 0;
  const std::vector<double> wide(f.begin(), f.end());
  const double expected = judge.value(wide);
  CHECK_NEAR(judge.value(f), expected, 200 * epsilon<float>() * expected);
  const std::vector<float> g = judge.gradient(f);
  const std::vector<double> wide_g = judge.gradient(wide);
  for (std::size_t c = 0; c < f.size(); ++c) {
    CHECK_NEAR(g[c], wide_g[c], 200 * epsilon<float>() * std::sqrt(2 * expected));
  }
}

TEST("Crammer-Singer keeps its digits for large scores and at a tie of many classes, float") {
  for (const double smoothing : {1e-3, 0.1}) {
    for (const float size : {1.0f, 1e3f, 1e5f, 1e7f}) {
      const Case where("scores of " + std::to_string(size));
      check_crammer_singer_digits({0, size, size - 0.0004f, 0}, smoothing);
      check_crammer_singer_digits({0, size, size, size}, smoothing);
    }
    for (const std::size_t k : {10, 1000, 10000}) {
      const Case where("a tie of " + std::to_string(k));
      check_crammer_singer_digits(std::vector<float>(k, 0.0f), smoothing);
    }
  }
}

TEST("Crammer-Singer is the plain hinge at large scores with no tie") {
  Random random(7);
  RowJudge judge(CrammerSinger{0.1}, 3, random);
  judge.label[0] = 0;
  for (const double size : {1e3, 1e9, 1e17}) {
    const std::vector<double> f = {0, size, 0};
    CHECK_NEAR(judge.value(f), (1 + size) * (1 + size) / 2, 1e-15 * size * size);
    CHECK_NEAR(judge.gradient(f)[1], 1 + size, 1e-15 * size);
  }
}

// ---- logistic losses far out

template <class T>
void check_far_logistic() {
  Random random(5);
  RowJudge judge(Logistic{}, 3, random);
  judge.label[0] = 1;
  for (const T size : {T(100), T(1e4)}) {
    const std::vector<T> wrong = {size, -size, 0}, right = {-size, size, 0};
    CHECK_NEAR(judge.value(wrong), 2 * size, 1e-6 * static_cast<double>(size));
    CHECK_NEAR(judge.value(right), 0, 1e-6);
    CHECK_NEAR(judge.gradient(wrong)[0], 1, 1e-6);
    CHECK_NEAR(judge.gradient(wrong)[1], -1, 1e-6);
    for (const T entry : judge.gradient(right)) CHECK_NEAR(entry, 0, 1e-6);
    for (const T entry : judge.hessian_diagonal(wrong)) CHECK_NEAR(entry, 0, 1e-6);
  }
  RowJudge binary(BinaryLogistic{}, 2, random);
  binary.signs = {1, -1};
  for (const T size : {T(100), T(1e4)}) {
    const std::vector<T> wrong = {-size, size}, right = {size, -size};
    CHECK_NEAR(binary.value(wrong), 2 * size, 1e-6 * static_cast<double>(size));
    CHECK_NEAR(binary.value(right), 0, 1e-6);
    CHECK_NEAR(binary.gradient(wrong)[0], -1, 1e-6);
    CHECK_NEAR(binary.gradient(wrong)[1], 1, 1e-6);
    for (const T entry : binary.gradient(right)) CHECK_NEAR(entry, 0, 1e-6);
    for (const T entry : binary.hessian_diagonal(wrong)) CHECK_NEAR(entry, 0, 1e-6);
  }
}

TEST("the value that comes with the logistic gradient is as good as the value alone, float") {
  Random random(7);
  RowJudge judge(Logistic{}, 3, random);
  judge.label[0] = 0;
  for (const float size : {1.0f, 10.0f, 1000.0f}) {
    const std::vector<float> f = {size, size - 8, size - 9};
    float value = 0;
    judge.gradient(f, &value);
    CHECK_NEAR(value, judge.value(std::vector<double>(f.begin(), f.end())), 2e-7);
  }
}

TEST("logistic losses stay finite and right for scores that exp cannot take") {
  check_far_logistic<float>();
  check_far_logistic<double>();
}

}  // namespace
}  // namespace widemargin::tests

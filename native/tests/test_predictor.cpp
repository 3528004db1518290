// Prediction, for every instruction set, in both precisions, of rows of every kind.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "check.hpp"
#include "random_data.hpp"
#include "sparse_data.hpp"
#include "widemargin/predictor.hpp"

namespace widemargin::tests {
namespace {

struct Table {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;

  Table() = default;
  Table(std::size_t n_rows, std::size_t n_columns, double value = 0.0)
      : rows(n_rows), columns(n_columns), values(n_rows * n_columns, value) {}
  double& operator()(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double operator()(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

// Of numbers that both precisions have, so that one reference is right for both.
Table random_table(std::size_t rows, std::size_t columns, Random& random, double low = -1.5,
                   double high = 1.5) {
  Table out(rows, columns);
  for (double& value : out.values) value = static_cast<float>(random.uniform(low, high));
  return out;
}

// ---- rows of every kind

using AnyRows = std::variant<Matrix<const float>, Matrix<const double>, SparseMatrix<float>,
                             SparseMatrix<double>>;

struct Form {
  std::string name;
  std::function<AnyRows(std::size_t first, std::size_t count)> view;

  AnyRows all(std::size_t rows) const { return view(0, rows); }
};

// One number past the start of the memory and with NaN between rows; the last one ends with it.
template <class In>
class Strided {
 public:
  explicit Strided(const Table& table, std::size_t padding = 3)
      : columns_(table.columns),
        stride_(table.columns + padding),
        values_(1 + (table.rows == 0 ? 0 : (table.rows - 1) * stride_ + table.columns),
                std::numeric_limits<In>::quiet_NaN()) {
    for (std::size_t i = 0; i < table.rows; ++i) {
      for (std::size_t f = 0; f < columns_; ++f) {
        values_[1 + i * stride_ + f] = static_cast<In>(table(i, f));
      }
    }
  }

  Matrix<const In> view(std::size_t first, std::size_t count) const {
    return {values_.data() + 1 + first * stride_, count, columns_, stride_};
  }

 private:
  std::size_t columns_, stride_;
  std::vector<In> values_;
};

template <class In>
Form dense_form(const Table& table) {
  auto rows = std::make_shared<Strided<In>>(table);
  return {"dense " + type_name<In>(), [rows](std::size_t first, std::size_t count) -> AnyRows {
            return rows->view(first, count);
          }};
}

// Every other row keeps an explicit zero, if it has zeros: their absence is not promised.
template <class In>
Form sparse_form(const Table& table) {
  auto rows = std::make_shared<Csr<In>>();
  rows->columns = table.columns;
  for (std::size_t i = 0; i < table.rows; ++i) {
    bool keep_zero = i % 2 == 0;
    for (std::size_t f = 0; f < table.columns; ++f) {
      if (table(i, f) == 0 && !std::exchange(keep_zero, false)) continue;
      rows->values.push_back(static_cast<In>(table(i, f)));
      rows->indices.push_back(static_cast<std::int32_t>(f));
    }
    rows->starts.push_back(static_cast<std::int64_t>(rows->values.size()));
  }
  return {"sparse " + type_name<In>(), [rows](std::size_t first, std::size_t count) -> AnyRows {
            SparseMatrix<In> view = rows->view();
            view.starts += first;
            view.rows = count;
            return view;
          }};
}

std::vector<Form> forms_of(const Table& table) {
  return {dense_form<float>(table), dense_form<double>(table), sparse_form<float>(table),
          sparse_form<double>(table)};
}

std::vector<Form> double_forms_of(const Table& table) {
  return {dense_form<double>(table), sparse_form<double>(table)};
}

// ---- predictors

struct Model {
  std::string name;
  std::optional<AnyKernel> kernel;  // none: a linear map
  Table basis, coef;
  std::vector<double> intercept;
  Table linear = {};  // beside the kernel, if it has rows

  std::size_t features() const { return kernel ? basis.columns : coef.rows; }
};

double kernel_value(const AnyKernel& kernel, const Table& rows, std::size_t i, const Table& basis,
                    std::size_t j) {
  if (const auto* each = std::get_if<AdaptiveRbfKernel>(&kernel)) {
    double squared = 0.0;
    for (std::size_t d = 0; d < (each->map.empty() ? rows.columns : each->mapped); ++d) {
      double seen = 0.0;
      for (std::size_t f = 0; f < rows.columns && !each->map.empty(); ++f) {
        seen += (rows(i, f) - basis(j, f)) * each->map[f * each->mapped + d];
      }
      if (each->map.empty()) {
        seen = (rows(i, d) - basis(j, d)) * (each->weights.empty() ? 1.0 : each->weights[d]);
      }
      squared += seen * seen;
    }
    return std::exp(-each->widths[j] * squared);
  }
  double product = 0.0, squared = 0.0, absolute = 0.0, chi_square = 0.0;
  for (std::size_t f = 0; f < rows.columns; ++f) {
    const double x = rows(i, f), b = basis(j, f);
    product += x * b;
    squared += (x - b) * (x - b);
    absolute += std::fabs(x - b);
    if (x + b > 0) chi_square += (x - b) * (x - b) / (x + b);
  }
  if (const auto* each = std::get_if<PolynomialKernel>(&kernel)) {
    return std::pow(each->gamma * product + each->coef0, each->degree);
  }
  if (const auto* each = std::get_if<SigmoidKernel>(&kernel)) {
    return std::tanh(each->gamma * product + each->coef0);
  }
  if (const auto* each = std::get_if<RbfKernel>(&kernel)) return std::exp(-each->gamma * squared);
  if (const auto* each = std::get_if<LaplacianKernel>(&kernel)) {
    return std::exp(-each->gamma * absolute);
  }
  if (const auto* each = std::get_if<ChiSquareKernel>(&kernel)) {
    return std::exp(-each->gamma * chi_square);
  }
  return product;
}

Table plain_scores(const Model& model, const Table& rows) {
  Table out(rows.rows, model.intercept.size());
  for (std::size_t i = 0; i < rows.rows; ++i) {
    for (std::size_t r = 0; r < out.columns; ++r) out(i, r) = model.intercept[r];
    for (std::size_t j = 0; j < model.coef.rows; ++j) {
      const double value =
          model.kernel ? kernel_value(*model.kernel, rows, i, model.basis, j) : rows(i, j);
      for (std::size_t r = 0; r < out.columns; ++r) out(i, r) += value * model.coef(j, r);
    }
    for (std::size_t f = 0; f < model.linear.rows; ++f) {
      for (std::size_t r = 0; r < out.columns; ++r) out(i, r) += rows(i, f) * model.linear(f, r);
    }
  }
  return out;
}

struct Answer {
  std::vector<double> scores;  // outputs of each row
  std::vector<std::int64_t> best;
  std::ptrdiff_t bad = -1;
};

struct AnyMachine {
  std::string name;
  std::variant<Predictor<float>, Predictor<double>> predictor;

  bool single_precision() const { return predictor.index() == 0; }
  double tolerance() const { return single_precision() ? 1e-5 : 1e-12; }
  std::size_t outputs() const {
    return std::visit([](const auto& each) { return each.outputs(); }, predictor);
  }
};

template <class T>
AnyMachine make_machine(const Model& model, const InstructionSet& set) {
  const Strided<double> basis(model.basis), coef(model.coef, 2), linear(model.linear, 1);
  const std::string name = std::string(set.name) + ", " + type_name<T>();
  if (!model.kernel) {
    return {name, Predictor<T>(coef.view(0, model.coef.rows), model.intercept, set)};
  }
  return {name, Predictor<T>(*model.kernel, basis.view(0, model.basis.rows),
                             coef.view(0, model.coef.rows), model.intercept, set,
                             linear.view(0, model.linear.rows))};
}

std::vector<AnyMachine> machines_of(const Model& model) {
  std::vector<AnyMachine> out;
  for (const InstructionSet* set : instruction_sets()) {
    out.push_back(make_machine<float>(model, *set));
    out.push_back(make_machine<double>(model, *set));
  }
  return out;
}

constexpr double kCanary = -77.25;

template <class T, class Rows>
Answer ask(const Predictor<T>& predictor, const Rows& rows, int n_threads, bool check) {
  constexpr std::size_t margin = 5;
  const std::size_t outputs = predictor.outputs(), stride = outputs + 3;
  std::vector<T> scores(rows.rows * stride + 2 * margin, T(kCanary));
  std::vector<std::int64_t> best(rows.rows + 2 * margin, -9);
  Answer answer;
  answer.bad = predictor.scores(rows, Matrix<T>{scores.data() + margin, rows.rows, outputs, stride},
                                n_threads, check);
  const bool single = std::is_same_v<T, float>;
  CHECK(predictor.best(rows, best.data() + margin, n_threads, check, single) == answer.bad);
  // Into a matrix of the other precision.
  using Other = std::conditional_t<std::is_same_v<T, float>, double, float>;
  std::vector<Other> others(rows.rows * outputs);
  CHECK(predictor.scores(rows, contiguous(others.data(), rows.rows, outputs), n_threads, check) ==
        answer.bad);

  bool intact = true, converted = true;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const std::size_t entry = k - margin;
    if (k >= margin && entry < rows.rows * stride && entry % stride < outputs) {
      const auto other = static_cast<Other>(scores[k]);
      converted = converted && !(others[answer.scores.size()] < other) &&
                  !(others[answer.scores.size()] > other);
      answer.scores.push_back(static_cast<double>(scores[k]));
    } else {
      intact = intact && scores[k] == T(kCanary);
    }
  }
  for (std::size_t k = 0; k < best.size(); ++k) {
    if (k >= margin && k < margin + rows.rows) {
      answer.best.push_back(best[k]);
    } else {
      intact = intact && best[k] == -9;
    }
  }
  CHECK(intact);
  CHECK(converted);
  return answer;
}

Answer ask(const AnyMachine& predictor, const AnyRows& rows, int n_threads = 1, bool check = true) {
  return std::visit(
      [&](const auto& each, const auto& view) { return ask(each, view, n_threads, check); },
      predictor.predictor, rows);
}

bool same_bits(const std::vector<double>& left, const std::vector<double>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  });
}

std::vector<std::int64_t> first_largest(const std::vector<double>& scores, std::size_t outputs) {
  std::vector<std::int64_t> out;
  for (auto row = scores.begin(); row != scores.end();
       row += static_cast<std::ptrdiff_t>(outputs)) {
    const auto end = row + static_cast<std::ptrdiff_t>(outputs);
    out.push_back(outputs == 1 ? *row > 0 : std::max_element(row, end) - row);
  }
  return out;
}

double largest_size(const std::vector<double>& values) {
  double most = 1.0;
  for (const double value : values) most = std::max(most, std::fabs(value));
  return most;
}

void check_near_all(const std::vector<double>& got, const std::vector<double>& expected,
                    double tolerance) {
  CHECK(got.size() == expected.size());
  if (got.size() != expected.size()) return;
  double worst = 0.0;
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double off = got[k] == expected[k] ? 0.0 : std::fabs(got[k] - expected[k]);
    worst = off <= worst ? worst : off;  // a NaN stays
  }
  CHECK_NEAR(worst / largest_size(expected), 0.0, tolerance);
}

// Scores of all `forms` by all predictors, against plain loops over `rows`.
void check_model(const Model& model, const Table& rows, const std::vector<Form>& forms) {
  const Table expected = plain_scores(model, rows);
  for (const AnyMachine& predictor : machines_of(model)) {
    for (const Form& form : forms) {
      const Case where(predictor.name + ", " + model.name + ", " + form.name);
      const Answer answer = ask(predictor, form.all(rows.rows));
      CHECK(answer.bad == -1);
      check_near_all(answer.scores, expected.values, predictor.tolerance());
      CHECK(answer.best == first_largest(answer.scores, predictor.outputs()));
    }
  }
}

void check_model(const Model& model, const Table& rows) {
  check_model(model, rows, forms_of(rows));
}

// ---- data

struct Shape {
  std::size_t rows, vectors, outputs, features;
};

std::string describe(const Shape& shape) {
  return std::to_string(shape.rows) + " rows, " + std::to_string(shape.vectors) + " vectors, " +
         std::to_string(shape.outputs) + " outputs, " + std::to_string(shape.features) +
         " features";
}

// Around the widths of panels, tiles and tasks.
constexpr std::size_t kVectors[] = {0, 1, 2, 3, 8, 9, 15, 16, 17, 26, 33, 49};
constexpr std::size_t kOutputs[] = {1, 2, 3, 8, 9, 15, 16, 17, 26, 33, 49};
constexpr std::size_t kFeatures[] = {0, 1, 5, 15, 17, 31, 32, 33, 65, 100};
constexpr std::size_t kRows[] = {1, 7, 31, 33};

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes = {{0, 3, 2, 5},    {0, 17, 1, 40},    {0, 0, 3, 0},     {33, 1, 1, 1},
                               {1025, 9, 3, 5}, {1025, 17, 1, 33}, {1025, 3, 26, 65}};
  for (std::size_t v = 0; v < std::size(kVectors); ++v) {
    for (std::size_t k = 0; k < 3; ++k) {
      shapes.push_back({kRows[(v + k) % std::size(kRows)], kVectors[v],
                        kOutputs[(2 * v + 4 * k) % std::size(kOutputs)],
                        kFeatures[(v + 3 * k) % std::size(kFeatures)]});
    }
  }
  return shapes;
}

Model random_model(const std::string& name, std::optional<AnyKernel> kernel, const Table& basis,
                   std::size_t outputs, Random& random) {
  const std::size_t inner = kernel ? basis.rows : basis.columns;
  return {name, kernel, basis, random_table(inner, outputs, random, -1, 1),
          random.values<double>(outputs, -1, 1)};
}

Model with_linear_part(Model model, Random& random) {
  model.name += " with a linear part";
  model.linear = random_table(model.basis.columns, model.intercept.size(), random, -1, 1);
  return model;
}

// One of each kind, of values that are neither all 0 nor all 1.
std::vector<Model> models_of(const Table& basis, std::size_t outputs, Random& random) {
  const double gamma = 1.0 / static_cast<double>(std::max<std::size_t>(basis.columns, 1));
  return {random_model("rbf", RbfKernel{gamma}, basis, outputs, random),
          with_linear_part(random_model("rbf", RbfKernel{gamma}, basis, outputs, random), random),
          random_model("laplacian", LaplacianKernel{gamma}, basis, outputs, random),
          random_model("polynomial", PolynomialKernel{gamma, 1.0, 3}, basis, outputs, random),
          random_model("sigmoid", SigmoidKernel{gamma, -0.5}, basis, outputs, random),
          random_model("linear expansion", LinearKernel{}, basis, outputs, random),
          random_model("linear map", std::nullopt, basis, outputs, random)};
}

std::vector<Model> distance_models(double gamma, const Table& basis, std::size_t outputs,
                                   Random& random) {
  return {random_model("rbf", RbfKernel{gamma * gamma}, basis, outputs, random),
          random_model("laplacian", LaplacianKernel{gamma}, basis, outputs, random)};
}

// Rows of few entries, of many, of none, of few. A few features are not zero in most of the basis,
// which moves the origin there.
void make_sparse(Table& table, bool is_basis, Random& random) {
  for (std::size_t i = 0; i < table.rows; ++i) {
    for (std::size_t f = 0; f < table.columns; ++f) {
      double share = i % 4 == 1 ? 0.7 : i % 4 == 2 ? 0.0 : 0.06;
      if (is_basis) share = f % 16 == 4 ? 0.9 : 0.2;
      if (random.uniform(0, 1) >= share) table(i, f) = 0.0;
    }
  }
}

// ---- scores

TEST("scores agree with plain loops, for rows without zeros") {
  for (const Shape& shape : all_shapes()) {
    const Case where(describe(shape));
    Random random(shape.rows + 100 * shape.vectors + shape.features);
    const Table rows = random_table(shape.rows, shape.features, random);
    const Table basis = random_table(shape.vectors, shape.features, random);
    for (const Model& model : models_of(basis, shape.outputs, random)) check_model(model, rows);
  }
}

TEST("scores agree with plain loops, for rows of few entries and of none") {
  for (const Shape& shape : all_shapes()) {
    const Case where(describe(shape));
    Random random(shape.rows + 100 * shape.vectors + shape.features);
    Table rows = random_table(shape.rows, shape.features, random);
    Table basis = random_table(shape.vectors, shape.features, random);
    make_sparse(rows, false, random);
    make_sparse(basis, true, random);
    for (const Model& model : models_of(basis, shape.outputs, random)) check_model(model, rows);
  }
}

Model chi_square_model(const Table& basis, std::size_t outputs, Random& random) {
  const double gamma = 1.0 / static_cast<double>(std::max<std::size_t>(basis.columns, 1));
  return random_model("chi-square", ChiSquareKernel{gamma}, basis, outputs, random);
}

TEST("scores of the chi-square kernel agree with plain loops, for rows with and without zeros") {
  for (const Shape& shape : all_shapes()) {
    for (const bool zeros : {false, true}) {
      const Case where(describe(shape) + (zeros ? ", zeros" : ""));
      Random random(shape.rows + 100 * shape.vectors + shape.features);
      Table rows = random_table(shape.rows, shape.features, random, 0, 3);
      Table basis = random_table(shape.vectors, shape.features, random, 0, 3);
      if (zeros) make_sparse(rows, false, random), make_sparse(basis, true, random);
      const Model model = chi_square_model(basis, shape.outputs, random);
      check_model(model, rows);
      check_model(with_linear_part(model, random), rows);
    }
  }
}

TEST("chi-square scores of a row alone are those of a batch, by 1 and 2 threads") {
  Random random(33);
  Table rows = random_table(1061, 37, random, 0, 3);
  make_sparse(rows, false, random);
  const Model model = chi_square_model(random_table(11, 37, random, 0, 3), 2, random);
  for (const AnyMachine& predictor : machines_of(model)) {
    for (const Form& form : forms_of(rows)) {
      const Case where(predictor.name + ", " + form.name);
      const Answer all = ask(predictor, form.all(rows.rows));
      CHECK(same_bits(ask(predictor, form.all(rows.rows), 2).scores, all.scores));
      Answer parts;
      for (std::size_t i = 0; i < rows.rows; ++i) {
        const Answer part = ask(predictor, form.view(i, 1));
        parts.scores.insert(parts.scores.end(), part.scores.begin(), part.scores.end());
      }
      CHECK(same_bits(parts.scores, all.scores));
    }
  }
}

TEST("a row with a negative entry is a bad row of the chi-square kernel, if that is looked for") {
  Random random(34);
  const Model model = chi_square_model(random_table(9, 5, random, 0, 3), 3, random);
  for (const double negative : {-1e-3, -1.0, -1e30}) {
    Table rows = random_table(40, 5, random, 0, 3);
    rows(33, 4) = rows(35, 0) = negative;
    for (const AnyMachine& predictor : machines_of(model)) {
      for (const Form& form : forms_of(rows)) {
        const Case where(predictor.name + ", " + form.name + ", " + std::to_string(negative));
        CHECK(ask(predictor, form.all(40)).bad == 33);
        const Answer unchecked = ask(predictor, form.all(40), 1, false);
        CHECK(unchecked.bad == -1);
        for (const double score : unchecked.scores) CHECK(std::isfinite(score));
      }
    }
  }
}

// A width for each vector, and no metric, weights of the features, or a map of them.
TEST("scores of adaptive kernels agree with plain loops") {
  for (const Shape& shape : all_shapes()) {
    if (shape.features == 0) continue;
    for (const bool zeros : {false, true}) {
      const Case where(describe(shape) + (zeros ? ", zeros" : ""));
      Random random(shape.rows + 100 * shape.vectors + shape.features);
      Table rows = random_table(std::min<std::size_t>(shape.rows, 70), shape.features, random);
      Table basis = random_table(shape.vectors, shape.features, random);
      if (zeros) make_sparse(rows, false, random), make_sparse(basis, true, random);
      const double size = 1 / std::sqrt(static_cast<double>(shape.features));
      const std::vector<double> widths = random.values<double>(shape.vectors, 0.1, 2);
      const std::vector<double> weights = random.values<double>(shape.features, 0, size);
      const std::vector<double> map = random.values<double>(shape.features * 3, -size, size);
      const std::vector<double> same(shape.features, size), none;
      for (const AdaptiveRbfKernel& kernel :
           {AdaptiveRbfKernel{widths, same, none, 0}, AdaptiveRbfKernel{widths, weights, none, 0},
            AdaptiveRbfKernel{widths, none, map, 3}}) {
        const std::string name = kernel.map.empty() ? "adaptive, weights" : "adaptive, map";
        const Model model = random_model(name, kernel, basis, shape.outputs, random);
        check_model(model, rows);
        check_model(with_linear_part(model, random), rows);
      }
      const std::vector<double> narrow(shape.vectors, size * size);
      check_model(random_model("adaptive", AdaptiveRbfKernel{narrow, none, none, 0}, basis,
                               shape.outputs, random),
                  rows);
    }
  }
}

TEST("a linear part far from the origin does not cancel against the intercepts") {
  constexpr double kFar = 1'000;
  Random random(31);
  const Table rows = random_table(40, 7, random, kFar - 1, kFar + 1);
  const Table basis = random_table(9, 7, random, kFar - 1, kFar + 1);
  Model model = with_linear_part(random_model("rbf", RbfKernel{0.2}, basis, 3, random), random);
  for (std::size_t f = 0; f < 7; ++f) {
    for (std::size_t r = 0; r < 3; ++r) model.intercept[r] -= kFar * model.linear(f, r);
  }
  check_model(model, rows, {dense_form<double>(rows), sparse_form<float>(rows)});
}

TEST("a machine with a linear part does not follow one that learns") {
  Random random(32);
  const Model model = with_linear_part(
      random_model("rbf", RbfKernel{0.2}, random_table(4, 3, random), 2, random), random);
  auto machine = make_machine<double>(model, *instruction_sets().front());
  bool refused = false;
  try {
    std::get<Predictor<double>>(machine.predictor).replace(0, std::vector<double>(3), {});
  } catch (const std::logic_error&) {
    refused = true;
  }
  CHECK(refused);
}

TEST("rows that follow each other without a gap") {
  Random random(11);
  const Table rows = random_table(45, 37, random), basis = random_table(10, 37, random);
  const std::vector<float> same(rows.values.begin(), rows.values.end());
  for (const Model& model : models_of(basis, 3, random)) {
    const Table expected = plain_scores(model, rows);
    for (const AnyMachine& predictor : machines_of(model)) {
      const Case where(predictor.name + ", " + model.name);
      const AnyRows views[] = {contiguous(same.data(), 45, 37),
                               contiguous(rows.values.data(), 45, 37)};
      for (const AnyRows& view : views) {
        check_near_all(ask(predictor, view).scores, expected.values, predictor.tolerance());
      }
    }
  }
}

TEST("no rows at all, from no memory") {
  Random random(12);
  const std::int64_t start = 0;
  for (const Model& model : models_of(random_table(10, 5, random), 3, random)) {
    for (const AnyMachine& predictor : machines_of(model)) {
      const AnyRows views[] = {Matrix<const float>{nullptr, 0, 5, 5},
                               Matrix<const double>{nullptr, 0, 5, 5},
                               SparseMatrix<float>{nullptr, nullptr, &start, 0, 5},
                               SparseMatrix<double>{nullptr, nullptr, &start, 0, 5}};
      for (const AnyRows& view : views) {
        for (const int n_threads : {1, 2}) CHECK(ask(predictor, view, n_threads).bad == -1);
      }
    }
  }
}

TEST("a predictor knows its features, outputs and work") {
  Random random(13);
  for (const Model& model : models_of(random_table(10, 5, random), 3, random)) {
    for (const AnyMachine& predictor : machines_of(model)) {
      std::visit(
          [&](const auto& each) {
            CHECK(each.features() == model.features());
            CHECK(each.outputs() == 3);
            const std::size_t linear = !model.kernel || model.linear.rows > 0 ? 5 : 0;
            const std::size_t vectors = model.kernel ? 10 : 0, padded = model.kernel ? 16 : 0;
            CHECK(each.products_per_row() >= vectors * (5 + 3) + linear * 3);
            CHECK(each.products_per_row() <= padded * (5 + 16) + linear * 16);
          },
          predictor.predictor);
    }
  }
}

// ---- the same to the bit

TEST("answers are the same to the bit for 1 and 2 threads") {
  Random random(14);
  Table rows = random_table(1061, 37, random), basis = random_table(11, 37, random);
  make_sparse(rows, false, random);
  make_sparse(basis, true, random);
  const std::vector<Form> forms = forms_of(rows);
  for (const Model& model : models_of(basis, 3, random)) {
    for (const AnyMachine& predictor : machines_of(model)) {
      for (const Form& form : forms) {
        const Case where(predictor.name + ", " + model.name + ", " + form.name);
        const Answer one = ask(predictor, form.all(rows.rows), 1);
        const Answer two = ask(predictor, form.all(rows.rows), 2);
        CHECK(same_bits(two.scores, one.scores));
        CHECK(two.best == one.best);
      }
    }
  }
}

TEST("far more threads than there are tasks") {
  Random random(27);
  const Table rows = random_table(3000, 5, random);
  const Model model = models_of(random_table(9, 5, random), 3, random).front();
  const AnyMachine predictor = make_machine<float>(model, *instruction_sets().front());
  const Form form = dense_form<float>(rows);
  const Answer one = ask(predictor, form.all(rows.rows), 1);
  CHECK(same_bits(ask(predictor, form.all(rows.rows), 100'000).scores, one.scores));
}

// A tile of dense rows would be far larger than they are.
TEST("room is taken only for rows that come to be dense") {
  constexpr std::size_t features = 40'000, count = 20;
  Random random(29);
  Table basis(5, features), rows(count, features);
  for (Table* table : {&basis, &rows}) {
    for (std::size_t i = 0; i < table->rows; ++i) (*table)(i, random.below(features)) = 0.5;
  }
  const Form sparse = sparse_form<double>(rows), dense = dense_form<double>(rows);
  const AnyKernel kernels[] = {RbfKernel{1.0}, LinearKernel{}, LaplacianKernel{1.0},
                               ChiSquareKernel{1.0}};
  for (const AnyKernel& kernel : kernels) {
    const PreparedBasis<double> prepared(
        kernel, contiguous<const double>(basis.values.data(), basis.rows, features),
        vector_code<double>());
    CHECK(prepared.by_entries() == (std::holds_alternative<RbfKernel>(kernel) ||
                                    std::holds_alternative<LinearKernel>(kernel)));
    std::vector<double> values(count * prepared.columns());
    const auto room = [&](const AnyRows& view) {
      Scratch<double> scratch;
      std::visit(
          [&](const auto& each) { prepared.values(each, 0, count, false, scratch, values.data()); },
          view);
      return scratch.rows.size();
    };
    CHECK(room(sparse.all(count)) == (prepared.by_entries() ? 0 : 8 * features));
    CHECK(room(dense.all(count)) == 8 * features);
  }
}

// Sparse ones that are made dense among them: tiles of wide rows have fewer.
TEST("wide rows, of few entries and of many, are the same alone and together") {
  constexpr std::size_t features = 40'000;
  Random random(28);
  Table rows(19, features), basis = random_table(3, features, random);
  for (std::size_t i = 0; i < rows.rows; ++i) {
    for (std::size_t f = 0; f < features; f += i % 3 == 0 ? 1 : 97) {
      rows(i, f) = static_cast<float>(random.uniform(-1, 1));
    }
  }
  const std::vector<Form> forms = forms_of(rows);
  for (const Model& model : models_of(basis, 2, random)) {
    const Table expected = plain_scores(model, rows);
    for (const bool single : {true, false}) {
      const InstructionSet& set = *instruction_sets().front();
      const AnyMachine predictor =
          single ? make_machine<float>(model, set) : make_machine<double>(model, set);
      for (const Form& form : forms) {
        const Case where(predictor.name + ", " + model.name + ", " + form.name);
        const Answer all = ask(predictor, form.all(rows.rows));
        check_near_all(all.scores, expected.values, predictor.tolerance());
        Answer parts;
        for (std::size_t i = 0; i < rows.rows; ++i) {
          const Answer part = ask(predictor, form.view(i, 1));
          parts.scores.insert(parts.scores.end(), part.scores.begin(), part.scores.end());
        }
        CHECK(same_bits(parts.scores, all.scores));
      }
    }
  }
}

TEST("a row alone, or among others, has the same scores to the bit as in a batch") {
  const Shape shapes[] = {{43, 11, 1, 5}, {43, 26, 3, 37}, {43, 3, 17, 65}, {43, 49, 9, 33}};
  for (const Shape& shape : shapes) {
    for (const bool zeros : {false, true}) {
      const Case where(describe(shape) + (zeros ? ", zeros" : ""));
      Random random(15);
      Table rows = random_table(shape.rows, shape.features, random);
      Table basis = random_table(shape.vectors, shape.features, random);
      if (zeros) make_sparse(rows, false, random), make_sparse(basis, true, random);
      for (std::size_t f = 0; f < shape.features; ++f) rows(20, f) *= 8, rows(41, f) *= 1e6;
      const std::vector<Form> forms = forms_of(rows);
      for (const Model& model : models_of(basis, shape.outputs, random)) {
        for (const AnyMachine& predictor : machines_of(model)) {
          for (const Form& form : forms) {
            const Case which(predictor.name + ", " + model.name + ", " + form.name);
            const Answer batch = ask(predictor, form.all(rows.rows));
            for (const std::size_t together : {1, 3, 6, 13}) {
              Answer parts;
              for (std::size_t first = 0; first < rows.rows; first += together) {
                const std::size_t count = std::min(together, rows.rows - first);
                const Answer part = ask(predictor, form.view(first, count));
                parts.scores.insert(parts.scores.end(), part.scores.begin(), part.scores.end());
                parts.best.insert(parts.best.end(), part.best.begin(), part.best.end());
              }
              CHECK(same_bits(parts.scores, batch.scores));
              CHECK(parts.best == batch.best);
            }
          }
        }
      }
    }
  }
}

// ---- best

TEST("of equal scores the first is the best, at any place among any number") {
  for (const std::size_t outputs : kOutputs) {
    if (outputs == 1) continue;
    for (std::size_t j = 0; j < outputs; ++j) {
      const Case where(std::to_string(j) + " of " + std::to_string(outputs));
      Model model{"linear map", std::nullopt, {}, Table(5, outputs, 0.5), {}};
      model.intercept.assign(outputs, -3.0);
      for (const std::size_t same : {j, (j + outputs) / 2, outputs - 1}) model.intercept[same] = -2;
      const Table rows(7, 5, 0.25);
      for (const AnyMachine& predictor : machines_of(model)) {
        const Answer answer = ask(predictor, dense_form<float>(rows).all(7));
        CHECK(answer.best == std::vector<std::int64_t>(7, static_cast<std::int64_t>(j)));
      }
    }
  }
}

TEST("best is the first largest of scores with many ties") {
  Random random(16);
  Table rows(300, 4);
  for (double& value : rows.values) value = static_cast<double>(random.below(3)) - 1;
  for (const std::size_t outputs : kOutputs) {
    Model model{"linear map", std::nullopt, {}, Table(4, outputs), {}};
    for (double& value : model.coef.values) value = static_cast<double>(random.below(3)) - 1;
    model.intercept.assign(outputs, 0.0);
    const std::vector<std::int64_t> expected =
        first_largest(plain_scores(model, rows).values, outputs);
    for (const AnyMachine& predictor : machines_of(model)) {
      for (const Form& form : forms_of(rows)) {
        const Case where(predictor.name + ", " + form.name + ", " + std::to_string(outputs));
        CHECK(ask(predictor, form.all(rows.rows)).best == expected);
      }
    }
  }
}

TEST("a single score is chosen if it is above 0") {
  const auto smallest = static_cast<double>(std::numeric_limits<float>::denorm_min());
  const std::pair<double, std::int64_t> cases[] = {{0.0, 0},       {-0.0, 0}, {smallest, 1},
                                                   {-smallest, 0}, {1.0, 1},  {-1.0, 0},
                                                   {1e30, 1},      {-1e30, 0}};
  const Table rows(9, 3, 1.0);
  for (const auto& [score, expected] : cases) {
    const Case where("score " + std::to_string(score));
    Model linear{"linear map", std::nullopt, {}, Table(3, 1), {score}};
    Model rbf{"rbf", RbfKernel{1.0}, Table(2, 3), Table(2, 1), {score}};
    for (const Model& model : {linear, rbf}) {
      for (const AnyMachine& predictor : machines_of(model)) {
        CHECK(ask(predictor, dense_form<double>(rows).all(9)).best ==
              std::vector<std::int64_t>(9, expected));
      }
    }
  }
}

TEST("the best of scores in single precision is the first that is largest once rounded") {
  const double close = 1.0 + 1e-12, small = 1e-60;  // 1 and 0 in single precision
  const std::pair<std::vector<double>, std::pair<std::int64_t, std::int64_t>> cases[] = {
      {{0.0, 1.0, close}, {1, 2}},    {{close, 1.0, 0.0}, {0, 0}}, {{-1.0, -close, -2.0}, {0, 0}},
      {{-close, -1.0, -2.0}, {0, 1}}, {{small}, {0, 1}},           {{-small}, {0, 0}}};
  const Table rows(70, 3, 1.0);
  const std::vector<std::int64_t> none(rows.rows, -1);
  for (const auto& [intercept, expected] : cases) {
    const std::size_t outputs = intercept.size();
    const Model linear{"linear map", std::nullopt, {}, Table(3, outputs), intercept};
    const Model rbf{"rbf", RbfKernel{1.0}, Table(2, 3), Table(2, outputs), intercept};
    for (const Model& model : {linear, rbf}) {
      for (const AnyMachine& predictor : machines_of(model)) {
        const Case where(predictor.name + ", " + model.name);
        std::visit(
            [&](const auto& each) {
              for (const bool single : {true, false}) {
                std::vector<std::int64_t> best = none;
                each.best(contiguous(rows.values.data(), rows.rows, rows.columns), best.data(), 2,
                          true, single);
                const bool rounded = single || predictor.single_precision();
                CHECK(best == std::vector<std::int64_t>(
                                  rows.rows, rounded ? expected.first : expected.second));
              }
            },
            predictor.predictor);
      }
    }
  }
}

TEST("best is one of the outputs even where finite rows have scores that are no numbers") {
  for (const std::size_t outputs : {2, 3, 5, 17}) {
    Table coef(2, outputs);
    for (std::size_t r = 0; r < outputs; ++r) coef(0, r) = 1e10, coef(1, r) = -1e10;
    const Model linear{"linear map", std::nullopt, {}, coef, std::vector<double>(outputs, 0.0)};
    const Model polynomial{"polynomial", PolynomialKernel{1.0, 0.0, 3}, Table(2, 2, 1.0), coef,
                           std::vector<double>(outputs, 0.0)};
    const Table rows(3, 2, 1e37);
    for (const Model& model : {linear, polynomial}) {
      for (const AnyMachine& predictor : machines_of(model)) {
        const Case where(predictor.name + ", " + model.name + ", " + std::to_string(outputs));
        const Answer answer = ask(predictor, dense_form<float>(rows).all(3));
        CHECK(answer.bad == -1);
        for (const std::int64_t best : answer.best) {
          CHECK(best >= 0 && best < static_cast<std::int64_t>(outputs));
        }
      }
    }
  }
}

// ---- numbers that are not finite

struct BadNumber {
  std::string name;
  double value;
  bool in_double;  // whether the double precision cannot have it either
};

const BadNumber kBadNumbers[] = {
    {"NaN", std::numeric_limits<double>::quiet_NaN(), true},
    {"infinity", std::numeric_limits<double>::infinity(), true},
    {"minus infinity", -std::numeric_limits<double>::infinity(), true},
    {"1e300", 1e300, false},
    {"-1e300", -1e300, false},
};

// Bad numbers are in the first feature of even rows and in the last one of odd rows.
Table with_bad_rows(Table rows, const std::vector<std::size_t>& places, double value) {
  for (const std::size_t i : places) rows(i, i % 2 == 0 ? 0 : rows.columns - 1) = value;
  return rows;
}

TEST("the first row with a number that is not finite is found, if it is looked for") {
  // The last row of a tile, a tile of one row, several in a tile; the first of each is the
  // smallest.
  const std::vector<std::vector<std::size_t>> places = {{0}, {31}, {32}, {5, 7, 17, 32}};
  for (const std::size_t features : {1, 5, 40}) {
    for (const bool zeros : {false, true}) {
      Random random(17);
      Table good = random_table(33, features, random), basis = random_table(9, features, random);
      if (zeros) make_sparse(good, false, random), make_sparse(basis, true, random);
      const std::vector<Model> models = models_of(basis, 3, random);
      for (const Model& model : models) {
        const std::vector<AnyMachine> predictors = machines_of(model);
        for (const BadNumber& bad : kBadNumbers) {
          for (const std::vector<std::size_t>& each : places) {
            const Table rows = with_bad_rows(good, each, bad.value);
            const auto first = static_cast<std::ptrdiff_t>(each.front());
            for (const Form& form : bad.in_double ? forms_of(rows) : double_forms_of(rows)) {
              for (const AnyMachine& predictor : predictors) {
                const Case where(std::to_string(features) + " features, " + predictor.name + ", " +
                                 model.name + ", " + form.name + ", " + bad.name + " at " +
                                 std::to_string(first));
                const bool found = bad.in_double || predictor.single_precision();
                CHECK(ask(predictor, form.all(33)).bad == (found ? first : -1));
                if (first == 0) CHECK(ask(predictor, form.all(33), 1, false).bad == -1);
              }
            }
          }
        }
      }
    }
  }
}

TEST("the first bad row is found whichever thread meets it") {
  Random random(18);
  Table good = random_table(2049, 40, random), basis = random_table(3, 40, random);
  make_sparse(good, false, random);
  make_sparse(basis, true, random);
  for (const Model& model : models_of(basis, 2, random)) {
    const AnyMachine predictor = make_machine<float>(model, *instruction_sets().front());
    const std::vector<std::vector<std::size_t>> places = {{2048}, {1023, 1500, 2048}, {1030, 1031}};
    for (const std::vector<std::size_t>& each : places) {
      const Table rows = with_bad_rows(good, each, 1e300);
      for (const Form& form : double_forms_of(rows)) {
        const Case where(model.name + ", " + form.name);
        CHECK(ask(predictor, form.all(2049), 2).bad == static_cast<std::ptrdiff_t>(each.front()));
      }
    }
  }
}

TEST("a bad row leaves the scores of the others as they are") {
  for (const std::size_t features : {5, 40}) {
    Random random(19);
    const Table good = random_table(45, features, random);
    Table rows = good;
    rows(9, 2) = std::numeric_limits<double>::quiet_NaN();
    for (const Model& model : models_of(random_table(9, features, random), 3, random)) {
      for (const AnyMachine& predictor : machines_of(model)) {
        const std::vector<Form> before = forms_of(good), after = forms_of(rows);
        for (std::size_t k = 0; k < after.size(); ++k) {
          const Case where(predictor.name + ", " + model.name + ", " + after[k].name);
          std::vector<double> expected = ask(predictor, before[k].all(45)).scores;
          std::vector<double> got = ask(predictor, after[k].all(45)).scores;
          for (std::size_t r = 0; r < 3; ++r) expected[9 * 3 + r] = got[9 * 3 + r] = 0.0;
          CHECK(same_bits(got, expected));
        }
      }
    }
  }
}

TEST("finite rows whose squares are no numbers are no bad rows, and have kernel values of 0") {
  for (const std::size_t features : {1, 5, 40, 100}) {
    for (const bool zeros : {false, true}) {
      for (const double huge : {1e18, -1e18, 3e19, 1e30, 1e37}) {
        const Case where(std::to_string(features) + " features" + (zeros ? ", zeros" : "") + ", " +
                         std::to_string(huge));
        Random random(20);
        Table rows = random_table(33, features, random), basis = random_table(9, features, random);
        if (zeros) make_sparse(rows, false, random), make_sparse(basis, true, random);
        for (const std::size_t i : {0, 5, 6, 32}) rows(i, features - 1) = huge;
        for (const Model& model : distance_models(0.5, basis, 3, random)) check_model(model, rows);
        for (std::size_t f = 0; f < features; ++f) rows(6, f) = f % 2 == 0 ? huge : -huge;
        for (const Model& model : distance_models(0.5, basis, 3, random)) check_model(model, rows);
      }
    }
  }
}

TEST("double precision rows of 1e200 are no bad rows of a predictor of that precision") {
  Random random(21);
  for (const std::size_t features : {5, 40}) {
    Table rows = random_table(33, features, random);
    const Table basis = random_table(9, features, random);
    for (std::size_t f = 0; f < features; ++f) rows(5, f) = 1e200, rows(32, f) = -1e200;
    for (const Model& model : distance_models(0.5, basis, 3, random)) {
      const Table expected = plain_scores(model, rows);
      for (const AnyMachine& predictor : machines_of(model)) {
        if (predictor.single_precision()) continue;
        for (const Form& form : double_forms_of(rows)) {
          const Case where(predictor.name + ", " + model.name + ", " + form.name);
          const Answer answer = ask(predictor, form.all(rows.rows));
          CHECK(answer.bad == -1);
          check_near_all(answer.scores, expected.values, predictor.tolerance());
        }
      }
    }
  }
}

// ---- digits

TEST("a common offset of the data by 1e4 loses no digits of rows in double precision") {
  for (const std::size_t features : {1, 5, 31, 40, 100}) {
    for (const std::size_t vectors : {1, 2, 20}) {
      const Case where(std::to_string(features) + " features, " + std::to_string(vectors) +
                       " vectors");
      Random random(22);
      Table rows(45, features), basis(vectors, features);
      for (Table* table : {&rows, &basis}) {
        for (double& value : table->values) value = 1e4 + random.uniform(-1, 1);
      }
      const double gamma = 1 / std::sqrt(static_cast<double>(features));
      for (const Model& model : distance_models(gamma, basis, 3, random)) {
        check_model(model, rows, double_forms_of(rows));
      }
    }
  }
}

TEST("rows at all distances from the basis, many features") {
  for (const std::size_t features : {33, 40, 65, 100}) {
    for (const bool zeros : {false, true}) {
      const Case where(std::to_string(features) + " features" + (zeros ? ", zeros" : ""));
      Random random(23);
      Table basis = random_table(20, features, random, -1, 1);
      if (zeros) make_sparse(basis, true, random);
      const double gamma = 2.5 / std::sqrt(static_cast<double>(features));
      const double factors[] = {0.0, 0.5, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 3.0, 10.0, 1e3, 1e6};
      Table rows(20 * std::size(factors), features);
      for (std::size_t i = 0; i < rows.rows; ++i) {
        for (std::size_t f = 0; f < features; ++f) {
          const double value = basis(i % 20, f) * factors[i / 20] * random.uniform(0.9, 1.1);
          rows(i, f) = static_cast<float>(value);
        }
      }
      const Model model = random_model("rbf", RbfKernel{gamma * gamma}, basis, 3, random);
      check_model(model, rows);
    }
  }
}

// On a grid, so that single precision has the coordinates, moved and scaled, without rounding.
TEST("rows near basis vectors that are far apart, many features") {
  for (const double far : {8.0, 64.0, 1024.0}) {
    for (const std::size_t features : {33, 100}) {
      const Case where(std::to_string(features) + " features, " + std::to_string(far) + " apart");
      Random random(24);
      Table rows(63, features), basis(21, features);
      for (Table* table : {&rows, &basis}) {
        for (std::size_t i = 0; i < table->rows; ++i) {
          for (std::size_t f = 0; f < features; ++f) {
            (*table)(i, f) = far * (static_cast<double>(i % 3) - 1) +
                             static_cast<double>(random.below(129)) / 256 - 0.25;
          }
        }
      }
      for (const Model& model : distance_models(0.25, basis, 3, random)) check_model(model, rows);
    }
  }
}

// Just below the norms from which differences are taken: products lose the most.
TEST("what distances by products lose of a kernel value is within what is tolerated") {
  constexpr std::size_t features = 40;
  Random random(25);
  for (const bool single : {true, false}) {
    const double norm = single ? 5.2 : 5.6e4, tolerated = single ? 5e-6 : 1e-10;
    Table basis(20, features), rows(60, features), coef(20, 1);
    for (std::size_t j = 0; j < basis.rows; ++j) {
      for (std::size_t f = 0; f < features; ++f) {
        const double sign = random.below(2) == 0 ? -1 : 1;
        const double size = std::sqrt(norm / features) * random.uniform(0.97, 0.999);
        basis(j, f) = j < 11 ? 0.0 : static_cast<float>(sign * size);
      }
      coef(j, 0) = 1.0;
    }
    for (std::size_t i = 0; i < rows.rows; ++i) {
      for (std::size_t f = 0; f < features; ++f) {
        rows(i, f) = static_cast<float>(basis(i % 20, f) + random.uniform(-0.1, 0.1));
      }
    }
    const Model model{"rbf", RbfKernel{1.0}, basis, coef, {0.0}};
    const Table expected = plain_scores(model, rows);
    for (const AnyMachine& predictor : machines_of(model)) {
      if (predictor.single_precision() != single) continue;
      for (const Form& form : forms_of(rows)) {
        const Case where(predictor.name + ", " + form.name);
        check_near_all(ask(predictor, form.all(rows.rows)).scores, expected.values, tolerated);
      }
    }
  }
}

TEST("rows of few entries with an origin that is not zero in some features") {
  constexpr std::size_t features = 120;
  Random random(26);
  Table basis(15, features), rows(40, features);
  for (std::size_t j = 0; j < basis.rows; ++j) {
    for (const std::size_t f : {0, 7, 50, 119}) basis(j, f) = random.uniform(2, 3);
    basis(j, 10 + j) = random.uniform(-1, 1);
  }
  // Before, at, between and after the features of the origin; up to and beyond a quarter of all.
  for (std::size_t i = 0; i < rows.rows; ++i) {
    const std::size_t entries = i % 10 == 9 ? 26 + i / 10 : i % 10;
    for (std::size_t k = 0; k < entries; ++k)
      rows(i, random.below(features)) = random.uniform(-1, 1);
    if (i % 3 == 0) rows(i, 0) = random.uniform(2, 3);
    if (i % 3 == 1) rows(i, 7) = rows(i, 119) = random.uniform(2, 3);
    if (i % 5 == 2) rows(i, 118) = random.uniform(2, 3);
  }
  for (Table* table : {&basis, &rows}) {
    for (double& value : table->values) value = static_cast<float>(value);
  }
  for (const Model& model : models_of(basis, 3, random)) check_model(model, rows);
  for (const Model& model : distance_models(0.3, basis, 3, random)) check_model(model, rows);
}

}  // namespace
}  // namespace widemargin::tests

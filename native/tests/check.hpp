// A test harness on a page: TEST("what holds") { CHECK(...); CHECK_NEAR(...); }. Tests register
// themselves; main.cpp runs them. Checks belong to the main thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace widemargin::tests {

struct Test {
  const char* name;
  void (*body)();
};

inline std::vector<Test>& all_tests() {
  static std::vector<Test> tests;
  return tests;
}

inline bool add_test(const char* name, void (*body)()) {
  all_tests().push_back({name, body});
  return true;
}

struct RunningTest {
  const char* name = "";
  std::vector<std::string> cases;  // which of the cases that a test loops over, outermost first
  std::size_t failures = 0;
};

inline RunningTest& running_test() {
  static RunningTest running;
  return running;
}

// Names a case for as long as it lives, so that a failure says where in a loop it happened.
struct Case {
  explicit Case(std::string name) { running_test().cases.push_back(std::move(name)); }
  ~Case() { running_test().cases.pop_back(); }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
};

inline void report_failure(const char* file, int line, const std::string& what) {
  constexpr std::size_t kShown = 10;  // of one test: a broken loop fails everywhere in it
  RunningTest& running = running_test();
  if (++running.failures > kShown) return;
  std::cerr << file << ":" << line << ": " << running.name;
  for (const std::string& part : running.cases) std::cerr << ", " << part;
  std::cerr << ": " << what << (running.failures == kShown ? " (further ones not shown)\n" : "\n");
}

// Written so that a NaN on any side fails.
inline void check_near(const char* file, int line, const char* text, double got, double expected,
                       double tolerance) {
  if (got == expected || std::fabs(got - expected) <= tolerance) return;
  std::ostringstream what;
  what << std::setprecision(9) << text << " is " << got << ", expected " << expected << "; off by "
       << std::fabs(got - expected) << ", more than " << tolerance;
  report_failure(file, line, what.str());
}

}  // namespace widemargin::tests

#define WIDEMARGIN_JOIN_NOW(left, right) left##right
#define WIDEMARGIN_JOIN(left, right) WIDEMARGIN_JOIN_NOW(left, right)
#define TEST(name)                                                                    \
  static void WIDEMARGIN_JOIN(test_at_line_, __LINE__)();                             \
  [[maybe_unused]] static const bool WIDEMARGIN_JOIN(registered_at_line_, __LINE__) = \
      widemargin::tests::add_test(name, WIDEMARGIN_JOIN(test_at_line_, __LINE__));    \
  static void WIDEMARGIN_JOIN(test_at_line_, __LINE__)()
#define CHECK(...) \
  ((__VA_ARGS__)   \
       ? void()    \
       : widemargin::tests::report_failure(__FILE__, __LINE__, #__VA_ARGS__ " is false"))
#define CHECK_NEAR(got, expected, tolerance)                                        \
  widemargin::tests::check_near(__FILE__, __LINE__, #got, static_cast<double>(got), \
                                static_cast<double>(expected), static_cast<double>(tolerance))

// Runs every test and says how many passed. The exit code is non-zero if any failed, or if there
// were none.
#include <exception>
#include <iostream>

#include "check.hpp"

int main() {
  using namespace widemargin::tests;
  std::size_t passed = 0, failed = 0;
  for (const Test& test : all_tests()) {
    RunningTest& running = running_test();
    running = {test.name, {}, 0};
    try {
      test.body();
    } catch (const std::exception& error) {
      report_failure(__FILE__, __LINE__, std::string("stopped by an exception: ") + error.what());
    } catch (...) {
      report_failure(__FILE__, __LINE__, "stopped by an exception of unknown type");
    }
    ++(running.failures == 0 ? passed : failed);
  }
  std::cout << passed << " passed, " << failed << " failed" << std::endl;
  return failed == 0 && passed > 0 ? 0 : 1;
}

// Threads that help: every index is done once, failures come back, callers do not disturb each
// other, and a process that is forked off has threads of its own.
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "widemargin/parallel.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace widemargin::tests {
namespace {

// How often each of `count` indices was done.
std::vector<int> times_done(std::size_t count, int n_threads) {
  std::vector<std::atomic<int>> done(count);
  for_each_index(count, n_threads, [&](std::size_t index) { ++done[index]; });
  return {done.begin(), done.end()};
}

bool is_done_once(std::size_t count, int n_threads) {
  return times_done(count, n_threads) == std::vector<int>(count, 1);
}

TEST("every index is done once, by any number of threads") {
  for (int n_threads : {-1, 0, 1, 2, 3, 8, 5000}) {
    for (std::size_t count : {0, 1, 2, 17, 1000}) CHECK(is_done_once(count, n_threads));
  }
}

TEST("each thread has a state, and all of them together have seen every index") {
  static std::atomic<std::size_t> total;
  struct Sum {
    std::size_t own = 0;
    ~Sum() { total += own; }
  };
  total = 0;
  for_each_index_with<Sum>(1000, 4, [](std::size_t index, Sum& sum) { sum.own += index; });
  CHECK(total == 999 * 1000 / 2);
}

TEST("a failure of a task comes back to the caller, and the next work is done") {
  for (int n_threads : {1, 4}) {
    bool came_back = false;
    try {
      for_each_index(100, n_threads, [](std::size_t index) {
        if (index == 50) throw std::runtime_error("fifty");
      });
    } catch (const std::runtime_error& error) {
      came_back = std::string(error.what()) == "fifty";
    }
    CHECK(came_back);
    CHECK(is_done_once(100, n_threads));
  }
}

TEST("work within work is done") {
  std::atomic<int> done{0};
  for_each_index(8, 4, [&](std::size_t) { for_each_index(8, 4, [&](std::size_t) { ++done; }); });
  CHECK(done == 64);
}

TEST("several callers at a time") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) wrong += is_done_once(20, 3) ? 0 : 1;
    });
  }
  for (std::thread& each : callers) each.join();
  CHECK(wrong == 0);
}

#if defined(__unix__) || defined(__APPLE__)
TEST("a process that is forked off works together, too") {
  CHECK(is_done_once(100, 4));
  const pid_t child = fork();
  if (child == 0) _exit(is_done_once(100, 4) ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

}  // namespace
}  // namespace widemargin::tests

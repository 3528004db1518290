// Threads over rows, with results that do not depend on how many threads there are: the rows are
// cut into a number of chunks that follows from the row count alone, and whoever sums keeps one
// accumulator a chunk and adds them in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>

#include <atomic>
#endif

namespace widemargin {

constexpr std::size_t kRowsPerTile =
    256;  // a tile of features and scores stays in the second-level cache
constexpr std::size_t kMaxChunks = 16;
constexpr std::size_t kFewRows = 1024;      // too few to pay for waking threads
constexpr std::size_t kMostThreads = 1024;  // systems refuse more, and OpenMP then ends the program

inline std::size_t chunk_count(std::size_t rows) {
  return std::clamp<std::size_t>((rows + kRowsPerTile - 1) / kRowsPerTile, 1, kMaxChunks);
}

inline bool has_threads() {
#ifdef _OPENMP
  return true;
#else
  return false;
#endif
}

// Whether threads can be used here. A process that is forked off one which has used them has none
// of them, but OpenMP would wait for them for ever; so it computes alone.
inline bool threads_are_alive() {
#if defined(__unix__) || defined(__APPLE__)
  static std::atomic<pid_t> owner{0};  // of the threads: the process that was the first to use them
  pid_t none = 0;
  const pid_t here = getpid();
  return owner.compare_exchange_strong(none, here) || none == here;
#else
  return true;
#endif
}

// How many threads are worth waking for so many multiply-adds, where one is worth it for `each`. A
// thread that is woken for less costs more than it does, and far more on cores that are busy.
inline int threads_for(std::size_t products, std::size_t each, int n_threads) {
  const std::size_t worth = products / each + 1;
  return static_cast<int>(std::min(worth, static_cast<std::size_t>(std::max(n_threads, 1))));
}

// Calls task(index, state) for each index below `count`, with a state for each thread that lasts
// over its tasks. An exception of a task is rethrown once all threads have stopped.
template <class State, class Task>
void for_each_index_with(std::size_t count, int n_threads, const Task& task) {
  std::exception_ptr failure;
#ifdef _OPENMP
  if (n_threads > 1 && count > 1 && threads_are_alive()) {
    // A thread without a task would still be made.
    const auto most = static_cast<int>(std::min(count, kMostThreads));
#pragma omp parallel num_threads(std::min(n_threads, most))
    {
      State state;
#pragma omp for schedule(dynamic, 1)
      for (std::ptrdiff_t index = 0; index < static_cast<std::ptrdiff_t>(count); ++index) {
        try {
          task(static_cast<std::size_t>(index), state);
        } catch (...) {
#pragma omp critical
          failure = std::current_exception();
        }
      }
    }
    if (failure) std::rethrow_exception(failure);
    return;
  }
#endif
  (void)n_threads;
  State state;
  for (std::size_t index = 0; index < count; ++index) task(index, state);
}

// Calls task(index) for each index below `count`.
template <class Task>
void for_each_index(std::size_t count, int n_threads, const Task& task) {
  struct None {};
  for_each_index_with<None>(count, n_threads, [&](std::size_t index, None&) { task(index); });
}

// Calls task(chunk, begin, end) for each chunk of [0, rows).
template <class Task>
void for_each_chunk(std::size_t rows, int n_threads, const Task& task) {
  const std::size_t chunks = chunk_count(rows);
  for_each_index(chunks, rows <= kFewRows ? 1 : n_threads, [&](std::size_t chunk) {
    task(chunk, rows * chunk / chunks, rows * (chunk + 1) / chunks);
  });
}

}  // namespace widemargin

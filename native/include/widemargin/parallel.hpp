// Threads over rows, with results that do not depend on how many threads there are: the rows are
// cut into a number of chunks that follows from the row count alone, and whoever sums keeps one
// accumulator a chunk and adds them in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>

#include "widemargin/crew.hpp"

namespace widemargin {

constexpr std::size_t kRowsPerTile =
    256;  // a tile of features and scores stays in the second-level cache
constexpr std::size_t kMaxChunks = 16;
constexpr std::size_t kFewRows = 1024;  // too few to pay for waking threads

inline std::size_t chunk_count(std::size_t rows) {
  return std::clamp<std::size_t>((rows + kRowsPerTile - 1) / kRowsPerTile, 1, kMaxChunks);
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
  struct Shared {
    const Task& task;
    const std::size_t count;
    std::atomic<std::size_t> next{0};
    std::mutex mutex{};
    std::exception_ptr failure{};

    static void work(void* context) { static_cast<Shared*>(context)->take_indices(); }

    void take_indices() {
      try {
        State state;
        for (std::size_t index; (index = next++) < count;) task(index, state);
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
        next = count;
      }
    }
  };
  Shared shared{task, count};
  const std::size_t threads = std::min(count, static_cast<std::size_t>(std::max(n_threads, 1)));
  if (threads > 1) {
    Crew::here().work_together(static_cast<int>(threads) - 1, Shared::work, &shared);
  } else {
    shared.take_indices();
  }
  if (shared.failure) std::rethrow_exception(shared.failure);
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

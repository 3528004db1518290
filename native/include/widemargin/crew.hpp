// Threads that help, and sleep while there is nothing to do.
//
// Whoever has work posts it, does it too, and does all of it if nobody comes: a helper that other
// programs keep from a core delays nothing but the piece that it has begun. So a machine that is
// busy, or a container that is granted less than a core a thread, costs little; threads that wait
// by spinning, as those of OpenMP do, would take the core from the very ones that they wait for.
//
// A process that is forked off has none of the threads. It gets a crew of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace widemargin {

class Crew {
 public:
  // That of this process.
  static Crew& here();

  // Calls work(context) on this thread and, as they come, on up to `helpers` others, and returns
  // once all of them have. The work is to divide itself among those who are there, and not to
  // throw. Within work that is done together, nobody else is called.
  void work_together(int helpers, void (*work)(void*), void* context);

  Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

 private:
  struct Job {
    void (*work)(void*);
    void* context;
    int wanted;                 // helpers that may still come
    std::atomic<int> inside{};  // those that are at it
  };

  void hire();
  void help();
  Job* take();

  std::mutex mutex_;
  std::condition_variable posted_, finished_;
  std::vector<Job*> jobs_;             // which want helpers
  std::atomic<unsigned> n_posted_{0};  // all so far, for those who look before they sleep
  int hired_ = 0, idle_ = 0;
};

}  // namespace widemargin

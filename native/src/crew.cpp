#include "widemargin/crew.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define WIDEMARGIN_FORKS
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace widemargin {
namespace {

constexpr int kMostHelpers = 1023;  // systems refuse more
// How long one looks for what is about to come before one sleeps: to be woken may take as long.
constexpr std::chrono::microseconds kPatience{200};

thread_local bool is_at_work = false;

void breathe() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#endif
}

// Looks for a while whether something has come; whether it has.
template <class HasCome>
bool look_for(const HasCome& has_come) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int look = 0; look < 32; ++look) {
      if (has_come()) return true;
      breathe();
    }
  } while (std::chrono::steady_clock::now() < end);
  return has_come();
}

// Never deleted: helpers may be asleep in it when the program ends, and a lock may have been taken
// by a thread that a fork has not brought along.
std::atomic<Crew*> crew_of_process{nullptr};

}  // namespace

Crew& Crew::here() {
  if (Crew* const known = crew_of_process.load()) return *known;
  Crew *expected = nullptr, *const made = new Crew;
  if (!crew_of_process.compare_exchange_strong(expected, made)) {
    delete made;
    return *expected;
  }
#ifdef WIDEMARGIN_FORKS
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] {
      crew_of_process = nullptr;
      is_at_work = false;
    });
  });
#endif
  return *made;
}

void Crew::work_together(int helpers, void (*work)(void*), void* context) {
  if (helpers < 1 || is_at_work) {
    work(context);
    return;
  }
  helpers = std::min(helpers, kMostHelpers);
  Job job{work, context, helpers};
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(&job);
    hire();
    ++n_posted_;
  }
  if (helpers == 1) {
    posted_.notify_one();
  } else {
    posted_.notify_all();
  }
  is_at_work = true;
  work(context);
  is_at_work = false;
  {
    const std::lock_guard lock(mutex_);
    std::erase(jobs_, &job);  // nobody comes any more
  }
  if (look_for([&] { return job.inside == 0; })) {
    // The last helper may hold the lock still, to say that it has left.
    const std::lock_guard lock(mutex_);
    return;
  }
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return job.inside == 0; });
}

// Sees to it that there are as many threads as helpers are wanted, as far as the system allows.
void Crew::hire() {
  int missing = -idle_;
  for (const Job* job : jobs_) missing += job->wanted;
  for (; missing > 0 && hired_ < kMostHelpers; --missing) {
    try {
      std::thread([this] { help(); }).detach();
    } catch (const std::system_error&) {
      return;  // there will be fewer
    }
    ++hired_;
    ++idle_;
  }
}

// The oldest job that wants helpers, with one more inside; null if there is none.
Crew::Job* Crew::take() {
  if (jobs_.empty()) return nullptr;
  Job* const job = jobs_.front();
  ++job->inside;
  if (--job->wanted == 0) jobs_.erase(jobs_.begin());
  return job;
}

void Crew::help() {
  is_at_work = true;  // work within work is done alone
  std::unique_lock lock(mutex_);
  for (;;) {
    Job* job = take();
    if (job == nullptr) {
      const unsigned known = n_posted_;
      lock.unlock();
      look_for([&] { return n_posted_ != known; });
      lock.lock();
      posted_.wait(lock, [&] { return (job = take()) != nullptr; });
    }
    --idle_;
    lock.unlock();
    job->work(job->context);
    lock.lock();
    ++idle_;
    if (--job->inside == 0) finished_.notify_all();
  }
}

}  // namespace widemargin

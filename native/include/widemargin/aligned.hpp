// Memory that vector registers read from at one go.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace widemargin {

constexpr std::size_t kAlignment = 64;  // bytes of a cache line, and of the widest register

template <class T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{kAlignment}));
  }
  void deallocate(T* pointer, std::size_t) {
    ::operator delete(pointer, std::align_val_t{kAlignment});
  }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};
template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

// Has the memory look for numbers that will be read soon. Internal to each file that includes it,
// as some are compiled for newer CPUs than others.
static inline void fetch(const void* begin, std::size_t bytes) {
#if defined(__GNUC__)
  const char* const from = static_cast<const char*>(begin);
  for (std::size_t at = 0; at < bytes; at += kAlignment) __builtin_prefetch(from + at);
#else
  static_cast<void>(begin);
  static_cast<void>(bytes);
#endif
}

}  // namespace widemargin

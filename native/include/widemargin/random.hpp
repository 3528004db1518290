// Random numbers whose whole state can be written down and read back, the same on every platform:
// the standard library does not say how std::mt19937_64 writes its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace widemargin {

// The 64-bit Mersenne Twister: the numbers of std::mt19937_64.
//
// Source: Nishimura, "Tables of 64-bit Mersenne Twisters" (2000), first parameters of table 3.
class Twister {
 public:
  static constexpr std::size_t kWords = 312;
  struct State {
    std::array<std::uint64_t, kWords> words;
    std::size_t next = kWords;  // of the words; at the end they are made anew
  };

  explicit Twister(std::uint64_t seed);
  std::uint64_t operator()() {
    if (state_.next == kWords) twist();
    std::uint64_t word = state_.words[state_.next++];
    word ^= (word >> 29) & 0x5555555555555555u;
    word ^= (word << 17) & 0x71D67FFFEDA60000u;
    word ^= (word << 37) & 0xFFF7EEE000000000u;
    return word ^ (word >> 43);
  }

  const State& state() const { return state_; }
  // Goes on from a state; std::invalid_argument if it is none.
  void restore(const State& state);

 private:
  void twist();

  State state_;
};

// An index below `count`, each as likely.
std::size_t draw_index(Twister& random, std::size_t count);

}  // namespace widemargin

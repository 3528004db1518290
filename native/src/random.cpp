#include "widemargin/random.hpp"

#include <algorithm>
#include <stdexcept>

namespace widemargin {
namespace {

constexpr std::size_t kMiddle = 156;
constexpr std::uint64_t kUpper = 0xFFFFFFFF80000000u, kLower = 0x7FFFFFFFu;
constexpr std::uint64_t kMatrix = 0xB5026F5AA96619E9u;

}  // namespace

Twister::Twister(std::uint64_t seed) {
  auto& words = state_.words;
  words[0] = seed;
  for (std::size_t i = 1; i < kWords; ++i) {
    words[i] = 6364136223846793005u * (words[i - 1] ^ (words[i - 1] >> 62)) + i;
  }
}

void Twister::twist() {
  auto& words = state_.words;
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::uint64_t joined = (words[i] & kUpper) | (words[(i + 1) % kWords] & kLower);
    words[i] = words[(i + kMiddle) % kWords] ^ (joined >> 1) ^ ((joined & 1) * kMatrix);
  }
  state_.next = 0;
}

void Twister::restore(const State& state) {
  // All that counts of the first word is its upper part; a state of zeros draws zeros for ever.
  const bool draws =
      (state.words[0] & kUpper) != 0 || std::any_of(state.words.begin() + 1, state.words.end(),
                                                    [](std::uint64_t word) { return word != 0; });
  if (state.next > kWords || !draws) {
    throw std::invalid_argument("widemargin: this is no state of random numbers");
  }
  state_ = state;
}

std::size_t draw_index(Twister& random, std::size_t count) {
  // The high half of a product: std::uniform_int_distribution differs from library to library.
  return static_cast<std::size_t>((random() >> 32) * static_cast<std::uint64_t>(count) >> 32);
}

}  // namespace widemargin

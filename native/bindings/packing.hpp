// Dicts of NumPy arrays and numbers, which model files can hold, to and fro. A dict may be from a
// file that somebody forged: what is missing, or of another type, is a ValueError.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"

namespace widemargin::bindings {

// An array that owns its numbers.
template <class T>
nb::object as_numpy(std::vector<T> numbers, std::size_t n_rows = 0) {
  auto* kept = new std::vector<T>(std::move(numbers));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  if (n_rows == 0) {
    return nb::cast(
        nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, std::move(owner)));
  }
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(
      kept->data(), {n_rows, kept->size() / n_rows}, std::move(owner)));
}

template <class T>
T part(const nb::dict& packed, const char* name) {
  T found{};
  if (!packed.contains(name) || !nb::try_cast(packed[name], found, /*convert=*/false)) {
    throw std::invalid_argument("widemargin: the state of a solver lacks '" + std::string(name) +
                                "', or has it of another type");
  }
  return found;
}

template <class T>
std::vector<T> numbers(const nb::dict& packed, const char* name) {
  const auto found = part<Array1<const T>>(packed, name);
  return {found.data(), found.data() + found.shape(0)};
}

}  // namespace widemargin::bindings

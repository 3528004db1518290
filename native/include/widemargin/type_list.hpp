// What a loss or a kernel says about itself, once: it is on a list of types, and names its
// parameters. Bindings, variants and tests fold over the list, so that a new one is bound and
// tested by being there.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

namespace widemargin {

template <class... Each>
struct TypeList {
  template <template <class...> class Container>
  using In = Container<Each...>;
  template <template <class...> class Container, template <class> class Wrapper>
  using Wrapped = Container<Wrapper<Each>...>;

  // Calls function.operator()<Each>() for each of them.
  template <class Function>
  static void for_each(const Function& function) {
    (function.template operator()<Each>(), ...);
  }
};

// A number that an Owner has: its name, in Python too, and values that tests try. Example i of an
// owner has value i of each of its parameters.
template <class Owner, class T>
struct Parameter {
  const char* name;
  T Owner::* place;
  std::vector<T> tried;
};

template <class Owner, class T>
Parameter<Owner, T> parameter(const char* name, T Owner::* place, std::vector<T> tried) {
  return {name, place, std::move(tried)};
}

// A tuple, which is empty for a type that says nothing of parameters.
template <class Owner>
auto parameters_of() {
  if constexpr (requires { Owner::parameters(); }) {
    return Owner::parameters();
  } else {
    return std::tuple<>();
  }
}

}  // namespace widemargin

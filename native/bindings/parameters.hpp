// Classes of Python for losses and kernels, by what these say about themselves.
#pragma once

#include <nanobind/nanobind.h>

#include <tuple>
#include <utility>

#include "widemargin/type_list.hpp"

namespace widemargin::bindings {

namespace nb = nanobind;

template <class Owner, class... T, std::size_t... Place>
void bind_constructor(nb::class_<Owner>& bound, const std::tuple<Parameter<Owner, T>...>& all,
                      std::index_sequence<Place...>) {
  bound.def(
      "__init__",
      [places = std::tuple(std::get<Place>(all).place...)](Owner* self, T... values) {
        Owner made{};
        ((made.*std::get<Place>(places) = values), ...);
        new (self) Owner(made);
      },
      nb::arg(std::get<Place>(all).name)...);
}

// A class that is made from its parameters, by their names.
template <class Owner>
void bind_owner(nb::module_& m) {
  nb::class_<Owner> bound(m, Owner::name);
  const auto all = parameters_of<Owner>();
  bind_constructor(bound, all, std::make_index_sequence<std::tuple_size_v<decltype(all)>>());
}

}  // namespace widemargin::bindings

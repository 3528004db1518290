// Examples of every loss and kernel on its list, with the values that its parameters name for
// tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "widemargin/type_list.hpp"

namespace widemargin::tests {

template <class Owner>
std::vector<Owner> examples() {
  const auto parameters = parameters_of<Owner>();
  std::size_t count = 1;
  std::apply([&](const auto&... each) { ((count = std::max(count, each.tried.size())), ...); },
             parameters);
  std::vector<Owner> made(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::apply(
        [&](const auto&... each) {
          ((made[i].*each.place = each.tried[i % each.tried.size()]), ...);
        },
        parameters);
  }
  return made;
}

// Its name, and the values of its parameters.
template <class Owner>
std::string name_of(const Owner& owner) {
  std::ostringstream text;
  text << Owner::name;
  std::apply(
      [&](const auto&... each) { ((text << ", " << each.name << " " << owner.*each.place), ...); },
      parameters_of<Owner>());
  return text.str();
}

// Calls function(example) for each example of each type on a list.
template <class List, class Function>
void for_each_example(const Function& function) {
  List::for_each([&]<class Owner>() {
    for (const Owner& example : examples<Owner>()) function(example);
  });
}

}  // namespace widemargin::tests

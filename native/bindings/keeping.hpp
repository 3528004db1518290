// Native objects point to others, and some call functions of Python, which may in turn refer to who
// owns the object. What they keep alive is a member, so that Python's garbage collector sees it:
// nb::keep_alive would hide it, and circles would never be freed. A circle always goes through an
// object of Python's own, which the collector clears; so there is no tp_clear here, and no pointer
// is ever left without what it points to.
#pragma once

#include <nanobind/nanobind.h>

namespace widemargin::bindings {

namespace nb = nanobind;

template <class Native>
struct Keeping : Native {
  using Native::Native;
  nb::object kept;
};

template <class Native>
int visit_kept(const Keeping<Native>& self, visitproc visit, void* arg) {
  Py_VISIT(self.kept.ptr());
  return 0;
}

template <class Native>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  // The collector may come while the object is still being made.
  return nb::inst_ready(self) ? visit_kept(*nb::inst_ptr<Native>(self), visit, arg) : 0;
}

// For classes that keep Python objects alive.
template <class Native>
nb::type_slots collected() {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse<Native>)},
                                {0, nullptr}};
  return nb::type_slots(slots);
}

}  // namespace widemargin::bindings

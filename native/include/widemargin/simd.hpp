// Loops that the compiler vectorises for several instruction sets, of which the one that the CPU
// has is picked when the library loads: a build made on one machine runs on another.
#pragma once

#include <cstddef>

namespace widemargin {

// values[i] = exp(-values[i]) for values >= 0; underflow gives 0. Within 2 units in the last place.
void exp_of_negative(float* values, std::size_t count);
void exp_of_negative(double* values, std::size_t count);

// accumulator[i] += |x - others[i]|
void add_absolute_difference(float x, const float* others, float* accumulator, std::size_t count);
void add_absolute_difference(double x, const double* others, double* accumulator,
                             std::size_t count);

// The widest instruction set in use: "avx512", "avx2" or "baseline".
const char* instruction_set();

}  // namespace widemargin

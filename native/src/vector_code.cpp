#include "widemargin/vector_code.hpp"

#include <vector>

namespace widemargin {

extern const InstructionSet kBaseline;
#ifdef WIDEMARGIN_X86_VARIANTS
extern const InstructionSet kAvx2, kAvx512;
#endif

namespace {

std::vector<const InstructionSet*> find_instruction_sets() {
  std::vector<const InstructionSet*> found;
#ifdef WIDEMARGIN_X86_VARIANTS
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  if (avx2 && avx512) found.push_back(&kAvx512);
  if (avx2) found.push_back(&kAvx2);
#endif
  found.push_back(&kBaseline);
  return found;
}

}  // namespace

std::span<const InstructionSet* const> instruction_sets() {
  static const std::vector<const InstructionSet*> found = find_instruction_sets();
  return found;
}

}  // namespace widemargin

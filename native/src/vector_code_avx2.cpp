// Built with AVX2 and FMA switched on.
#define WIDEMARGIN_NAME "avx2"
#define WIDEMARGIN_INSTRUCTION_SET kAvx2
#define WIDEMARGIN_VECTOR_BYTES 32
#define WIDEMARGIN_ROWS_AT_ONCE 4  // 12 sums of the 16 registers
#include "vector_code.hpp"

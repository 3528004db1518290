// Built with AVX-512 switched on.
#define WIDEMARGIN_NAME "avx512"
#define WIDEMARGIN_INSTRUCTION_SET kAvx512
#define WIDEMARGIN_VECTOR_BYTES 64
#define WIDEMARGIN_ROWS_AT_ONCE 8  // 24 sums of the 32 registers
#include "vector_code.hpp"

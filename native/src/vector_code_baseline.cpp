// What every CPU of the architecture can run: SSE2 on x86-64, NEON on 64-bit ARM.
#define WIDEMARGIN_NAME "baseline"
#define WIDEMARGIN_INSTRUCTION_SET kBaseline
#define WIDEMARGIN_VECTOR_BYTES 16
#define WIDEMARGIN_ROWS_AT_ONCE 4
#include "vector_code.hpp"

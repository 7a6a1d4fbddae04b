// RowKernels for one instruction set; its compile options are in CMakeLists.txt.
#define SWEEP_ISA isa_avx2
#include "bench_kernels/kernels/rows_impl.h"

// The rest of cuBLAS that LibTorch imports (linear algebra, complex numbers): refused by name.
#include "worker/phantom/counters.h"
#include "worker/phantom/export.h"

#define PHANTOM_LACKS(name)                      \
  PHANTOM_API int name(...) {                    \
    sweep::phantom::refuse(#name);               \
    return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */ \
  }
#define PHANTOM_LACKS_OF_EACH_TYPE(before, after) \
  PHANTOM_LACKS(before##S##after)                 \
  PHANTOM_LACKS(before##D##after)                 \
  PHANTOM_LACKS(before##C##after)                 \
  PHANTOM_LACKS(before##Z##after)

PHANTOM_LACKS_OF_EACH_TYPE(cublas, gelsBatched)
PHANTOM_LACKS_OF_EACH_TYPE(cublas, geqrfBatched)
PHANTOM_LACKS_OF_EACH_TYPE(cublas, getrfBatched)
PHANTOM_LACKS_OF_EACH_TYPE(cublas, getrsBatched)
PHANTOM_LACKS_OF_EACH_TYPE(cublas, trsmBatched)
PHANTOM_LACKS_OF_EACH_TYPE(cublas, trsm_v2)
PHANTOM_LACKS_OF_EACH_TYPE(cublas, gemmBatched)
PHANTOM_LACKS(cublasGemmBatchedEx)
PHANTOM_LACKS(cublasCgemm_v2)
PHANTOM_LACKS(cublasZgemm_v2)
PHANTOM_LACKS(cublasCgemmStridedBatched)
PHANTOM_LACKS(cublasZgemmStridedBatched)
PHANTOM_LACKS(cublasCgemv_v2)
PHANTOM_LACKS(cublasZgemv_v2)
PHANTOM_LACKS(cublasCdotc_v2)
PHANTOM_LACKS(cublasCdotu_v2)
PHANTOM_LACKS(cublasZdotc_v2)
PHANTOM_LACKS(cublasZdotu_v2)

// Refuses by name what LibTorch looks up in the driver and phantoms do not offer: memory shared between
// processes by handle, multicast, green contexts.
#include "worker/phantom/description.h"
#include "worker/phantom/export.h"

#define PHANTOM_DRIVER_LACKS(name)             \
  PHANTOM_API int name(...) {                  \
    sweep::phantom::say_lacking(#name);        \
    return 801; /* CUDA_ERROR_NOT_SUPPORTED */ \
  }

PHANTOM_DRIVER_LACKS(cuMemExportToShareableHandle)
PHANTOM_DRIVER_LACKS(cuMemImportFromShareableHandle)
PHANTOM_DRIVER_LACKS(cuMemRetainAllocationHandle)
PHANTOM_DRIVER_LACKS(cuMemGetAllocationPropertiesFromHandle)
PHANTOM_DRIVER_LACKS(cuMulticastCreate)
PHANTOM_DRIVER_LACKS(cuMulticastAddDevice)
PHANTOM_DRIVER_LACKS(cuMulticastBindMem)
PHANTOM_DRIVER_LACKS(cuMulticastUnbind)
PHANTOM_DRIVER_LACKS(cuGreenCtxCreate)
PHANTOM_DRIVER_LACKS(cuGreenCtxDestroy)
PHANTOM_DRIVER_LACKS(cuGreenCtxStreamCreate)
PHANTOM_DRIVER_LACKS(cuCtxFromGreenCtx)
PHANTOM_DRIVER_LACKS(cuDevResourceGenerateDesc)
PHANTOM_DRIVER_LACKS(cuDevSmResourceSplitByCount)
PHANTOM_DRIVER_LACKS(cuDeviceGetDevResource)
PHANTOM_DRIVER_LACKS(cuLinkCreate_v2)
PHANTOM_DRIVER_LACKS(cuLinkAddData_v2)
PHANTOM_DRIVER_LACKS(cuLinkComplete)

// A tensor map describes memory to a kernel, and no kernel reads it.
PHANTOM_API int cuTensorMapEncodeTiled(...) {
  return 0;
}

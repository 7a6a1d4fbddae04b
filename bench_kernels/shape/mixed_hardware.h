// Mixed hardware: what a plan takes for one trial over nodes of several kinds (schema/hardware_kinds.h): the least of the kinds
// everywhere.
#pragma once
#include <string_view>

#include "bench_kernels/shape/catalogue.h"
#include "schema/hardware_kinds.h"

namespace sweep::shape {

// The smallest memory, the lowest peaks and bandwidths, the oldest capability, the mean price. Error: a kind is not known, has no
// GPU, or stands there twice; or they are not in the order of their names, so that each mix has one name.
Expected<Hardware> mixed_hardware(std::string_view name);

}  // namespace sweep::shape

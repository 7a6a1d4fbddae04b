// Any bytes as a flight recorder: read without a fault, and what is kept of it stays small.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "schema/codec.h"
#include "worker/agent/evidence/flight_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto trace = sweep::agent::read_flight_trace({reinterpret_cast<const char*>(data), size});
  if (trace.groups.size() > 64) std::abort();
  std::size_t kept = 0;
  for (const auto& group : sweep::agent::groups_of(trace)) kept += sweep::to_text(group).size();
  if (kept > 4u << 20) std::abort();
  return 0;
}

// Any bytes as a flight recorder: read without a fault, and what is kept of it stays small.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "worker/agent/evidence/flight_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto trace = sweep::agent::read_flight_trace({reinterpret_cast<const char*>(data), size});
  if (trace.groups.size() > 64) std::abort();
  const auto text =
      sweep::agent::to_json(trace).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > 4u << 20) std::abort();
  return 0;
}

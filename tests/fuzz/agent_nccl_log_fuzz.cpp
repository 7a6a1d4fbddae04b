// Any bytes as NCCL's log: read without a fault, and what is kept of it stays small.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "schema/codec.h"
#include "worker/agent/evidence/nccl_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto log = sweep::agent::read_nccl_log({reinterpret_cast<const char*>(data), size});
  if (log.transports.size() > 32 || log.algorithms.size() > 32 || log.warnings.size() > 5) std::abort();
  if (log.channels < 0 || log.nvls_channels < 0) std::abort();
  if (sweep::to_text(log).size() > 64u << 10) std::abort();
  return 0;
}

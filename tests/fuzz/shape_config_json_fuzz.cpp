// Any bytes as config.json: refused with a sentence, or a model whose counts are sane.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sweep;
  const auto spec = shape::model_from_config_json({reinterpret_cast<const char*>(data), size});
  if (!spec) {
    if (spec.error().message.empty()) std::abort();
    return 0;
  }
  const i64 all = shape::parameter_count(*spec);
  if (all <= 0 || shape::multiplied_parameter_count(*spec) <= 0) std::abort();
  if (!std::isfinite(shape::model_flops_per_token(*spec, 4096))) std::abort();
  if (shape::completed(*spec) != *spec) std::abort();
  return 0;
}

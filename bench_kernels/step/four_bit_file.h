// FourBitFile: the weights of a checkpoint that bitsandbytes saved in NF4 with double quantization (kernels/nf4.h). Of
// WEIGHT the file has the codes under its own name, and under WEIGHT.absmax, .quant_map, .nested_absmax,
// .nested_quant_map and .quant_state.bitsandbytes__nf4 (JSON) what they stand for. Another type, block or map is refused.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "base/expected.h"
#include "bench_kernels/kernels/nf4.h"
#include "bench_kernels/shape/safetensors_header.h"

namespace sweep::step {

// Where a tensor of a checkpoint lies.
struct Place {
  std::filesystem::path file;
  shape::SafetensorsEntry entry;
};
using Places = std::map<std::string, Place>;

// The tensor's bytes. Throws std::runtime_error with a sentence.
at::Tensor read_tensor(const Place&, at::ScalarType);

class FourBitFile {
 public:
  // Takes the tensors beside the weights out of the places; the weights stay there, with their own shape.
  static Expected<FourBitFile> take(Places&);

  bool has(const std::string& weight) const { return weights_.contains(weight); }
  // Dequantizes the codes of a weight to the type that it was quantized from, as bitsandbytes does.
  at::Tensor values(const std::string& weight) const;
  // Fills codes and scales of a whole weight.
  void read_codes(const std::string& weight, const kernels::Nf4& whole) const;

 private:
  struct Weight {
    Place codes, scale_codes, scales;
    std::vector<std::int64_t> shape;
    at::ScalarType type = at::kFloat;
    float offset = 0;
    std::int64_t size() const { return shape[0] * shape[1]; }
  };
  static Expected<Weight> weight_of(Places&, const std::string& name, const std::string& state);

  std::map<std::string, Weight> weights_;
};

}  // namespace sweep::step

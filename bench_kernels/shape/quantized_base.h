// QuantizedBase: what a frozen base takes in 4-bit NormalFloat (NF4) with double quantization (Dettmers et al. 2023,
// arXiv 2305.14314, section 3): a code of 4 bits for each weight, for each 64 weights (a block) the code of their largest
// magnitude in 8 bits, for each 256 blocks a scale in fp32, and for each tensor an offset in fp32. Quantized are the
// weights of the blocks' linear layers; embeddings, norms, biases and head stay in the type of `precision`.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schema/trial.h"

namespace sweep::shape {

inline constexpr i64 kNf4Block = 64;        // weights that share a largest magnitude
inline constexpr i64 kNf4ScaleBlock = 256;  // blocks that share a scale
inline constexpr i64 kNf4Alignment = 64;    // bytes: a tensor begins at a multiple of them

// Places of the parts of a quantized tensor in its bytes. A rank of a tensor group holds `held` of its `whole` weights, in
// whole blocks, and the scales of all.
struct Nf4Extent {
  i64 held = 0, whole = 0;
  i64 blocks() const { return held / kNf4Block; }
  i64 whole_blocks() const { return whole / kNf4Block; }
  i64 scales() const { return (whole_blocks() + kNf4ScaleBlock - 1) / kNf4ScaleBlock; }
  i64 scale_codes_at() const { return held / 2; }
  i64 scales_at() const { return (scale_codes_at() + blocks() + 3) / 4 * 4; }
  i64 offset_at() const { return scales_at() + 4 * scales(); }
  i64 bytes() const { return (offset_at() + 4 + kNf4Alignment - 1) / kNf4Alignment * kNf4Alignment; }
};

// Weights of each tensor of a layer that is quantized, in the order of the bytes of its bucket (the last one used is
// first). All experts' tensors are in a bucket of their own.
struct QuantizedTensors {
  std::vector<i64> dense, experts;
};
QuantizedTensors quantized_tensors(const ModelSpec&);
// Weights of the whole model that are quantized, and the bytes that they take.
struct QuantizedModel {
  i64 weights = 0, bytes = 0;
};
QuantizedModel quantized_model(const Trial&);
i64 quantized_weights(const Trial&);
// Weights of whole tensors that the ranks read together, each those of which it keeps bytes.
i64 weights_read_to_quantize(const Trial&);

// Why the step does not keep its base quantized in this configuration, as a sentence; nullopt: it does, or none is asked for.
std::optional<std::string> quantized_base_objection(const Trial&);

}  // namespace sweep::shape

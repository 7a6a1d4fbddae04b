#include "bench_kernels/step/safetensors.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "base/expected.h"
#include "base/files.h"
#include "bench_kernels/kernels/counting_allocator.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::step {

namespace {

namespace fs = std::filesystem;

Expected<std::set<std::string>> shard_names(const fs::path& index) {
  SWEEP_GET(const auto text, files::read(index));
  const auto json = parse_json(text);
  if (!json) return fail(index.string() + ": " + json.error().message + ".");
  if (!json->is_object() || !json->contains("weight_map") || !(*json)["weight_map"].is_object()) {
    return fail(index.string() + " has no object 'weight_map'.");
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : (*json)["weight_map"].items()) {
    if (!file.is_string()) return fail(index.string() + ": the file of '" + tensor + "' is not a string.");
    const fs::path name = file.get<std::string>();
    if (name.empty() || name != name.filename() || name == "." || name == "..") {
      return fail(index.string() + ": '" + name.string() + "' is not the name of a file in this folder.");
    }
    names.insert(name.string());
  }
  return names;
}

std::optional<at::ScalarType> scalar_type(const std::string& dtype) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "F16") return at::kHalf;
  return std::nullopt;
}

// Copies the rank's share of the tensor.
void copy_share(const at::Tensor& whole, const model::Slice& slice, at::Tensor share) {
  if (slice.whole == 0) {
    share.copy_(whole);
    return;
  }
  i64 at = 0;
  for (const auto& [begin, size] : slice.ranges) {
    share.narrow(slice.dimension, at, size).copy_(whole.narrow(slice.dimension, begin, size));
    at += size;
  }
}

// Buffers some writers store beside the weights (BlenderBot's of the logits is zeros), a tied head stored twice, and what a unit reads by itself.
bool may_be_left(const std::string& name) {
  const auto ends = [&](std::string_view tail) { return name.ends_with(tail); };
  return ends(".attn.bias") || ends(".attn.masked_bias") || ends("rotary_emb.inv_freq") ||
         ends(".gate.e_score_correction_bias") || name == "lm_head.weight" || name == "final_logits_bias";
}

}  // namespace

Expected<void> Checkpoint::add_file(const fs::path& file, const std::string& prefix) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error) return fail(file.string() + " cannot be read: " + error.message() + ".");
  std::ifstream in(file, std::ios::binary);
  std::string bytes(8, '\0');
  if (!in.read(bytes.data(), 8))
    return fail(file.string() + ": the file is shorter than the 8 bytes of a safetensors length.");
  const auto data = shape::safetensors_data_offset(bytes, size);
  if (!data) return fail(file.string() + ": " + data.error().message);
  bytes.resize(*data);
  if (!in.read(bytes.data() + 8, static_cast<std::streamsize>(*data - 8)))
    return fail(file.string() + " ends inside its header.");
  auto header = shape::parse_safetensors_header(bytes, size);
  if (!header) return fail(file.string() + ": " + header.error().message);
  for (auto& entry : header->tensors) {
    const std::string name = entry.name.starts_with(prefix) ? entry.name.substr(prefix.size()) : entry.name;
    if (!places_.emplace(name, Place{file, std::move(entry)}).second)
      return fail("tensor '" + name + "' is in two files.");
  }
  return {};
}

Expected<Checkpoint> Checkpoint::open(const fs::path& folder) {
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  std::set<std::string> files{"model.safetensors"};
  if (!fs::exists(folder / "model.safetensors")) {
    const fs::path index = folder / "model.safetensors.index.json";
    if (!fs::exists(index)) {
      return fail(folder.string() +
                  " has neither model.safetensors nor model.safetensors.index.json; save the model with "
                  "save_pretrained(..., safe_serialization=True).");
    }
    SWEEP_GET(files, shard_names(index));
  }
  for (const std::string& name : files) {
    SWEEP_TRY(checkpoint.add_file(folder / name));
  }
  const fs::path adapters = folder / "adapter_model.safetensors";
  if (fs::exists(adapters)) {
    SWEEP_TRY(checkpoint.add_file(adapters, "base_model.model."));
  }
  auto four_bits = FourBitFile::take(checkpoint.places_);
  if (!four_bits) return fail(folder.string() + ": " + four_bits.error().message);
  checkpoint.four_bits_ = *std::move(four_bits);
  return checkpoint;
}

// The name in the file: as it is, or without the outermost module's name.
Places::const_iterator Checkpoint::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found != places_.end() ? found : places_.find(name.substr(name.find('.') + 1));
}

Expected<std::map<std::string, std::string>> Checkpoint::names(const model::Parameters& whole) const {
  std::map<std::string, std::string> names;
  std::set<std::string> used;
  for (const auto& named : whole.all()) {
    const auto found = find(named.name);
    if (found == places_.end()) return fail(folder_.string() + " has no tensor '" + named.name + "'.");
    const auto& [name, place] = *found;
    const auto shape = whole.value(named).sizes().vec();
    if (place.entry.shape != shape) {
      return fail("tensor '" + name + "' has the shape [" + c10::str(c10::IntArrayRef(place.entry.shape)) +
                  "], the model needs " + c10::str(c10::IntArrayRef(shape)) + ".");
    }
    if (!scalar_type(place.entry.dtype) && !four_bits_.has(name))
      return fail(
          "tensor '" + name + "' is " + place.entry.dtype +
          "; F32, BF16, F16 and NF4 with double quantization, as bitsandbytes saves it, can be read.");
    names[named.name] = name;
    used.insert(name);
  }
  for (const auto& [name, place] : places_) {
    if (used.count(name) == 0 && !may_be_left(name))
      return fail(place.file.string() + ": the model has no parameter for tensor '" + name + "'.");
  }
  return names;
}

void Checkpoint::copy(const model::Part& part, at::Tensor share) const {
  if (share.is_meta()) return;
  const at::NoGradGuard no_grad;
  const memory::ScratchScope scratch;
  const auto found = find(part.name);
  if (found == places_.end()) throw std::runtime_error("the checkpoint has no tensor '" + part.name + "'.");
  const auto& [name, place] = *found;
  copy_share(four_bits_.has(name) ? four_bits_.values(name)
                                  : read_tensor(place, scalar_type(place.entry.dtype).value()),
             part.slice, share);
}

bool Checkpoint::copy_codes(const model::Part& part, const kernels::Nf4& whole) const {
  const auto found = find(part.name);
  if (found == places_.end() || !four_bits_.has(found->first)) return false;
  four_bits_.read_codes(found->first, whole);
  return true;
}

}  // namespace sweep::step

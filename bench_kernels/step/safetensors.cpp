#include "bench_kernels/step/safetensors.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "bench_kernels/shape/safetensors_header.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::step {

namespace {

namespace fs = std::filesystem;

struct Place {
  fs::path file;
  shape::SafetensorsEntry entry;
};
using Places = std::map<std::string, Place>;

Expected<void> add_file(const fs::path& file, Places& places) {
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
    const std::string name = entry.name;
    if (!places.emplace(name, Place{file, std::move(entry)}).second)
      return fail("tensor '" + name + "' is in two files.");
  }
  return {};
}

Expected<std::set<std::string>> shard_names(const fs::path& index) {
  const auto text = spool::read_file(index);
  if (!text) return tl::unexpected(text.error());
  const auto json = parse_json(*text);
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

Expected<Places> find_tensors(const fs::path& folder) {
  Places places;
  if (fs::exists(folder / "model.safetensors")) {
    if (auto added = add_file(folder / "model.safetensors", places); !added)
      return tl::unexpected(added.error());
    return places;
  }
  const fs::path index = folder / "model.safetensors.index.json";
  if (!fs::exists(index)) {
    return fail(folder.string() +
                " has neither model.safetensors nor model.safetensors.index.json; save the model with "
                "save_pretrained(..., safe_serialization=True).");
  }
  const auto names = shard_names(index);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    if (auto added = add_file(folder / name, places); !added) return tl::unexpected(added.error());
  }
  return places;
}

std::optional<at::ScalarType> scalar_type(const std::string& dtype) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "F16") return at::kHalf;
  return std::nullopt;
}

std::vector<i64> whole_shape(const at::Tensor& share, const model::Slice& slice) {
  auto shape = share.sizes().vec();
  if (slice.whole != 0) shape[static_cast<std::size_t>(slice.dimension)] = slice.whole;
  return shape;
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

Expected<void> copy_tensor(const std::string& name, const Place& place, const model::Slice& slice,
                           const at::Tensor& share) {
  const auto shape = whole_shape(share, slice);
  if (place.entry.shape != shape) {
    return fail("tensor '" + name + "' has the shape [" + c10::str(c10::IntArrayRef(place.entry.shape)) +
                "], the model needs " + c10::str(c10::IntArrayRef(shape)) + ".");
  }
  const auto type = scalar_type(place.entry.dtype);
  if (!type)
    return fail("tensor '" + name + "' is " + place.entry.dtype + "; F32, BF16 and F16 can be read.");
  const at::Tensor value = at::empty(shape, *type);
  std::ifstream in(place.file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(place.entry.begin));
  in.read(static_cast<char*>(value.mutable_data_ptr()),
          static_cast<std::streamsize>(place.entry.end - place.entry.begin));
  if (!in) return fail(place.file.string() + " could not be read to the end of '" + name + "'.");
  copy_share(value, slice, share);
  return {};
}

// The name in the file: as it is, or without the outermost module's name.
Places::const_iterator find(const Places& places, const std::string& name) {
  const auto found = places.find(name);
  return found != places.end() ? found : places.find(name.substr(name.find('.') + 1));
}

// Buffers some writers store beside the weights, and a tied head stored twice.
bool may_be_left(const std::string& name) {
  const auto ends = [&](std::string_view tail) { return name.ends_with(tail); };
  return ends(".attn.bias") || ends(".attn.masked_bias") || ends("rotary_emb.inv_freq") ||
         name == "lm_head.weight";
}

}  // namespace

Expected<std::map<std::string, std::string>> load_weights(const fs::path& folder,
                                                          model::Parameters& parameters) {
  const at::NoGradGuard no_grad;
  auto places = find_tensors(folder);
  if (!places) return tl::unexpected(places.error());
  std::map<std::string, std::string> names;
  for (const auto& named : parameters.all()) {
    const auto found = find(*places, named.name);
    if (found == places->end()) return fail(folder.string() + " has no tensor '" + named.name + "'.");
    const model::Slice& slice = parameters.stacks()[named.stack].parts[named.part].slice;
    if (auto copied = copy_tensor(found->first, found->second, slice, parameters.value(named)); !copied)
      return tl::unexpected(copied.error());
    names[named.name] = found->first;
    places->erase(found);
  }
  for (const auto& [name, place] : *places) {
    if (!may_be_left(name))
      return fail(place.file.string() + ": the model has no parameter for tensor '" + name + "'.");
  }
  return names;
}

}  // namespace sweep::step

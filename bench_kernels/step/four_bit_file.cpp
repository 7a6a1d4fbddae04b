#include "bench_kernels/step/four_bit_file.h"

#include <ATen/ATen.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "bench_kernels/kernels/device/args.h"
#include "bench_kernels/shape/quantized_base.h"
#include "schema/codec.h"

namespace sweep::step {
namespace {

namespace device = sweep::device;
using nlohmann::json;

constexpr std::string_view kState = ".quant_state.bitsandbytes__";
constexpr std::uint64_t kMostStateBytes = 1 << 16;
constexpr std::uint64_t kMostRows = 1 << 30;

// Checks that a saved state has the one form that the kernels take.
Expected<void> check_form(const json& state, const std::string& name) {
  const json wanted{{"quant_type", "nf4"},
                    {"blocksize", shape::kNf4Block},
                    {"nested_blocksize", shape::kNf4ScaleBlock},
                    {"nested_dtype", "float32"}};
  for (const auto& [key, value] : wanted.items()) {
    const auto found = state.find(key);
    if (found != state.end() && *found == value) continue;
    return fail(ErrorKind::kUnsupported, name,
                "tensor '" + name + "' was quantized with " + key + " " +
                    (found == state.end() ? "absent" : dump(*found)) + ", this reads " + dump(value) +
                    "; save it with bnb_4bit_quant_type nf4 and bnb_4bit_use_double_quant.");
  }
  const auto offset = state.find("nested_offset"), sizes = state.find("shape");
  const auto is_size = [](const json& n) {
    return n.is_number_unsigned() && n.get<std::uint64_t>() <= kMostRows;
  };
  if (offset == state.end() || !offset->is_number() || sizes == state.end() || !sizes->is_array() ||
      sizes->size() != 2 || !is_size((*sizes)[0]) || !is_size((*sizes)[1]))
    return fail(
        ErrorKind::kInvalidValue, name,
        "the quantized state of tensor '" + name + "' lacks a nested_offset, or a shape of two sizes.");
  return {};
}

std::optional<at::ScalarType> type_of(const json& state) {
  const json word = state.value("dtype", json());
  if (word == "float32") return at::kFloat;
  if (word == "bfloat16") return at::kBFloat16;
  if (word == "float16") return at::kHalf;
  return std::nullopt;
}

// Takes one of the tensors, of so many numbers, out of the places.
Expected<void> take_one(Places& places, const std::string& name, const std::string& dtype,
                        std::int64_t numbers, Place& out) {
  const auto found = places.find(name);
  if (found == places.end())
    return fail(ErrorKind::kInvalidValue, name,
                "the file has no tensor '" + name + "', which a quantized weight needs.");
  out = std::move(found->second);
  places.erase(found);
  const shape::SafetensorsEntry& entry = out.entry;
  const std::int64_t size = std::accumulate(entry.shape.begin(), entry.shape.end(), std::int64_t{1},
                                            std::multiplies<>());  // the header's check bounds it
  if (entry.dtype == dtype && size == numbers) return {};
  return fail(ErrorKind::kInvalidValue, name,
              "tensor '" + name + "' has " + std::to_string(size) + " numbers of " + entry.dtype + ", not " +
                  std::to_string(numbers) + " of " + dtype + ".");
}

Expected<void> check_map(Places& places, const std::string& name, const at::Tensor& ours) {
  Place place;
  SWEEP_TRY(take_one(places, name, "F32", ours.numel(), place));
  if (read_tensor(place, at::kFloat).flatten().equal(ours)) return {};
  return fail(ErrorKind::kUnsupported, name,
              "tensor '" + name + "' is another map of codes than that of NF4 with double quantization.");
}

// The text of a saved state.
Expected<json> state_of(Places& places, const std::string& name) {
  const Place place = std::exchange(places.at(name), {});
  places.erase(name);
  if (place.entry.dtype != "U8" || place.entry.end - place.entry.begin > kMostStateBytes)
    return fail(ErrorKind::kInvalidValue, name,
                "tensor '" + name + "' is no saved state of a quantized weight.");
  const at::Tensor bytes = read_tensor(place, at::kByte);
  auto state =
      parse_json({static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.numel())});
  if (!state || !state->is_object())
    return fail(ErrorKind::kInvalidValue, name, "tensor '" + name + "' is no JSON object.");
  return *state;
}

}  // namespace

at::Tensor read_tensor(const Place& place, at::ScalarType type) {
  const at::Tensor value = at::empty(place.entry.shape, type);
  std::ifstream in(place.file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(place.entry.begin));
  in.read(static_cast<char*>(value.mutable_data_ptr()),
          static_cast<std::streamsize>(place.entry.end - place.entry.begin));
  if (!in)
    throw std::runtime_error(place.file.string() + " could not be read to the end of '" + place.entry.name +
                             "'.");
  return value;
}

Expected<FourBitFile::Weight> FourBitFile::weight_of(Places& places, const std::string& name,
                                                     const std::string& state_name) {
  SWEEP_GET(const auto state, state_of(places, state_name));
  SWEEP_TRY(check_form(state, name));
  const auto type = type_of(state);
  Weight w;
  w.shape = state["shape"].get<std::vector<std::int64_t>>();
  w.offset = state["nested_offset"].get<float>();
  if (!type || w.size() % shape::kNf4Block != 0)
    return fail(ErrorKind::kUnsupported, name,
                "tensor '" + name +
                    "' was quantized from a type other than float32, bfloat16 and float16, or its weights "
                    "are no multiple of 64.");
  w.type = *type;
  const shape::Nf4Extent sizes{w.size(), w.size()};
  const at::Tensor maps = kernels::nf4_maps(at::TensorOptions(at::kCPU));
  SWEEP_TRY(take_one(places, name, "U8", w.size() / 2, w.codes));
  SWEEP_TRY(take_one(places, name + ".absmax", "U8", sizes.blocks(), w.scale_codes));
  SWEEP_TRY(take_one(places, name + ".nested_absmax", "F32", sizes.scales(), w.scales));
  SWEEP_TRY(
      check_map(places, name + ".quant_map", maps.narrow(0, device::kEightBitValues, device::kNf4Values)));
  SWEEP_TRY(check_map(places, name + ".nested_quant_map", maps.narrow(0, 0, device::kEightBitValues)));
  return w;
}

Expected<FourBitFile> FourBitFile::take(Places& places) {
  std::vector<std::pair<std::string, std::string>> states;  // the name of a state, and of its weight
  for (const auto& [name, place] : places)
    if (const auto at = name.find(kState); at != std::string::npos)
      states.emplace_back(name, name.substr(0, at));
  FourBitFile file;
  for (const auto& [state, name] : states) {
    SWEEP_GET(auto weight, weight_of(places, name, state));
    Place whole = weight.codes;
    whole.entry.shape = weight.shape, whole.entry.dtype = "NF4";
    places.emplace(name, std::move(whole));
    file.weights_.emplace(name, std::move(weight));
  }
  return file;
}

void FourBitFile::read_codes(const std::string& weight, const kernels::Nf4& whole) const {
  const Weight& w = weights_.at(weight);
  at::Tensor(whole.codes).copy_(read_tensor(w.codes, at::kByte).flatten());
  at::Tensor(whole.scale_codes).copy_(read_tensor(w.scale_codes, at::kByte).flatten());
  at::Tensor(whole.scales).copy_(read_tensor(w.scales, at::kFloat).flatten());
  at::Tensor(whole.offset).fill_(w.offset);
}

at::Tensor FourBitFile::values(const std::string& weight) const {
  const Weight& w = weights_.at(weight);
  const shape::Nf4Extent sizes{w.size(), w.size()};
  const auto room = [](std::int64_t n, at::ScalarType type) { return at::empty({n}, type); };
  const kernels::Nf4 whole{room(w.size() / 2, at::kByte),
                           room(sizes.blocks(), at::kByte),
                           room(sizes.scales(), at::kFloat),
                           room(1, at::kFloat),
                           {{1, sizes.blocks(), 0, 0, 0, 0}}};
  read_codes(weight, whole);
  const at::Tensor values = at::empty(w.shape, w.type);
  kernels::nf4_dequantize(whole, kernels::nf4_maps(at::TensorOptions(at::kCPU)), values.view({-1}));
  return values;
}

}  // namespace sweep::step

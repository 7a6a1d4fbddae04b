#include "orchestrator/answers/tables/catalogue.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"
#include "orchestrator/answers/json_values.h"
#include "schema/codec.h"

namespace sweep::answers {
namespace {

std::string model_table() {
  constexpr const char* kRow = "{:<22} {:<11} {:>6} {:>7} {:>5} {:>8} {:>12} {:>7} {:>12}\n";
  std::string out = fmt::format(fmt::runtime(kRow), "model", "family", "layers", "hidden", "heads",
                                "kv_heads", "intermediate", "vocab", "parameters");
  for (const auto& m : shape::all_models())
    out += fmt::format(fmt::runtime(kRow), m.name, m.spec.family, m.spec.layers, m.spec.hidden_size,
                       m.spec.heads, m.spec.kv_heads, m.spec.intermediate_size, m.spec.vocab_size,
                       shape::parameter_count(m.spec));
  return out;
}

std::string teraflops(const shape::Hardware& h, Precision precision) {
  const auto peak = h.peak_for(precision);
  return peak ? fmt::format("{:.1f}", *peak / 1e12) : "-";
}

constexpr const char* kHardwareRow = "{:<16} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}  {}\n";

std::string hardware_row(const shape::Hardware& h) {
  const std::string memory =
      h.memory_bytes ? fmt::format("{:.0f}", double(*h.memory_bytes) / (1 << 30)) : "-";
  const std::string price = h.price ? fmt::format("{:.2f}", h.price->usd_per_node_hour) : "-";
  return fmt::format(fmt::runtime(kHardwareRow), h.name, h.gpus_per_node, memory,
                     teraflops(h, Precision::kFp32), teraflops(h, Precision::kFp16),
                     teraflops(h, Precision::kBf16), teraflops(h, Precision::kFp8), price,
                     h.price ? h.price->source + ", " + h.price->date : "");
}

nlohmann::json document_of(const shape::NamedModel& m) {
  return {{"name", m.name},
          {"source", m.source},
          {"parameters", shape::parameter_count(m.spec)},
          {"multiplied_parameters", shape::multiplied_parameter_count(m.spec)},
          {"dimensions", to_json(m.spec)}};
}

nlohmann::json document_of(const shape::Hardware& h) {
  nlohmann::json price = nullptr;
  if (h.price)
    price = {{"usd_per_node_hour", h.price->usd_per_node_hour},
             {"source", h.price->source},
             {"date", h.price->date}};
  return {{"name", h.name},
          {"gpu", text_or_null(h.gpu)},
          {"gpus_per_node", h.gpus_per_node},
          {"memory_bytes", or_null(h.memory_bytes)},
          {"peak_flops", h.peak_flops},
          {"memory_bytes_per_s", h.memory_bandwidth},
          {"intra_node_bytes_per_s", h.intra_node_bandwidth},
          {"inter_node_bytes_per_s", h.inter_node_bandwidth},
          {"compute_capability", text_or_null(h.compute_capability)},
          {"price", price}};
}

template <class Entry>
nlohmann::json listed(std::span<const Entry> all, const std::string& name) {
  nlohmann::json list = nlohmann::json::array();
  for (const Entry& each : all)
    if (name.empty() || each.name == name) list.push_back(document_of(each));
  return list;
}

}  // namespace

Expected<std::string> models_text(const std::string& name) {
  if (name.empty()) return model_table();
  SWEEP_GET(const auto spec, shape::find_model(name));
  return fmt::format(
      "model: {{family: {}, {}layers: {}, hidden_size: {}, heads: {}, kv_heads: {}, "
      "intermediate_size: {}, vocab_size: {}, tie_embeddings: {}}}\n# {} parameters, {} of them multiply\n",
      spec.family, spec.has_encoder() ? fmt::format("encoder_layers: {}, ", spec.encoder_layers) : "",
      spec.layers, spec.hidden_size, spec.heads, spec.kv_heads, spec.intermediate_size, spec.vocab_size,
      spec.tie_embeddings, shape::parameter_count(spec), shape::multiplied_parameter_count(spec));
}

Expected<nlohmann::json> models_json(const std::string& name) {
  if (!name.empty()) SWEEP_TRY(shape::find_model(name));
  return listed(shape::all_models(), name);
}

Expected<std::string> hardware_text(const std::string& name) {
  if (!name.empty()) SWEEP_TRY(shape::find_hardware(name));
  std::string out = fmt::format(fmt::runtime(kHardwareRow), "hardware", "gpus/node", "GiB/gpu", "fp32",
                                "fp16", "bf16", "fp8", "USD/h", "price from");
  for (const auto& h : shape::all_hardware())
    if (name.empty() || h.name == name) out += hardware_row(h);
  return out;
}

Expected<nlohmann::json> hardware_json(const std::string& name) {
  if (!name.empty()) SWEEP_TRY(shape::find_hardware(name));
  return listed(shape::all_hardware(), name);
}

}  // namespace sweep::answers

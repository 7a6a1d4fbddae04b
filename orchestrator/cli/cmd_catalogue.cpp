// sweep models, sweep hardware: the catalogues.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"
#include "orchestrator/cli/as_json.h"
#include "orchestrator/cli/catalogues.h"
#include "orchestrator/cli/command.h"
#include "schema/codec.h"

namespace sweep::cli {
namespace {

void list_models(Io& io) {
  io.out << fmt::format("{:<22} {:<8} {:>6} {:>7} {:>5} {:>8} {:>12} {:>7} {:>12}\n", "model", "family",
                        "layers", "hidden", "heads", "kv_heads", "intermediate", "vocab", "parameters");
  for (const auto& m : shape::all_models())
    io.out << fmt::format("{:<22} {:<8} {:>6} {:>7} {:>5} {:>8} {:>12} {:>7} {:>12}\n", m.name, m.spec.family,
                          m.spec.layers, m.spec.hidden_size, m.spec.heads, m.spec.kv_heads,
                          m.spec.intermediate_size, m.spec.vocab_size, shape::parameter_count(m.spec));
}

int show_model(Io& io, const std::string& name) {
  const auto spec = shape::find_model(name);
  if (!spec) return refuse(io, spec.error());
  io.out << fmt::format(
      "model: {{family: {}, layers: {}, hidden_size: {}, heads: {}, kv_heads: {}, "
      "intermediate_size: {}, vocab_size: {}, tie_embeddings: {}}}\n",
      spec->family, spec->layers, spec->hidden_size, spec->heads, spec->kv_heads, spec->intermediate_size,
      spec->vocab_size, spec->tie_embeddings);
  io.out << fmt::format("# {} parameters, {} of them multiply\n", shape::parameter_count(*spec),
                        shape::multiplied_parameter_count(*spec));
  return kAnswered;
}

std::string teraflops(const shape::Hardware& h, Precision precision) {
  const auto peak = h.peak_for(precision);
  return peak ? fmt::format("{:.1f}", *peak / 1e12) : "-";
}

void hardware_row(Io& io, const shape::Hardware& h) {
  const std::string memory =
      h.memory_bytes ? fmt::format("{:.0f}", double(*h.memory_bytes) / (1 << 30)) : "-";
  const std::string price = h.price ? fmt::format("{:.2f}", h.price->usd_per_node_hour) : "-";
  io.out << fmt::format("{:<16} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}  {}\n", h.name, h.gpus_per_node,
                        memory, teraflops(h, Precision::kFp32), teraflops(h, Precision::kFp16),
                        teraflops(h, Precision::kBf16), teraflops(h, Precision::kFp8), price,
                        h.price ? h.price->source + ", " + h.price->date : "");
}

nlohmann::json model_json(const shape::NamedModel& m) {
  return {{"name", m.name},
          {"source", m.source},
          {"parameters", shape::parameter_count(m.spec)},
          {"multiplied_parameters", shape::multiplied_parameter_count(m.spec)},
          {"dimensions", to_json(m.spec)}};
}

nlohmann::json hardware_json(const shape::Hardware& h) {
  nlohmann::json price = nullptr;
  if (h.price)
    price = {{"usd_per_node_hour", h.price->usd_per_node_hour},
             {"source", h.price->source},
             {"date", h.price->date}};
  return {{"name", h.name},
          {"gpu", h.gpu.empty() ? nlohmann::json(nullptr) : nlohmann::json(h.gpu)},
          {"gpus_per_node", h.gpus_per_node},
          {"memory_bytes", h.memory_bytes ? nlohmann::json(*h.memory_bytes) : nlohmann::json(nullptr)},
          {"peak_flops", h.peak_flops},
          {"memory_bytes_per_s", h.memory_bandwidth},
          {"intra_node_bytes_per_s", h.intra_node_bandwidth},
          {"inter_node_bytes_per_s", h.inter_node_bandwidth},
          {"compute_capability",
           h.compute_capability.empty() ? nlohmann::json(nullptr) : nlohmann::json(h.compute_capability)},
          {"price", price}};
}

// The entries of this name, or all.
template <class Entry>
nlohmann::json listed(std::span<const Entry> all, const std::string& name,
                      nlohmann::json (*document)(const Entry&)) {
  nlohmann::json list = nlohmann::json::array();
  for (const Entry& each : all)
    if (name.empty() || each.name == name) list.push_back(document(each));
  return list;
}

}  // namespace

int show_models(Io& io, const std::string& name, bool as_json) {
  if (!name.empty())
    if (const auto found = shape::find_model(name); !found) return refuse(io, found.error());
  if (as_json) return print_document(io, listed(shape::all_models(), name, model_json)), kAnswered;
  return name.empty() ? (list_models(io), kAnswered) : show_model(io, name);
}

int show_hardware(Io& io, const std::string& name, bool as_json) {
  if (!name.empty())
    if (const auto found = shape::find_hardware(name); !found) return refuse(io, found.error());
  if (as_json) return print_document(io, listed(shape::all_hardware(), name, hardware_json)), kAnswered;
  io.out << fmt::format("{:<16} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}  {}\n", "hardware", "gpus/node",
                        "GiB/gpu", "fp32", "fp16", "bf16", "fp8", "USD/h", "price from");
  for (const auto& h : shape::all_hardware())
    if (name.empty() || h.name == name) hardware_row(io, h);
  return kAnswered;
}

void add_models(Registry r) {
  auto* command = r.app.add_subcommand("models", "the model catalogue, or one model's dimensions");
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("NAME", *name, "a model of the catalogue; absent: all of them");
  command->add_flag("--json", *json, "as JSON (docs/json.md)");
  command->callback(
      [r, name, json] { r.chosen = [r, name, json] { return show_models(r.io, *name, *json); }; });
}

void add_hardware(Registry r) {
  auto* command = r.app.add_subcommand(
      "hardware", "the hardware catalogue: memory, dense peak TFLOP/s by precision, price");
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("NAME", *name, "hardware of the catalogue; absent: all of it");
  command->add_flag("--json", *json, "as JSON (docs/json.md)");
  command->callback(
      [r, name, json] { r.chosen = [r, name, json] { return show_hardware(r.io, *name, *json); }; });
}

}  // namespace sweep::cli

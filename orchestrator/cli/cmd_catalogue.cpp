// sweep models, sweep hardware: the catalogues.
#include <fmt/format.h>

#include <ostream>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"
#include "orchestrator/cli/command.h"

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

std::string teraflops(const shape::Hardware& h, const char* precision) {
  const auto peak = h.peak_for(precision);
  return peak ? fmt::format("{:.1f}", *peak / 1e12) : "-";
}

void hardware_row(Io& io, const shape::Hardware& h) {
  const std::string memory =
      h.memory_bytes ? fmt::format("{:.0f}", double(*h.memory_bytes) / (1 << 30)) : "-";
  const std::string price = h.price ? fmt::format("{:.2f}", h.price->usd_per_node_hour) : "-";
  io.out << fmt::format("{:<16} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9}  {}\n", h.name, h.gpus_per_node, memory,
                        teraflops(h, "fp32"), teraflops(h, "bf16"), teraflops(h, "fp8"), price,
                        h.price ? h.price->source + ", " + h.price->date : "");
}

}  // namespace

void add_models(Registry r) {
  auto* command = r.app.add_subcommand("models", "the model catalogue, or one model's dimensions");
  auto name = std::make_shared<std::string>();
  command->add_option("NAME", *name, "catalogue name");
  command->callback([r, name] {
    r.chosen = [r, name] { return name->empty() ? (list_models(r.io), kAnswered) : show_model(r.io, *name); };
  });
}

void add_hardware(Registry r) {
  auto* command =
      r.app.add_subcommand("hardware", "the hardware catalogue: memory, dense peak TFLOP/s, price");
  auto name = std::make_shared<std::string>();
  command->add_option("NAME", *name, "catalogue name");
  command->callback([r, name] {
    r.chosen = [r, name] {
      if (!name->empty()) {
        if (const auto found = shape::find_hardware(*name); !found) return refuse(r.io, found.error());
      }
      r.io.out << fmt::format("{:<16} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9}  {}\n", "hardware", "gpus/node",
                              "GiB/gpu", "fp32", "bf16", "fp8", "USD/h", "price from");
      for (const auto& h : shape::all_hardware())
        if (name->empty() || h.name == *name) hardware_row(r.io, h);
      return kAnswered;
    };
  });
}

}  // namespace sweep::cli

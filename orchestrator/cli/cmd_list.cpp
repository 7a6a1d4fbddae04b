// sweep list, models, hardware: what a database holds, and the names that a grid can use.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <span>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"
#include "orchestrator/answers/json_values.h"
#include "orchestrator/answers/tables/tables.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/sweeps_table.h"
#include "orchestrator/export/results.h"
#include "orchestrator/interop/recipes.h"
#include "orchestrator/run/retry_policy.h"
#include "schema/codec.h"

namespace sweep::cli {
namespace {

struct ListCommand {
  SweepSelector where;
  std::string what = "sweeps", name;  // name: of a model or hardware; empty: all
  bool json = false;
};

int print(Io& io, const Table& table, bool json) {
  if (json) {
    const auto written = exports::write_json(io.out, table);
    return written ? kAnswered : refuse(io, written.error());
  }
  io.out << answers::to_text_raw(table, io.out_is_terminal ? io.width : 0);
  return kAnswered;
}

int list_sweeps(Io& io, const ListCommand& o) {
  if (const auto there = database_is_there(o.where.db); !there) return refuse(io, there.error());
  auto store = run::open_store(o.where.db, store::Mode::kReadOnly);
  if (!store) return refuse(io, store.error());
  const auto table = sweeps_table(**store);
  return table ? print(io, *table, o.json) : refuse(io, table.error());
}

int list_recipes(Io& io, bool json) {
  Table table;
  table.columns = {"recipe"};
  for (const auto& recipe : interop::recipe_texts()) table.rows.push_back({std::string(recipe.name)});
  return print(io, table, json);
}

// The catalogues of models and hardware as tables and JSON. `name`: one entry; empty: all. Error: no entry
// has this name.
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
          {"gpu", answers::text_or_null(h.gpu)},
          {"gpus_per_node", h.gpus_per_node},
          {"memory_bytes", answers::or_null(h.memory_bytes)},
          {"peak_flops", h.peak_flops},
          {"memory_bytes_per_s", h.memory_bandwidth},
          {"intra_node_bytes_per_s", h.intra_node_bandwidth},
          {"inter_node_bytes_per_s", h.inter_node_bandwidth},
          {"compute_capability", answers::text_or_null(h.compute_capability)},
          {"price", price}};
}

template <class Entry>
nlohmann::json listed(std::span<const Entry> all, const std::string& name) {
  nlohmann::json list = nlohmann::json::array();
  for (const Entry& each : all)
    if (name.empty() || each.name == name) list.push_back(document_of(each));
  return list;
}

Expected<std::string> models_text(const std::string& name) {
  if (name.empty()) return model_table();
  const auto spec = shape::find_model(name);
  if (!spec) return tl::unexpected(spec.error());
  return fmt::format(
      "model: {{family: {}, {}layers: {}, hidden_size: {}, heads: {}, kv_heads: {}, "
      "intermediate_size: {}, vocab_size: {}, tie_embeddings: {}}}\n# {} parameters, {} of them multiply\n",
      spec->family, spec->has_encoder() ? fmt::format("encoder_layers: {}, ", spec->encoder_layers) : "",
      spec->layers, spec->hidden_size, spec->heads, spec->kv_heads, spec->intermediate_size, spec->vocab_size,
      spec->tie_embeddings, shape::parameter_count(*spec), shape::multiplied_parameter_count(*spec));
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

int show(Io& io, Expected<std::string> (*text_of)(const std::string&),
         Expected<nlohmann::json> (*document_of)(const std::string&), const std::string& name, bool as_json) {
  if (as_json) {
    const auto document = document_of(name);
    return document ? (print_document(io, *document), kAnswered) : refuse(io, document.error());
  }
  const auto text = text_of(name);
  if (!text) return refuse(io, text.error());
  io.out << *text;
  return kAnswered;
}

int show_models(Io& io, const std::string& name, bool as_json) {
  return show(io, models_text, models_json, name, as_json);
}

int show_hardware(Io& io, const std::string& name, bool as_json) {
  return show(io, hardware_text, hardware_json, name, as_json);
}

struct Catalogue {
  const char *name, *help, *entry;
  int (*show)(Io&, const std::string& name, bool as_json);
};

void add_catalogue(Registry r, const Catalogue& of) {
  auto* command = r.app.add_subcommand(of.name, of.help);
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("NAME", *name, of.entry);
  command->add_flag("--json", *json, kJsonDocument);
  command->callback(
      [r, of, name, json] { r.chosen = [r, of, name, json] { return of.show(r.io, *name, *json); }; });
}

int list(Io& io, const ListCommand& o) {
  if (o.what == "models") return show_models(io, o.name, o.json);
  if (o.what == "hardware") return show_hardware(io, o.name, o.json);
  if (!o.name.empty())
    return refuse(io, {fmt::format("'{}': only models and hardware are listed by name", o.name),
                       ErrorKind::kUnsupported, o.name});
  return o.what == "recipes" ? list_recipes(io, o.json) : list_sweeps(io, o);
}

}  // namespace

void add_list(Registry r) {
  auto* c = r.app.add_subcommand("list", "the sweeps of a database, or the models, hardware or recipes");
  auto o = std::make_shared<ListCommand>();
  c->add_option("WHAT", o->what, "sweeps, models, hardware or recipes")
      ->check(CLI::IsMember({"sweeps", "models", "hardware", "recipes"}))
      ->capture_default_str();
  c->add_option("NAME", o->name, "one model with its dimensions, or one kind of hardware; absent: all");
  add_db(*c, o->where);
  c->add_flag("--json", o->json, kJsonDocument);
  c->callback([r, o] { r.chosen = [r, o] { return list(r.io, *o); }; });
}

// The earlier spellings of `list models` and `list hardware`.
void add_models(Registry r) {
  add_catalogue(r, {"models", "the same as `sweep list models`",
                    "a model of the catalogue; absent: all of them", show_models});
}

void add_hardware(Registry r) {
  add_catalogue(r, {"hardware", "the same as `sweep list hardware`",
                    "hardware of the catalogue; absent: all of it", show_hardware});
}

}  // namespace sweep::cli

// sweep models, sweep hardware: the catalogues.
#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/catalogue.h"
#include "orchestrator/cli/as_json.h"
#include "orchestrator/cli/command.h"

namespace sweep::cli {
namespace {

struct Catalogue {
  const char *name, *help, *entry;
  Expected<std::string> (*text)(const std::string&);
  Expected<nlohmann::json> (*document)(const std::string&);
};

int print_catalogue(Io& io, const Catalogue& of, const std::string& name, bool as_json) {
  if (as_json) {
    const auto document = of.document(name);
    return document ? (print_document(io, *document), kAnswered) : refuse(io, document.error());
  }
  const auto text = of.text(name);
  if (!text) return refuse(io, text.error());
  io.out << *text;
  return kAnswered;
}

void add_catalogue(Registry r, const Catalogue& of) {
  auto* command = r.app.add_subcommand(of.name, of.help);
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("NAME", *name, of.entry);
  command->add_flag("--json", *json, "as JSON (docs/json.md)");
  command->callback([r, of, name, json] {
    r.chosen = [r, of, name, json] { return print_catalogue(r.io, of, *name, *json); };
  });
}

}  // namespace

void add_models(Registry r) {
  add_catalogue(
      r, {"models", "the model catalogue, or one model's dimensions",
          "a model of the catalogue; absent: all of them", answers::models_text, answers::models_json});
}

void add_hardware(Registry r) {
  add_catalogue(
      r, {"hardware", "the hardware catalogue: memory, dense peak TFLOP/s by precision, price",
          "hardware of the catalogue; absent: all of it", answers::hardware_text, answers::hardware_json});
}

}  // namespace sweep::cli

// sweep models, sweep hardware: the catalogues.
#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/catalogue.h"
#include "orchestrator/cli/as_json.h"
#include "orchestrator/cli/catalogues.h"
#include "orchestrator/cli/command.h"

namespace sweep::cli {
namespace {

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

struct Catalogue {
  const char *name, *help, *entry;
  int (*show)(Io&, const std::string& name, bool as_json);
};

void add_catalogue(Registry r, const Catalogue& of) {
  auto* command = r.app.add_subcommand(of.name, of.help);
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("NAME", *name, of.entry);
  command->add_flag("--json", *json, "as JSON (docs/json.md)");
  command->callback(
      [r, of, name, json] { r.chosen = [r, of, name, json] { return of.show(r.io, *name, *json); }; });
}

}  // namespace

int show_models(Io& io, const std::string& name, bool as_json) {
  return show(io, answers::models_text, answers::models_json, name, as_json);
}

int show_hardware(Io& io, const std::string& name, bool as_json) {
  return show(io, answers::hardware_text, answers::hardware_json, name, as_json);
}

void add_models(Registry r) {
  add_catalogue(r, {"models", "the model catalogue, or one model's dimensions",
                    "a model of the catalogue; absent: all of them", show_models});
}

void add_hardware(Registry r) {
  add_catalogue(r, {"hardware", "the hardware catalogue: memory, dense peak TFLOP/s by precision, price",
                    "hardware of the catalogue; absent: all of it", show_hardware});
}

}  // namespace sweep::cli

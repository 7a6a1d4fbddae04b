#include "orchestrator/cli/as_json.h"

#include <ostream>

#include "orchestrator/answers/json_values.h"

namespace sweep::cli {

using nlohmann::json;

void print_document(Io& io, const json& document) {
  io.out << document.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
}

void print_error(Io& io, const Error& error) {
  json told = {{"kind", word_of(error.kind)}, {"message", error.message}};
  if (!error.subject.empty()) told["subject"] = error.subject;
  if (!error.file.empty()) told["file"] = error.file;
  if (error.line > 0) told["line"] = error.line;
  if (error.column > 0) told["column"] = error.column;
  io.err << json{{"error", told}}.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
}

json doctor_json(const std::vector<driver::Finding>& findings, const driver::SelfTestResults& here) {
  json found = json::array(), strategies = json::array();
  bool healthy = true;
  for (const auto& each : findings) {
    healthy = healthy && each.health != driver::Health::kBad;
    found.push_back({{"what", each.what}, {"health", to_string(each.health)}, {"detail", each.detail}});
  }
  for (const auto& strategy : driver::all_strategies())
    for (std::size_t g = 0; g < driver::kBackends; ++g) {
      const auto own = here.find({std::string(strategy.name), driver::kBackendNames[g]});
      const bool known = own != here.end();
      strategies.push_back({{"strategy", strategy.name},
                            {"backend", driver::kBackendNames[g]},
                            {"tested", answers::text_or_null(std::string(strategy.tested[g]))},
                            {"here", known ? json(own->second.passed ? "passed" : "failed") : json(nullptr)},
                            {"here_date", known ? json(own->second.date) : json(nullptr)}});
    }
  return {{"healthy", healthy}, {"findings", found}, {"strategies", strategies}};
}

}  // namespace sweep::cli

#include "orchestrator/launch/probe_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "schema/codec.h"
#include "schema/frame.h"

namespace sweep::launch {

std::string first_line(const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (const auto last = line.find_last_not_of(" \t\r"); last != std::string::npos)
      return line.substr(0, last + 1);
  return {};
}

std::vector<ProbeAnswer> probes_in(const std::string& text) {
  std::vector<ProbeAnswer> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto brace = line.find('{');
    if (brace == std::string::npos) continue;
    if (const auto parsed = parse_json(line.substr(brace)); parsed && parsed->is_object())
      out.push_back({text_of(*parsed, "host"), text_of(*parsed, "version"), from_json<NodeProbe>(*parsed)});
  }
  return out;
}

std::optional<std::string> wrong_agent(const ProbeAnswer& answer, const std::string& version) {
  if (answer.version != version) return fmt::format("is version '{}'", answer.version);
  if (!answer.probe) return fmt::format("answers what cannot be read ({})", answer.probe.error().message);
  return std::nullopt;
}

bool any_bad(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& finding) { return finding.health == Health::kBad; });
}

}  // namespace sweep::launch

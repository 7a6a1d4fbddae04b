#include "orchestrator/launch/probe_answer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "schema/codec.h"

namespace sweep::launch {

std::string first_line(const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (const auto last = line.find_last_not_of(" \t\r"); last != std::string::npos)
      return line.substr(0, last + 1);
  return {};
}

std::vector<Expected<NodeProbe>> probes_in(const std::string& text) {
  std::vector<Expected<NodeProbe>> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto brace = line.find('{');
    if (brace == std::string::npos) continue;
    if (const auto parsed = parse_json(line.substr(brace)); parsed && parsed->is_object())
      out.push_back(from_json<NodeProbe>(*parsed));
  }
  return out;
}

bool any_bad(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& finding) { return finding.health == Health::kBad; });
}

}  // namespace sweep::launch

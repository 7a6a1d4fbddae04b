#include "orchestrator/driver/selftest_results.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "schema/codec.h"
#include "schema/frame.h"
#include "schema/spool.h"

namespace sweep::driver {
namespace {

namespace fs = std::filesystem;

std::string cell(const Strategy& strategy, std::size_t backend, const SelfTestResults& here) {
  const auto found = here.find({std::string(strategy.name), kBackendNames[backend]});
  const std::string tested =
      strategy.tested[backend].empty() ? "never run" : "tested " + std::string(strategy.tested[backend]);
  if (found == here.end()) return tested;
  return fmt::format("{} {}", found->second.passed ? "passed here" : "FAILED here", found->second.date);
}

}  // namespace

Expected<SelfTestResults> read_selftest_results(const fs::path& file) {
  std::error_code ec;
  SelfTestResults out;
  if (!fs::exists(file, ec)) return out;
  const auto text = files::read(file);
  const auto parsed = text ? parse_json(*text) : tl::unexpected(text.error());
  if (!parsed)
    return fail(fmt::format("{}: {}; remove it and run `sweep selftest` again", file.string(),
                            parsed.error().message));
  if (!parsed->is_object() || !parsed->contains("proofs") || !(*parsed)["proofs"].is_array())
    return fail(fmt::format("{}: it holds no results of a selftest; remove it and run `sweep selftest` again",
                            file.string()));
  for (const auto& each : (*parsed)["proofs"]) {
    if (!each.is_object()) continue;
    out[{text_of(each, "strategy"), text_of(each, "backend")}] = {
        text_of(each, "date"), flag_of(each, "passed"), text_of(each, "where"), text_of(each, "build")};
  }
  return out;
}

Expected<void> add_selftest_results(const fs::path& file, const SelfTestResults& found) {
  SWEEP_GET(auto all, read_selftest_results(file));
  for (const auto& [key, result] : found) all[key] = result;
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [key, result] : all)
    list.push_back({{"strategy", key.first},
                    {"backend", key.second},
                    {"date", result.date},
                    {"passed", result.passed},
                    {"where", result.where},
                    {"build", result.build}});
  std::error_code ec;
  fs::create_directories(file.parent_path(), ec);
  if (ec) return fail(fmt::format("{}: {}", file.parent_path().string(), ec.message()));
  return files::write_atomically(file, dump({{"proofs", std::move(list)}}) + "\n");
}

std::string strategy_table(const SelfTestResults& here) {
  std::vector<std::array<std::string, kBackends + 1>> rows{{"strategy"}};
  for (std::size_t g = 0; g < kBackends; ++g) rows[0][g + 1] = kBackendTitles[g];
  for (const Strategy& strategy : all_strategies()) {
    auto& row = rows.emplace_back();
    row[0] = fmt::format("{:<14}  {}", strategy.name, strategy.title);
    for (std::size_t g = 0; g < kBackends; ++g) row[g + 1] = cell(strategy, g, here);
  }
  std::array<std::size_t, kBackends + 1> widths{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

}  // namespace sweep::driver

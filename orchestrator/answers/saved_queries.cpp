#include "orchestrator/answers/saved_queries.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <map>

#include "base/fail.h"
#include "base/files.h"
#include "base/text.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/store/built_in_queries.h"

namespace sweep::answers {
namespace {

// The comment of the first line is the sentence that --list shows.
std::string first_comment(const std::string& sql) {
  if (!sql.starts_with("--")) return "";
  const auto text = sql.find_first_not_of("- \t");
  const auto end = sql.find('\n');
  return text == std::string::npos || text >= end ? "" : safe_text(sql.substr(text, end - text));
}

}  // namespace

std::filesystem::path query_folder() {
  const auto config = config_folder();
  return config.empty() ? config : config / "queries";
}

std::vector<SavedQuery> saved_queries(const std::filesystem::path& folder) {
  std::map<std::string, SavedQuery> found;
  for (const store::BuiltInQuery& q : store::built_in_queries()) {
    const std::string name(q.name);
    found[name] = {name, std::string(q.sentence), std::string(q.sql), "built in"};
  }
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".sql" || !is_plain_name(name)) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string sql{std::istreambuf_iterator<char>(in), {}};
    found[name] = {name, first_comment(sql), sql, entry.path().string()};
  }
  std::vector<SavedQuery> out;
  for (auto& [name, query] : found) out.push_back(std::move(query));
  return out;
}

Expected<SavedQuery> find_query(const std::filesystem::path& folder, const std::string& name) {
  std::vector<std::string> names;
  for (SavedQuery& query : saved_queries(folder)) {
    if (query.name == name) return std::move(query);
    names.push_back(query.name);
  }
  const auto close = shape::nearest(name, names);
  return fail(
      fmt::format("there is no saved query '{}'{}; `sweep query --list` shows them, and {}/{}.sql would be "
                  "one of your own",
                  name, close ? fmt::format(" (did you mean '{}'?)", *close) : "",
                  folder.empty() ? "~/.config/sweep/queries" : folder.string(), name));
}

}  // namespace sweep::answers

#include "orchestrator/answers/tables/trial_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/template.h"
#include "orchestrator/answers/format.h"
#include "schema/command_spec.h"
#include "schema/run_order.h"

namespace sweep::answers {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:=,+@%{}").find(c) != std::string_view::npos;
}

// Quotes a word for a shell; names that only a rank knows stay in braces.
std::string shown_word(const std::string& word) {
  const auto same = [](std::string_view name) { return std::optional("{" + std::string(name) + "}"); };
  const std::string text = templates::finish(word, same).value_or(word);
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string command_of(const PlanEntry& entry) {
  const auto spec = command_from(entry.trial.program);
  if (!spec) return {};
  std::string out;
  for (const auto& [name, value] : spec->environment) out += " " + name + "=" + shown_word(value);
  for (const std::string& word : spec->argv) out += " " + shown_word(word);
  for (const auto& [path, text] : spec->files)
    out += fmt::format("\n  with {{files}}/{} of {} bytes", path, text.size());
  return out.empty() ? out : out.substr(1);
}

std::string first_command(const std::vector<PlanEntry>& entries) {
  const PlanEntry* first = nullptr;
  for (const PlanEntry& entry : entries)
    if (entry.admitted && !entry.trial.program.empty() &&
        (first == nullptr || run_place(entry) < run_place(*first)))
      first = &entry;
  if (first == nullptr) return {};
  const std::string command = command_of(*first);
  if (command.empty()) return {};
  return safe_lines(fmt::format("the first trial, {}, runs:\n  {}", first->id, command)) + "\n";
}

}  // namespace sweep::answers

#include "orchestrator/answers/statistics/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/expected.h"
#include "base/number_in.h"
#include "orchestrator/answers/format.h"

namespace sweep::answers {
namespace {

struct ValueMatch {
  std::string word;                           // a text, or
  std::optional<double> low = {}, high = {};  // a number, or a range with both ends
};

std::optional<double> end_of_range(std::string_view text, double open) {
  return text.empty() ? open : number_in<double>(text);
}

ValueMatch choice_of(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (const auto dots = text.find(".."); dots != std::string_view::npos) {
    const auto low = end_of_range(text.substr(0, dots), -kInfinity);
    const auto high = end_of_range(text.substr(dots + 2), kInfinity);
    if (low && high) return {"", low, high};
  }
  const auto one = number_in<double>(text);
  return {std::string(text), one, one};
}

bool fulfils(const Value& value, const std::vector<ValueMatch>& choices) {
  const auto n = number(value);
  return std::ranges::any_of(choices, [&](const ValueMatch& c) {
    return n && c.low ? *n >= *c.low && *n <= *c.high : !c.word.empty() && show(value) == safe_text(c.word);
  });
}

std::string values_there(std::span<const ResultRow> rows, const Field& field) {
  constexpr std::size_t kShown = 12;
  const auto keys = index_of(rows, field).keys;
  std::string out;
  for (std::size_t i = 0; i < std::min(keys.size(), kShown); ++i)
    out += fmt::format("{}{}", i ? ", " : "", show(keys[i]));
  return keys.size() > kShown ? out + ", ..." : out;
}

}  // namespace

Expected<std::vector<ResultRow>> keep_only(std::vector<ResultRow> rows,
                                           std::span<const std::string> conditions) {
  for (const std::string& condition : conditions) {
    const auto equals = condition.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == condition.size())
      return fail(
          ErrorKind::kInvalidValue, condition,
          fmt::format("--only {}: write an axis and its values, as tp=1,8 or nodes=4..64", condition));
    const auto field = Field::resolve(condition.substr(0, equals), rows);
    if (!field)
      return tl::unexpected(
          retold(field.error(), fmt::format("--only {}: {}", condition, field.error().message)));
    std::vector<ValueMatch> choices;
    for (std::size_t at = equals + 1; at <= condition.size();) {
      const auto comma = std::min(condition.find(',', at), condition.size());
      choices.push_back(choice_of(std::string_view(condition).substr(at, comma - at)));
      at = comma + 1;
    }
    const auto passes = [&](const ResultRow& row) { return fulfils(field->of(row), choices); };
    if (!rows.empty() && std::ranges::none_of(rows, passes))
      return fail(ErrorKind::kNotFound, field->name(),
                  fmt::format("--only {}: no configuration has such a {}; there are: {}", condition,
                              field->name(), values_there(rows, *field)));
    std::erase_if(rows, [&](const ResultRow& row) { return !passes(row); });
  }
  return rows;
}

}  // namespace sweep::answers

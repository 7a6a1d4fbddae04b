// Tables of a workload as their file has them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/template.h"
#include "orchestrator/grid/read_values.h"
#include "orchestrator/grid/rows.h"

namespace sweep::grid {
namespace {

constexpr std::array<std::string_view, 3> kCaseKeys{"when", "value", "of"};
constexpr std::array<std::string_view, 3> kSentenceKeys{"when", "why", "of"};

// A scalar that is not too long.
Status check_text(const DocumentPtr& document, const Node& node, std::string_view what) {
  if (!node.is_scalar())
    return document->refuse(node.place, {ErrorKind::kInvalidValue, what}, "{} takes a text, not {}", what,
                            node.kind_name());
  if (node.text.size() > kLongestText)
    return document->refuse(node.place, {ErrorKind::kInvalidValue, what}, "{} is longer than {} bytes", what,
                            kLongestText);
  return {};
}

Status read_of(const DocumentPtr& document, const Node& list, CaseText& out) {
  SWEEP_TRY(need_list(*document, list, "of"));
  out.of.emplace();
  for (const NodePtr& item : list.items) {
    SWEEP_GET(auto word, read_word(*document, *item, "of"));
    out.of->push_back(std::move(word));
  }
  return {};
}

Expected<CaseText> read_case(const DocumentPtr& document, const Node& node, Place place, std::string_view key,
                             std::span<const std::string_view> known) {
  CaseText out{document, place, nullptr, nullptr, std::nullopt};
  SWEEP_TRY(check_keys(*document, node, known, fmt::format("of a case of {}", key)));
  for (const Entry& part : node.entries) {
    if (part.key == "of") {
      SWEEP_TRY(read_of(document, *part.value, out));
      continue;
    }
    SWEEP_TRY(check_text(document, *part.value, part.key));
    (part.key == "when" ? out.when : out.value) = part.value;
  }
  return out;
}

Expected<RowText> read_row(const DocumentPtr& document, const Entry& entry) {
  RowText out{entry.key, {}};
  const Node& node = *entry.value;
  if (node.kind == Node::Kind::kNull) return out;
  if (node.is_scalar()) {
    SWEEP_TRY(check_text(document, node, entry.key));
    out.cases.push_back({document, node.place, nullptr, entry.value, std::nullopt});
    return out;
  }
  const std::vector<NodePtr> cases = node.is_list() ? node.items : std::vector<NodePtr>{entry.value};
  if (cases.size() > kMaxCases)
    return document->refuse(entry.place, {ErrorKind::kInvalidValue, entry.key}, "{} has more than {} cases",
                            entry.key, kMaxCases);
  for (const NodePtr& each : cases) {
    if (each->is_scalar()) {
      SWEEP_TRY(check_text(document, *each, entry.key));
      out.cases.push_back({document, each->place, nullptr, each, std::nullopt});
      continue;
    }
    SWEEP_TRY(need_map(*document, *each, each->place, fmt::format("a case of {}", entry.key)));
    SWEEP_GET(auto one, read_case(document, *each, each->place, entry.key, kCaseKeys));
    out.cases.push_back(std::move(one));
  }
  return out;
}

}  // namespace

Expected<TableText> read_table(const DocumentPtr& document, const Entry& entry) {
  SWEEP_TRY(need_map(*document, *entry.value, entry.place, entry.key));
  if (entry.value->entries.size() > kMaxRows)
    return document->refuse(entry.place, {ErrorKind::kInvalidValue, entry.key}, "{} has more than {} rows",
                            entry.key, kMaxRows);
  TableText out;
  for (const Entry& each : entry.value->entries) {
    SWEEP_GET(auto row, read_row(document, each));
    out.push_back(std::move(row));
  }
  return out;
}

Expected<std::vector<CaseText>> read_sentences(const DocumentPtr& document, const Entry& entry) {
  SWEEP_TRY(need_list(*document, *entry.value, entry.key));
  if (entry.value->items.size() > kMaxRows)
    return document->refuse(entry.place, {ErrorKind::kInvalidValue, entry.key}, "{} has more than {} rows",
                            entry.key, kMaxRows);
  std::vector<CaseText> out;
  for (const NodePtr& item : entry.value->items) {
    SWEEP_TRY(need_map(*document, *item, item->place, entry.key));
    SWEEP_GET(auto one, read_case(document, *item, item->place, entry.key, kSentenceKeys));
    if (!one.value)
      return document->refuse(item->place, {ErrorKind::kMissing, "why"},
                              "{} has a case without 'why'; say it in a sentence", entry.key);
    out.push_back(std::move(one));
  }
  return out;
}

void overlay(TableText& table, TableText over) {
  for (RowText& row : over) {
    const auto same = std::ranges::find(table, row.key, &RowText::key);
    if (same == table.end())
      table.push_back(std::move(row));
    else
      *same = std::move(row);
  }
}

}  // namespace sweep::grid

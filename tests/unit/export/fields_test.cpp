// docs/fields.md is what the table in schema/fields.def says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "orchestrator/export/text.h"
#include "schema/axis_domain.h"
#include "schema/columns.h"

namespace sweep::exports {
namespace {

std::string type_name(std::string_view type) {
  if (type == "i64" || type == "opt_i64") return "integer";
  if (type == "f64") return "number";
  return type == "flag" ? "true or false" : "text";
}

std::string default_of(const Column& c) {
  if (c.key == "model") return "(required)";
  if (c.type == "flag") return std::get<i64>(c.default_value) != 0 ? "true" : "false";
  if (const auto* v = std::get_if<i64>(&c.default_value)) return std::to_string(*v);
  if (const auto* v = std::get_if<double>(&c.default_value)) return shortest(*v);
  if (const auto* v = std::get_if<std::string>(&c.default_value)) return *v;
  return "none";
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string values_of(const Column& c) {
  const AxisDomain* domain = axis_domain(c.key);
  if (!domain) return c.type == "flag" ? "true, false" : "";
  return domain->words.empty() ? fmt::format("{} to {}", domain->min, domain->max)
                               : fmt::format("{}", fmt::join(domain->words, ", "));
}

std::string_view better_of(const Column& c) {
  return c.better == Better::kNone ? "" : c.better == Better::kLower ? "lower" : "higher";
}

// The cells of one role between unit and meaning.
std::string details_of(const Column& c) {
  if (c.role == Role::kAxis) return fmt::format(" {} | {} |", cell(default_of(c)), values_of(c));
  return c.role == Role::kMetric ? fmt::format(" {} |", better_of(c)) : "";
}

std::string section(Role role) {
  std::string out = role == Role::kAxis ? "| key | type | unit | default | values | meaning |\n"
                                          "| --- | --- | --- | --- | --- | --- |\n"
                    : role == Role::kMetric
                        ? "| key | type | unit | better | meaning |\n| --- | --- | --- | --- | --- |\n"
                        : "| key | type | unit | meaning |\n| --- | --- | --- | --- |\n";
  for (const Column& c : columns()) {
    if (c.role != role) continue;
    out += fmt::format("| `{}` | {} | {} |{} {} |\n", c.key, type_name(c.type), cell(c.unit), details_of(c),
                       cell(c.sentence));
  }
  return out;
}

std::string fields_markdown() {
  return "# Fields\n\n"
         "<!-- Written from schema/fields.def; do not edit. A test says when it is out of date and how to "
         "renew it. -->\n\n"
         "The same names are keys of grid files (axes), columns of the view `results`, columns of CSV files "
         "and keys of JSON.\n"
         "Not measured is NULL in SQL, an empty field in CSV, `null` in JSON and `-` in tables; never 0 or "
         "-1.\n\n"
         "## Axes\n\nParameters of a trial. An axis left at its default does not change the id of a "
         "trial.\n\n" +
         section(Role::kAxis) +
         "\n## Metrics\n\nNumbers of a result. A metric that is neither better higher nor lower cannot be "
         "ranked by.\n\n" +
         section(Role::kMetric) + "\n## Other columns\n\nWhich trial it is and how it ended.\n\n" +
         section(Role::kIdentity);
}

TEST(Fields, TheCommittedReferenceIsCurrent) {
  const std::string path = std::string(SWEEP_SOURCE_DIR) + "/docs/fields.md";
  if (std::getenv("SWEEP_RENEW_GOLDEN") != nullptr)
    std::ofstream(path, std::ios::binary) << fields_markdown();
  std::ifstream in(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), fields_markdown())
      << "renew docs/fields.md: SWEEP_RENEW_GOLDEN=1 test_export --gtest_filter='Fields.*'";
}

}  // namespace
}  // namespace sweep::exports

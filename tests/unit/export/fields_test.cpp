// docs/fields.md is what the table in schema/fields.def says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

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
  if (c.type == "flag") return std::get<i64>(c.default_value) != 0 ? "true" : "false";
  if (const auto* v = std::get_if<i64>(&c.default_value)) return std::to_string(*v);
  if (const auto* v = std::get_if<double>(&c.default_value)) return shortest(*v);
  if (const auto* v = std::get_if<std::string>(&c.default_value)) return *v;
  return "none";
}

std::string values_of(const Column& c) {
  const AxisDomain* domain = axis_domain(c.key);
  if (!domain) return "";
  return domain->words.empty() ? fmt::format("{} to {}", domain->min, domain->max)
                               : fmt::format("{}", fmt::join(domain->words, " | "));
}

// What stands in brackets after a column's name.
std::string details_of(const Column& c) {
  std::vector<std::string> details{type_name(c.type)};
  if (!c.unit.empty()) details.emplace_back(c.unit);
  if (c.role == Role::kAxis) {
    if (const std::string values = values_of(c); !values.empty()) details.push_back(values);
    details.push_back(c.key == "model" ? "required" : "default " + default_of(c));
  }
  if (c.better != Better::kNone)
    details.emplace_back(c.better == Better::kLower ? "lower is better" : "higher is better");
  return fmt::format("{}", fmt::join(details, ", "));
}

// A list item, broken into lines of at most 120 characters.
std::string item_of(const Column& c) {
  std::istringstream words(fmt::format("- `{}` ({}): {}", c.key, details_of(c), c.sentence));
  std::string out, word;
  std::size_t width = 0;
  while (words >> word) {
    const bool breaks = width + 1 + word.size() > 120;
    out += breaks ? "\n  " : width == 0 ? "" : " ";
    width = breaks ? 2 + word.size() : width + (width == 0 ? 0 : 1) + word.size();
    out += word;
  }
  return out + '\n';
}

std::string section(Role role) {
  std::string out;
  for (const Column& c : columns())
    if (c.role == role) out += item_of(c);
  return out;
}

std::string fields_markdown() {
  return "# Fields\n\n"
         "<!-- Written from schema/fields.def; do not edit. A test says when it is out of date and how to "
         "renew it. -->\n\n"
         "For whoever writes a grid or reads results: each axis, metric and other column, with type, unit, "
         "values "
         "and default.\nThe same names are keys of grid files (axes), columns of the view `results`, columns "
         "of "
         "CSV files and keys of JSON. Not\nmeasured is NULL in SQL, an empty field in CSV, `null` in JSON "
         "and `-` in "
         "tables; never 0 or -1.\n\n"
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

#include "orchestrator/import/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "base/fail.h"

namespace sweep::imports {
namespace {

struct Unit {
  std::string_view field, name;
  double factor;
};

constexpr Unit kUnits[] = {
    {"bytes", "B", 1},
    {"bytes", "bytes", 1},
    {"bytes", "kB", 1e3},
    {"bytes", "MB", 1e6},
    {"bytes", "GB", 1e9},
    {"bytes", "TB", 1e12},
    {"bytes", "KiB", 0x1p10},
    {"bytes", "MiB", 0x1p20},
    {"bytes", "GiB", 0x1p30},
    {"bytes", "TiB", 0x1p40},
    {"ms", "ms", 1},
    {"ms", "ns", 1e-6},
    {"ms", "us", 1e-3},
    {"ms", "s", 1e3},
    {"ms", "min", 60e3},
    {"fraction", "fraction", 1},
    {"fraction", "%", 0.01},
    {"fraction", "percent", 0.01},
    {"%", "%", 1},
    {"%", "percent", 1},
    {"%", "fraction", 100},
    {"tokens/s", "tokens/s", 1},
    {"tokens/s", "ktokens/s", 1e3},
    {"tokens/s", "Mtokens/s", 1e6},
    {"tokens/s", "MT/h", 1e6 / 3600},
    {"W", "W", 1},
    {"W", "mW", 1e-3},
    {"W", "kW", 1e3},
    {"MHz", "MHz", 1},
    {"MHz", "GHz", 1e3},
};

}  // namespace

Expected<double> factor_to(std::string_view field_unit, std::string_view stated) {
  if (stated == field_unit) return 1.0;
  for (const Unit& unit : kUnits)
    if (unit.field == field_unit && unit.name == stated) return unit.factor;
  return fail(ErrorKind::kInvalidValue, stated, "'{}' is not a unit for it; there are: {}", stated,
              units_for(field_unit));
}

bool is_ambiguous(std::string_view field_unit) {
  static constexpr std::string_view kAmbiguous[] = {"bytes", "ms", "fraction", "%"};
  return std::ranges::find(kAmbiguous, field_unit) != std::end(kAmbiguous);
}

std::string units_for(std::string_view field_unit) {
  std::string out;
  for (const Unit& unit : kUnits)
    if (unit.field == field_unit) out += fmt::format("{}{}", out.empty() ? "" : ", ", unit.name);
  return out.empty() ? std::string(field_unit.empty() ? "none (it is a plain number)" : field_unit) : out;
}

}  // namespace sweep::imports

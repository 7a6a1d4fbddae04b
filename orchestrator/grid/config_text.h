// Configuration files that are written setting by setting: JSON, or YAML in blocks. Values keep the type that
// they look like.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "orchestrator/grid/document.h"

namespace sweep::grid {

using ConfigTree = nlohmann::ordered_json;
enum class ConfigFormat { kJson, kYaml };

// "true", "True", "null", "~", "12" and "1e-5" as what they are; anything else, and what was in quotes, as text.
ConfigTree config_value(std::string_view text);
// A YAML or JSON tree as it stands; unquoted words and numbers as YAML 1.1, which PyYAML reads, has them. But a date
// stays text, and 1e-5 is a number.
ConfigTree config_tree(const Node&);
// Sets `a.b.c`, making what is missing on the way. False: something on the way is no map.
bool set_path(ConfigTree&, std::string_view path, ConfigTree value);
// A template (base/template.h): braces of the format are doubled. {name} in a value stays a name. Text of a YAML file is
// in quotes wherever YAML 1.1 would read something else.
std::string config_template(const ConfigTree&, ConfigFormat);

}  // namespace sweep::grid

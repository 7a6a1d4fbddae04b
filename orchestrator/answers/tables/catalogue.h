// The catalogues of models and hardware as text and JSON. `name`: one entry; empty: all. Error: no entry has this name.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/expected.h"

namespace sweep::answers {

Expected<std::string> models_text(const std::string& name);
Expected<nlohmann::json> models_json(const std::string& name);
Expected<std::string> hardware_text(const std::string& name);
Expected<nlohmann::json> hardware_json(const std::string& name);

}  // namespace sweep::answers

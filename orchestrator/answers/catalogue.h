// The catalogues of models and hardware as tables and JSON. `name`: one entry; empty: all.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/expected.h"

namespace sweep::answers {

// Error: no entry has this name.
Expected<std::string> models_text(const std::string& name);
Expected<nlohmann::json> models_json(const std::string& name);
Expected<std::string> hardware_text(const std::string& name);
Expected<nlohmann::json> hardware_json(const std::string& name);

}  // namespace sweep::answers

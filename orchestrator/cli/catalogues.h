// The catalogues as commands show them.
#pragma once
#include <string>

#include "orchestrator/cli/command.h"

namespace sweep::cli {

// All of them, or the one of this name; an exit code.
int show_models(Io&, const std::string& name, bool as_json);
int show_hardware(Io&, const std::string& name, bool as_json);

}  // namespace sweep::cli

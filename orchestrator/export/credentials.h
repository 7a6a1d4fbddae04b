// Credentials: the key for one server and how it is sent. Keys come from the environment, or from a file with
// mode 0600 in the form of ~/.netrc; they are never an argument, never stored, and cut out of whatever text a
// server or a library hands back.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace sweep::exports {

struct Credentials {
  std::string authorization;         // the header's value; empty: none is sent
  std::vector<std::string> secrets;  // every form in which the key could turn up in a text
  std::string redacted(std::string text) const;
};

using Environment = std::function<std::optional<std::string>(const char*)>;  // empty counts as absent
Environment process_environment();

// The key file: --key-file, else $NETRC, else ~/.netrc.
struct KeySources {
  Environment environment = process_environment();
  std::filesystem::path key_file;  // empty: not given
};

// WANDB_API_KEY, else the password of `machine HOST`. Error: none, or none that can be one.
Expected<Credentials> wandb_credentials(const KeySources&, const std::string& host);
// MLFLOW_TRACKING_USERNAME with MLFLOW_TRACKING_PASSWORD, else MLFLOW_TRACKING_TOKEN, else `machine HOST`
// (login __token__: a bearer token), else none: many servers ask for nothing.
Expected<Credentials> mlflow_credentials(const KeySources&, const std::string& host);

std::string base64(std::string_view);

}  // namespace sweep::exports

#include "orchestrator/export/credentials.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/expected.h"
#include "base/files.h"
#include "schema/spool.h"

namespace sweep::exports {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShortestWandbKey = 40;

struct Login {
  std::string user, password;
};

fs::path key_file_of(const KeySources& sources) {
  if (!sources.key_file.empty()) return sources.key_file;
  if (const auto named = sources.environment("NETRC")) return *named;
  const auto home = sources.environment("HOME");
  return home ? fs::path(*home) / ".netrc" : fs::path();
}

std::string without_comments(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);)
    if (const auto at = line.find_first_not_of(" \t"); at != std::string::npos && line[at] != '#')
      out += line + '\n';
  return out;
}

// The entry of a host, or the file's default.
std::optional<Login> entry_of(const std::string& text, const std::string& host) {
  std::istringstream words(without_comments(text));
  std::optional<Login> exact, fallback;
  std::optional<Login>* current = nullptr;
  for (std::string word, value; words >> word;) {
    if (word == "default") {
      current = &fallback;
      if (!fallback) fallback.emplace();
    } else if (word == "machine" && words >> value) {
      current = value == host && !exact ? &exact : nullptr;
      if (current) exact.emplace();
    } else if (word == "login" && words >> value) {
      if (current) (*current)->user = value;
    } else if (word == "password" && words >> value) {
      if (current) (*current)->password = value;
    }
  }
  return exact ? exact : fallback;
}

Expected<std::optional<Login>> login_from_file(const KeySources& sources, const std::string& host) {
  const fs::path file = key_file_of(sources);
  struct stat info {};
  if (file.empty() || ::stat(file.c_str(), &info) != 0) {
    if (sources.key_file.empty()) return std::optional<Login>();
    return fail(ErrorKind::kNotFound, file.string(),
                fmt::format("--key-file {}: no such file", file.string()));
  }
  SWEEP_GET(const auto text, files::read(file, 1u << 20));
  auto login = entry_of(text, host);
  if (!login || login->password.empty()) return std::optional<Login>();
  if ((info.st_mode & 077) != 0)
    return fail(ErrorKind::kRefused, file.string(),
                fmt::format("{} holds a key for {} and others may read it (mode {:04o}); run: chmod 600 {}",
                            file.string(), host, info.st_mode & 07777, file.string()));
  if (info.st_uid != ::geteuid())
    return fail(ErrorKind::kRefused, file.string(),
                fmt::format("{} holds a key for {} and belongs to another user; use a file of your own",
                            file.string(), host));
  return login;
}

// A header is one line of visible characters; anything else would end it early.
Expected<void> check_key(const std::string& key, const std::string& from) {
  if (std::all_of(key.begin(), key.end(), [](unsigned char c) { return c > ' ' && c < 127; })) return {};
  return fail(
      ErrorKind::kInvalidValue, from,
      fmt::format("the key from {} holds a space, a line break or another character no key has", from));
}

Credentials basic(const std::string& user, const std::string& password) {
  const std::string coded = base64(user + ":" + password);
  return {"Basic " + coded, {password, coded}};
}

}  // namespace

std::string Credentials::redacted(std::string text) const {
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at))
      text.replace(at, secret.size(), "***");
  }
  return text;
}

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value && *value ? std::optional<std::string>(value) : std::nullopt;
  };
}

Expected<Credentials> wandb_credentials(const KeySources& sources, const std::string& host) {
  std::string from = "WANDB_API_KEY";
  auto key = sources.environment("WANDB_API_KEY");
  if (!key) {
    SWEEP_GET(const auto login, login_from_file(sources, host));
    if (login) key = login->password, from = key_file_of(sources).string();
  }
  if (!key)
    return fail(
        ErrorKind::kMissing, host,
        fmt::format("no key for {}: set WANDB_API_KEY, or put 'machine {} login user password KEY' into a "
                    "file with mode 600 (~/.netrc, or --key-file)",
                    host, host));
  SWEEP_TRY(check_key(*key, from));
  if (key->size() < kShortestWandbKey)
    return fail(ErrorKind::kInvalidValue, from,
                fmt::format("the key from {} has {} characters, W&B's have {} or more; is it cut off?", from,
                            key->size(), kShortestWandbKey));
  return basic("api", *key);
}

Expected<Credentials> mlflow_credentials(const KeySources& sources, const std::string& host) {
  const auto user = sources.environment("MLFLOW_TRACKING_USERNAME");
  const auto password = sources.environment("MLFLOW_TRACKING_PASSWORD");
  if (user.has_value() != password.has_value())
    return fail(
        ErrorKind::kMissing, host,
        "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD belong together; one of them is not set");
  if (user) return basic(*user, *password);
  const auto bearer = [](const std::string& token, const std::string& from) -> Expected<Credentials> {
    SWEEP_TRY(check_key(token, from));
    return Credentials{"Bearer " + token, {token}};
  };
  if (const auto token = sources.environment("MLFLOW_TRACKING_TOKEN"))
    return bearer(*token, "MLFLOW_TRACKING_TOKEN");
  SWEEP_GET(const auto login, login_from_file(sources, host));
  if (!login) return Credentials{};
  if (login->user == "__token__") return bearer(login->password, key_file_of(sources).string());
  return basic(login->user, login->password);
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    unsigned group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      out += at + i <= bytes.size() ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

}  // namespace sweep::exports

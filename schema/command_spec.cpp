#include "schema/command_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "schema/codec.h"
#include "schema/rank_variables.h"

namespace sweep {
namespace {

using nlohmann::json;

Expected<std::string> text_from(const json& value, std::string_view what) {
  if (!value.is_string()) return fail("{}: a text is expected, found {}", what, value.type_name());
  auto text = value.get<std::string>();
  if (text.find('\0') != std::string::npos) return fail("{}: it holds a NUL byte", what);
  return text;
}

Expected<std::map<std::string, std::string>> texts_from(const json& value, std::string_view what) {
  if (!value.is_object()) return fail("{}: an object is expected, found {}", what, value.type_name());
  std::map<std::string, std::string> out;
  for (const auto& [key, each] : value.items()) {
    SWEEP_GET(auto text, text_from(each, what));
    out.emplace(key, std::move(text));
  }
  return out;
}

Expected<void> check(const CommandSpec& spec) {
  if (spec.argv.empty() || spec.argv.front().empty()) return fail("command: it names no program");
  for (const auto& [path, text] : spec.files)
    if (const auto why = why_not_a_file(path); !why.empty()) return fail(why);
  for (const auto& [name, value] : spec.environment) {
    if (name.empty() || name.find('=') != std::string::npos)
      return fail(ErrorKind::kInvalidValue, name, "env: '{}' is no name of a variable", name);
    if (is_set_for_ranks(name))
      return fail(ErrorKind::kInvalidValue, name, "env: {} is set by sweep for each rank", name);
  }
  if (!spec.folder.empty() && spec.folder.front() != '/')
    return fail("folder: '{}' is no absolute path", spec.folder);
  return {};
}

Expected<void> read_member(CommandSpec& out, const std::string& key, const json& value) {
  const auto flag = [&](bool& to) -> Expected<void> {
    if (!value.is_boolean()) return fail("{}: true or false is expected", key);
    to = value.get<bool>();
    return {};
  };
  const auto texts = [&](std::map<std::string, std::string>& to) -> Expected<void> {
    SWEEP_GET(to, texts_from(value, key));
    return {};
  };
  if (key == "env") return texts(out.environment);
  if (key == "files") return texts(out.files);
  if (key == "log_patterns") return texts(out.log_patterns);
  if (key == "axes") return texts(out.axes);
  if (key == "per_node") return flag(out.per_node);
  if (key == "stop_after_steps") return flag(out.stop_after_steps);
  if (key == "folder") {
    SWEEP_GET(out.folder, text_from(value, key));
    return {};
  }
  if (key != "argv") return fail("'{}' is not a key of a command", key);
  if (!value.is_array()) return fail("argv: a list is expected");
  for (const json& each : value) {
    SWEEP_GET(auto word, text_from(each, "argv"));
    out.argv.push_back(std::move(word));
  }
  return {};
}

bool is_module_option(std::string_view word) {
  return word == "-m" || word == "--module";  // deepspeed has the long one only
}

// Launchers that ask torch.distributed.run to start their ranks, after having set an environment for them.
bool is_accelerate_launch(const std::vector<std::string>& argv) {
  const std::string_view program = argv.front();
  const auto file = program.substr(program.rfind('/') + 1);
  if (file == "accelerate-launch") return true;
  if (file == "accelerate") return argv.size() > 1 && argv[1] == "launch";
  for (std::size_t i = 0; i + 1 < argv.size() && !argv[i].ends_with(".py"); ++i)
    if (argv[i] == "-m" && argv[i + 1] == "accelerate.commands.launch") return true;
  return false;
}

// The words before a launcher's own options: the interpreter of what it starts. `at`: the first word after the launcher.
std::vector<std::string> interpreter_of(const std::vector<std::string>& argv, std::size_t& at) {
  const std::string& program = argv.front();
  const std::size_t name = program.rfind('/') + 1;  // npos + 1: no folder
  at = 1;
  if (const auto file = program.substr(name); file == "torchrun" || file == "deepspeed")
    return {name == 0 ? "python3" : program.substr(0, name) + "python3"};
  for (std::size_t i = 0; i + 1 < argv.size(); ++i)
    if (argv[i] == "-m" && is_launcher_module(argv[i + 1]))
      return at = i + 2, std::vector(argv.begin(), argv.begin() + static_cast<std::ptrdiff_t>(i));
  return {};
}

}  // namespace

bool is_launcher_module(std::string_view word) {
  return word == "torch.distributed.run" || word == "torch.distributed.launch";
}

std::string script_of(const std::vector<std::string>& argv) {
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (i > 0 && is_module_option(argv[i - 1])) {
      if (!is_launcher_module(argv[i]) && argv[i] != "sweep_trial") return argv[i];
    } else if (argv[i].ends_with(".py") || argv[i].ends_with(".sh")) {
      return argv[i];
    }
  }
  return argv.empty() ? "" : argv.front();
}

std::vector<std::string> after_prologue(const std::string& lines) {
  return {"/bin/bash", "-c", lines + "\nexec \"$@\"", "prologue"};
}

Expected<CommandSpec> without_launcher(CommandSpec spec) {
  if (!spec.per_node) return spec;
  const std::vector<std::string>& argv = spec.argv;
  constexpr std::ptrdiff_t kPrologueWords = 4;
  if (argv.size() > kPrologueWords && argv[0] == "/bin/bash" && argv[3] == "prologue") {
    CommandSpec rest = spec;
    rest.argv.erase(rest.argv.begin(), rest.argv.begin() + kPrologueWords);
    auto alone = without_launcher(std::move(rest));
    if (alone) alone->argv.insert(alone->argv.begin(), spec.argv.begin(), spec.argv.begin() + kPrologueWords);
    return alone;
  }
  if (is_accelerate_launch(argv)) {
    spec.per_node = false;
    return spec;
  }
  std::size_t at = 0;
  auto words = interpreter_of(spec.argv, at);
  if (words.empty())
    return fail(
        "one rank of this command cannot be started alone: its launcher '{}' is not torchrun, deepspeed or "
        "accelerate launch",
        spec.argv.front());
  for (; at < spec.argv.size(); ++at) {
    const std::string& word = spec.argv[at];
    const bool module = is_module_option(word);
    if (!module && (word.starts_with('-') || !word.ends_with(".py"))) continue;
    if (module) words.emplace_back("-m"), ++at;
    words.insert(words.end(), spec.argv.begin() + static_cast<std::ptrdiff_t>(at), spec.argv.end());
    spec.argv = std::move(words), spec.per_node = false;
    return spec;
  }
  return fail(
      "one rank of this command cannot be started alone: after '{}' no word is a script (.py), and none is "
      "-m",
      spec.argv.front());
}

std::string why_not_a_file(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.back() == '/')
    return fmt::format("files: '{}' is not a relative path of a file", path);
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const auto part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..")
      return fmt::format("files: '{}' leaves its folder, or has an empty part", path);
    at = end + 1;
  }
  return "";
}

json to_json(const CommandSpec& spec) {
  json out{{"argv", spec.argv}};
  const auto add = [&](const char* key, const auto& value, bool there) {
    if (there) out[key] = value;
  };
  add("env", spec.environment, !spec.environment.empty());
  add("files", spec.files, !spec.files.empty());
  add("folder", spec.folder, !spec.folder.empty());
  add("per_node", spec.per_node, spec.per_node);
  add("stop_after_steps", spec.stop_after_steps, spec.stop_after_steps);
  add("log_patterns", spec.log_patterns, !spec.log_patterns.empty());
  add("axes", spec.axes, !spec.axes.empty());
  return out;
}

Expected<CommandSpec> command_from(std::string_view program) {
  SWEEP_GET(const auto value, parse_json(program));
  return from_json<CommandSpec>(value);
}

template <>
Expected<CommandSpec> from_json<CommandSpec>(const json& value) {
  if (!value.is_object()) return fail("command: an object is expected, found {}", value.type_name());
  CommandSpec out;
  for (const auto& [key, each] : value.items()) SWEEP_TRY(read_member(out, key, each));
  SWEEP_TRY(check(out));
  return out;
}

}  // namespace sweep

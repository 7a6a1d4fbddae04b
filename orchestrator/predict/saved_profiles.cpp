#include "orchestrator/predict/saved_profiles.h"

#include <fmt/format.h>

#include <fstream>
#include <ostream>

#include "base/fail.h"
#include "base/files.h"
#include "base/input_file.h"
#include "base/text.h"
#include "base/utf8.h"

namespace sweep::predict {
namespace {

constexpr std::size_t kMostProfileBytes = 1 << 20;

void say_profile(std::ostream& messages, const TrainerProfile& p, const std::string& trainer,
                 const std::string& hardware) {
  std::string from;
  if (const Origin* origin = p.origin_of("time"))
    from = ": times " + origin->how + (origin->rows.empty() ? "" : ", " + origin->rows) + ", " + origin->date;
  messages << fmt::format("profile: {}{}\n", safe_text(p.name), safe_text(from));
  const auto warn = [&](const std::string& what) {
    messages << fmt::format(
        "warning: profile '{}' {}; `sweep predict --fit FILE.csv` fits it to rows of your own\n",
        safe_text(p.name), safe_text(what));
  };
  if (!trainer.empty() && !p.is_of(trainer)) warn(fmt::format("is not of the trainer {}", trainer));
  if (p.hardware != hardware)
    warn(fmt::format("is of {}: on {} its times follow the hardware's figures only", p.hardware, hardware));
}

Expected<std::filesystem::path> profile_path(const std::string& name) {
  if (name.ends_with(".json")) return std::filesystem::path(name);
  if (!is_plain_name(name))
    return fail("profile '{}': a name has letters, digits, - and _; or give a path that ends in .json", name);
  const auto config = config_folder();
  if (config.empty()) return fail("neither XDG_CONFIG_HOME nor HOME is set; give a path that ends in .json");
  return config / "profiles" / (name + ".json");
}

}  // namespace

Expected<TrainerProfile> find_profile(const std::string& name) {
  if (const auto* built_in = built_in_profile(name)) return *built_in;
  const auto path = profile_path(name);
  if (!path) return tl::unexpected<Error>(path.error());
  if (!std::filesystem::exists(*path))
    return fail(
        "profile '{}' is neither built in ({}) nor saved as {}; `sweep predict --fit FILE.csv --save NAME` "
        "makes one",
        name, built_in_profiles(), path->string());
  const auto file = read_input(*path, kMostProfileBytes, Streams::kRefused);
  if (!file) return tl::unexpected<Error>(file.error());
  auto profile = profile_from_json(file->bytes);
  if (!profile) return fail("{}: {}", path->string(), profile.error().message);
  return profile;
}

Expected<TrainerProfile> choose_profile(std::ostream& messages, const std::string& name,
                                        const std::string& trainer, const std::string& hardware) {
  TrainerProfile out;
  if (!name.empty()) {
    SWEEP_GET(out, find_profile(name));
  } else if (const auto* p = profile_of_trainer(trainer, hardware)) {
    out = *p;
  } else {
    return fail("no profile is of the trainer '{}'; name one with --profile: {}, or a saved one", trainer,
                built_in_profiles());
  }
  say_profile(messages, out, trainer, hardware);
  return out;
}

Expected<std::filesystem::path> save_profile(const std::string& name, TrainerProfile profile) {
  if (built_in_profile(name) != nullptr) return fail("profile '{}' is built in; choose another name", name);
  SWEEP_GET(const auto path, profile_path(name));
  profile.name = path.stem().string();
  std::error_code ec;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ec);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << to_json(profile);
  out.close();
  if (!out) return fail("{}: it cannot be written", path.string());
  return path;
}

}  // namespace sweep::predict

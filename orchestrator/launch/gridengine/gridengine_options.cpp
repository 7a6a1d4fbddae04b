#include "orchestrator/launch/gridengine/gridengine_options.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace sweep::launch {
namespace {

using Settings = nlohmann::json;

// "HH:MM:SS" or "D-HH:MM:SS", as a grid writes it.
std::optional<double> clock_seconds(const std::string& text) {
  int days = 0, hours = 0, minutes = 0, seconds = 0;
  char rest = 0;
  const auto dash = text.find('-');
  if (dash != std::string::npos && std::sscanf(text.c_str(), "%d-", &days) != 1) return std::nullopt;
  const auto* clock = text.c_str() + (dash == std::string::npos ? 0 : dash + 1);
  if (std::sscanf(clock, "%d:%d:%d%c", &hours, &minutes, &seconds, &rest) != 3) return std::nullopt;
  return 86400.0 * days + 3600.0 * hours + 60.0 * minutes + seconds;
}

Expected<std::vector<std::string>> lines_of(const Settings& section, const char* key) {
  auto lines = section.value(key, std::vector<std::string>());
  for (const auto& line : lines)
    for (const unsigned char c : line)
      if ((c < 0x20 && c != '\t') || c == 0x7f)
        return fail(
            fmt::format("launch.gridengine.{}: an entry is one line without control characters", key));
  return lines;
}

// Options that would keep a job from being found again, or from ending when its agent does.
Expected<void> check_extra(const std::vector<std::string>& extra) {
  for (const auto& text : extra) {
    if (!text.starts_with('-'))
      return fail(fmt::format(
          "launch.gridengine.extra: '{}' is no option of qsub; write it as \"-name value\"", text));
    for (const std::string_view taken :
         {"-t", "-N", "-sync", "-b", "-C", "-S", "-o", "-e", "-j", "-r", "-terse"})
      if (text.substr(0, text.find(' ')) == taken)
        return fail(fmt::format("launch.gridengine.extra: {} is set by sweep; leave it out", taken));
  }
  return {};
}

}  // namespace

Expected<GridEngineOptions> gridengine_options_from(const Settings& section) {
  GridEngineOptions out;
  out.queue = section.value("queue", "");
  out.project = section.value("project", "");
  out.parallel_environment = section.value("parallel_environment", "");
  out.pe_slots = section.value("pe_slots", out.pe_slots);
  if (section.contains("pe_slots") && out.parallel_environment.empty())
    return fail(
        "launch.gridengine.pe_slots: name the parallel environment that gives them (parallel_environment)");
  for (const auto& [key, lines] : {std::pair{"resources", &out.resources}, std::pair{"extra", &out.extra},
                                   std::pair{"prologue", &out.prologue}}) {
    auto read = lines_of(section, key);
    if (!read) return tl::unexpected(read.error());
    *lines = std::move(*read);
  }
  SWEEP_TRY(check_extra(out.extra));
  out.screen = section.value("screen", "");
  out.signal_s = section.value("signal_seconds", out.signal_s);
  out.idle_s = section.value("idle_seconds", out.idle_s);
  out.poll_s = section.value("poll_seconds", out.poll_s);
  out.confirm_gpu_hours = section.value("confirm_gpu_hours", out.confirm_gpu_hours);
  out.max_nodes = section.value("max_nodes", out.max_nodes);
  out.max_allocations = section.value("max_allocations", out.max_allocations);
  if (const double minutes = section.value("max_pending_minutes", 0.0); minutes > 0)
    out.pending_s = minutes * 60;
  if (section.contains("time")) {
    out.time_s = clock_seconds(section.at("time").get<std::string>());
    if (!out.time_s || *out.time_s < 60 || *out.time_s <= out.signal_s)
      return fail(
          "launch.gridengine.time: a limit as in \"02:00:00\" is needed, of one minute at least, and longer "
          "than "
          "signal_seconds");
  }
  return out;
}

}  // namespace sweep::launch

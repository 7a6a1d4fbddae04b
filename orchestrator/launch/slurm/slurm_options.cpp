#include "orchestrator/launch/slurm/slurm_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/slurm/slurm_state.h"

namespace sweep::launch {
namespace {

using Json = nlohmann::json;

// A directive is one line, and quotes in it are sbatch's: neither may come from a value.
Expected<std::string> one_line(const std::string& key, const std::string& value) {
  for (const char c : value)
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' || c == 0x7f)
      return fail(
          fmt::format("launch.slurm.{}: '{}' holds a quote, a backslash or a control character, "
                      "which a Slurm directive cannot carry",
                      key, value));
  return value;
}

Expected<std::map<std::string, std::string>> read_asks(const Json& section) {
  std::map<std::string, std::string> out;
  for (const auto& name : sbatch_options()) {
    std::string key = name;  // a grid spells gpus_per_node, sbatch gpus-per-node
    std::replace(key.begin(), key.end(), '-', '_');
    const auto found = section.find(key);
    if (found == section.end() || found->is_null()) continue;
    const std::string text = found->is_string() ? found->get<std::string>() : found->dump();
    auto checked = one_line(name, text);
    if (!checked) return tl::unexpected(checked.error());
    out[name] = std::move(*checked);
  }
  return out;
}

Expected<std::vector<std::string>> read_lines(const Json& section, const char* key, bool directive) {
  std::vector<std::string> out;
  for (const auto& each : section.value(key, Json::array())) {
    auto text = each.get<std::string>();
    if (text.find('\n') != std::string::npos || text.find('\0') != std::string::npos)
      return fail(fmt::format("launch.slurm.{}: an entry is one line", key));
    if (directive && text.rfind("--", 0) != 0)
      return fail(
          fmt::format("launch.slurm.{}: '{}' is no option of sbatch; write it as --name=value", key, text));
    if (directive)
      for (const char* name : {"--array", "--clusters", "--job-name", "--wait"})
        if (text.substr(0, text.find_first_of("= ")) == name)
          return fail(fmt::format(
              "launch.slurm.{}: with {} the job could not be told from others and would be lost; "
              "leave it out{}",
              key, name, name == std::string_view("--clusters") ? " and set SLURM_CLUSTERS" : ""));
    out.push_back(std::move(text));
  }
  return out;
}

Expected<SlurmContainer> read_container(const Json& section) {
  SlurmContainer out;
  const auto found = section.find("container");
  if (found == section.end()) return out;
  out.runtime = found->value("runtime", "apptainer");
  out.image = found->value("image", "");
  if (out.image.empty()) return fail("launch.slurm.container: image is missing");
  for (const char* known : {"apptainer", "singularity", "enroot", "pyxis"})
    if (out.runtime == known) {
      out.arguments = found->value("arguments", std::vector<std::string>{});
      return out;
    }
  return fail(
      fmt::format("launch.slurm.container: runtime '{}' is not known; one of apptainer, singularity, "
                  "enroot, pyxis",
                  out.runtime));
}

}  // namespace

const std::vector<std::string>& sbatch_options() {
  static const std::vector<std::string> names{
      "partition", "account",  "qos",   "constraint", "reservation",   "nodelist", "exclude",      "gres",
      "licenses",  "switches", "wckey", "mem",        "gpus-per-node", "nice",     "cpus-per-task"};
  return names;
}

Expected<SlurmOptions> slurm_options_from(const Json& section) {
  SlurmOptions out;
  auto asks = read_asks(section);
  if (!asks) return tl::unexpected(asks.error());
  out.ask = std::move(*asks);
  const auto head = read_asks(section.value("head", Json::object()));
  if (!head) return tl::unexpected(head.error());
  out.head = *head;
  const Json by_hardware = section.value("hardware", Json::object());
  for (const auto& [name, wanted] : by_hardware.items()) {
    auto read = read_asks(wanted);
    if (!read) return tl::unexpected(read.error());
    out.hardware[name] = std::move(*read);
  }
  auto extra = read_lines(section, "extra", true);
  if (!extra) return tl::unexpected(extra.error());
  out.extra = std::move(*extra);
  auto prologue = read_lines(section, "prologue", false);
  if (!prologue) return tl::unexpected(prologue.error());
  out.prologue = std::move(*prologue);
  auto container = read_container(section);
  if (!container) return tl::unexpected(container.error());
  out.container = std::move(*container);
  out.interface = section.value("interface", "");
  out.exclusive = section.value("exclusive", true);
  out.colocate = section.value("colocate", false);
  out.slots = section.value("slots", i64{0});
  if (section.contains("time")) {
    out.time_s = slurm_seconds(section.at("time").get<std::string>());
    if (!out.time_s || *out.time_s < 60)
      return fail("launch.slurm.time: a limit of at least one minute is needed, as in \"02:00:00\"");
  }
  out.signal_s = section.value("signal_seconds", out.signal_s);
  if (out.time_s && reserved_seconds(out) >= *out.time_s)
    return fail("launch.slurm: signal_seconds leaves nothing of time; make one smaller or the other larger");
  out.idle_s = section.value("idle_seconds", out.idle_s);
  out.lease_s = section.value("lease_seconds", out.lease_s);
  if (const double minutes = section.value("max_pending_minutes", 0.0); minutes > 0)
    out.pending_s = minutes * 60;
  out.poll_s = section.value("poll_seconds", out.poll_s);
  out.max_nodes = section.value("max_nodes", out.max_nodes);
  out.max_allocations = section.value("max_allocations", out.max_allocations);
  out.allocation_nodes = section.value("allocation_nodes", out.allocation_nodes);
  out.spread_s = section.value("spread_seconds", out.spread_s);
  out.confirm_gpu_hours = section.value("confirm_gpu_hours", 0.0);
  return out;
}

// Slurm looks at time limits every half minute (PERIODIC_TIMEOUT of slurmctld) and signals what is due by the
// next look.
constexpr double kSignalEarly = 30;

i64 signal_before_end(const SlurmOptions& options) {
  return std::max<i64>(1, static_cast<i64>(std::floor(options.signal_s - kSignalEarly)));
}

double reserved_seconds(const SlurmOptions& options) {
  return std::max(options.signal_s, static_cast<double>(signal_before_end(options)) + kSignalEarly);
}

std::map<std::string, std::string> sbatch_options_for(const std::string& hardware,
                                                      const SlurmOptions& options) {
  auto asks = options.ask;
  if (const auto own = options.hardware.find(hardware); own != options.hardware.end())
    for (const auto& [name, value] : own->second) asks[name] = value;
  return asks;
}

}  // namespace sweep::launch

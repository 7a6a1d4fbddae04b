#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/expected.h"
#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/launch/ssh/ssh.h"
#include "orchestrator/launch/ssh/ssh_leftovers.h"
#include "schema/hardware_kinds.h"

namespace sweep::launch {
namespace {

// Seconds of work that are worth a host: hosts wait in no queue, and start within some seconds.
constexpr double kWorthAHost = 10;

class SshLeftovers final : public Leftovers {
 public:
  SshLeftovers(SshOptions options, FarHosts found) : options_(std::move(options)), found_(std::move(found)) {}

  std::vector<std::string> lines() const override {
    std::vector<std::string> out;
    for (const auto& left : found_.left) {
      for (const auto& process : left.processes)
        out.push_back(
            fmt::format("{}: process {}  of allocation {}", left.of.host, process, left.of.allocation));
      out.push_back(
          fmt::format("{}: folder {}  of allocation {}", left.of.host, left.of.folder, left.of.allocation));
    }
    return out;
  }
  std::vector<std::string> unanswered() const override { return found_.unanswered; }
  std::vector<std::string> end() override {
    auto failed = end_far(options_, found_.left);
    if (failed.empty() && found_.unanswered.empty())  // then every part of each allocation is over
      for (const auto& left : found_.left) drop_record(left.of.spool);
    return failed;
  }

 private:
  SshOptions options_;
  FarHosts found_;
};

class SshConfig final : public LaunchConfig {
 public:
  explicit SshConfig(const SshSettings& stated)
      : screen_(*stated.screen), options_(ssh_options_from(stated)) {}

  std::string screen() const override { return screen_; }
  Expected<SlotLimit> slot_limit(i64) const override {
    SlotLimit out;
    if (!options_) return out;  // a plan may be made where the hosts are not known
    for (const auto& host : options_->all_hosts)
      if (host.slots > out.slots && host.hardware != "cpu")
        out = {host.slots, fmt::format("launch.ssh.hosts: slots of {}", host.name)};
    return out;
  }
  std::optional<std::string> lacking_hosts(std::span<const PlanEntry> entries) const override;

  Expected<RunLimits> prepare(const RunRequest&) override {
    if (!options_) return tl::unexpected(options_.error());
    RunLimits limits;
    limits.allocate_per_shape = true;
    limits.slots = options_->all_hosts.front().slots;
    for (const auto& host : options_->all_hosts) {
      limits.slots = std::min(limits.slots, host.slots);
      if (!host.price_per_hour || host.hardware.empty()) continue;  // the most expensive of several counts
      auto& price = limits.usd_per_node_hour.try_emplace(host.hardware, *host.price_per_hour).first->second;
      price = std::max(price, *host.price_per_hour);
    }
    limits.max_nodes = limits.max_allocations = static_cast<i64>(options_->all_hosts.size());
    limits.min_work_per_node_s = kWorthAHost;
    return limits;
  }
  std::unique_ptr<Launcher> make(boost::asio::io_context& io, const Programs& programs,
                                 Launcher::Sink sink) const override {
    return make_ssh(io, *options_, programs, std::move(sink));
  }
  Expected<std::vector<Finding>> check(const CheckRequest& request) const override {
    if (!options_) return tl::unexpected(options_.error());
    return check_ssh(*options_, request);
  }
  i64 nodes_to_check(i64 requested) const override {
    return options_ ? static_cast<i64>(options_->all_hosts.size()) : requested;
  }
  Expected<std::unique_ptr<Leftovers>> leftovers(std::span<const AllocationPlace> places) const override {
    std::vector<RemoteNode> nodes;
    for (const auto& place : places)
      for (auto& node : far_nodes(place.spool, place.id)) nodes.push_back(std::move(node));
    if (nodes.empty()) return std::unique_ptr<Leftovers>();
    if (!options_) return tl::unexpected(options_.error());
    return std::make_unique<SshLeftovers>(*options_, find_far(*options_, nodes));
  }

 private:
  std::string screen_;
  Expected<SshOptions> options_;  // error: no hosts are named, or they cannot be used
};

std::optional<std::string> SshConfig::lacking_hosts(std::span<const PlanEntry> entries) const {
  if (!options_) return options_.error().message;
  std::map<std::pair<std::string, i64>, i64> trials;  // key: hardware and nodes
  for (const auto& entry : entries)
    if (entry.admitted) ++trials[{entry.trial.hardware, entry.trial.nodes}];
  std::vector<std::string> beyond;
  for (const auto& [need, count] : trials) {
    const auto& [hardware, nodes] = need;
    const i64 named = usable_hosts(options_->all_hosts, hardware);
    if (named < nodes && is_mixed(hardware))
      beyond.push_back(fmt::format("{} that need {} hosts, as many of each of {}", count, nodes,
                                   fmt::join(kinds_of(hardware), " and ")));
    else if (named < nodes)
      beyond.push_back(fmt::format("{} that need {} {} {}, of which {} {} named", count, nodes, hardware,
                                   nodes == 1 ? "host" : "hosts", named, named == 1 ? "is" : "are"));
  }
  if (beyond.empty()) return std::nullopt;
  return fmt::format(
      "these trials would stay pending: {}; name more hosts of that hardware in launch.ssh.hosts",
      fmt::join(beyond, "; "));
}

}  // namespace

Expected<std::unique_ptr<LaunchConfig>> configure_ssh(const LaunchSettings& settings, i64) {
  return std::make_unique<SshConfig>(settings.ssh.value_or(SshSettings()));
}

}  // namespace sweep::launch

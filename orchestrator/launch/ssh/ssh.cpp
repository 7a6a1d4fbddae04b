#include "orchestrator/launch/ssh/ssh.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/launch/held_allocations.h"
#include "orchestrator/launch/ssh/ssh_allocation.h"

namespace sweep::launch {

namespace {

class Ssh final : public HeldAllocations<SshAllocation> {
 public:
  Ssh(boost::asio::io_context& io, SshOptions options, Programs programs, Sink sink)
      : shell_(io, options), around_{io, shell_, std::move(options), std::move(programs), std::move(sink)} {}
  ~Ssh() override { abandon_all(); }

  Expected<void> request(const AllocationRequest& wanted) override {
    if (busy_with(wanted.id)) return fail(fmt::format("allocation {} is running already", wanted.id));
    std::vector<SshHost> free, nodes;
    for (const SshHost& host : usable(wanted.avoid))
      if (!taken(host.name)) free.push_back(host);
    for (i64 node = 0; node < wanted.nodes; ++node) {
      const auto host = std::ranges::find_if(
          free, [&](const SshHost& each) { return serves(each, wanted.hardware, node); });
      if (host == free.end()) break;
      nodes.push_back(*host), free.erase(host);
    }
    if (std::ssize(nodes) < wanted.nodes)
      return fail(fmt::format("allocation {} asks for {} hosts with hardware {}; {} are free", wanted.id,
                              wanted.nodes, wanted.hardware, nodes.size()));
    auto request = fenced(wanted);
    request.slots = std::min_element(nodes.begin(), nodes.end(), [](const SshHost& a, const SshHost& b) {
                      return a.slots < b.slots;
                    })->slots;
    auto made = std::make_shared<SshAllocation>(around_, request, std::move(nodes));
    held_[wanted.id] = made;
    return made->start();
  }

  std::optional<Room> room(const std::string& hardware,
                           const std::vector<std::string>& avoid) const override {
    auto hosts = usable(avoid);
    Room out;
    out.ever = usable_hosts(hosts, hardware);
    std::erase_if(hosts, [this](const SshHost& host) { return taken(host.name); });
    out.now = usable_hosts(hosts, hardware);
    return out;
  }

  Expected<std::optional<AllocationRequest>> adopt(const AllocationId& id, const std::filesystem::path& spool,
                                                   i64 incarnation, std::uint64_t outbox_offset) override {
    SWEEP_GET(const auto record, read_record(spool, "ssh"));
    if (!record) return std::optional<AllocationRequest>();
    const auto named = record->find("hosts");
    if (named == record->end() || !named->is_array()) return std::optional<AllocationRequest>();
    AllocationRequest request = fenced({});
    request.id = id;
    request.spool = spool;
    request.incarnation = incarnation;
    request.outbox_offset = outbox_offset;
    restore(request, *record);
    std::vector<SshHost> hosts;
    for (const auto& each : *named) {
      SshHost host;
      host.name = text_of(each, "host");
      for (const SshHost& known : around_.options.all_hosts)
        if (known.name == host.name) host = known;
      hosts.push_back(std::move(host));
    }
    if (hosts.empty()) return std::optional<AllocationRequest>();
    auto made = std::make_shared<SshAllocation>(around_, request, std::move(hosts));
    held_[id] = made;
    SWEEP_TRY(made->adopt(*record));
    return std::optional<AllocationRequest>(std::move(request));
  }

 private:
  bool taken(const std::string& host) const {
    return std::any_of(held_.begin(), held_.end(), [&](const auto& each) {
      const auto& hosts = each.second->hosts();
      return !each.second->ended() &&
             std::any_of(hosts.begin(), hosts.end(), [&](const SshHost& h) { return h.name == host; });
    });
  }
  std::vector<SshHost> usable(const std::vector<std::string>& avoid) const {
    auto out = around_.options.all_hosts;
    std::erase_if(out,
                  [&](const SshHost& host) { return std::ranges::find(avoid, host.name) != avoid.end(); });
    return out;
  }

  SshShell shell_;
  SshSurroundings around_;
};

}  // namespace

std::unique_ptr<Launcher> make_ssh(boost::asio::io_context& io, SshOptions options, Programs programs,
                                   Launcher::Sink sink) {
  return std::make_unique<Ssh>(io, std::move(options), std::move(programs), std::move(sink));
}

}  // namespace sweep::launch

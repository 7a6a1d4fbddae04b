#include "orchestrator/launch/ssh.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/ssh_allocation.h"
#include "schema/codec.h"

namespace sweep::launch {

namespace {

class Ssh final : public Launcher {
 public:
  Ssh(boost::asio::io_context& io, SshOptions options, Programs programs, Sink sink)
      : shell_(io, options), around_{io, shell_, std::move(options), std::move(programs), std::move(sink)} {}
  ~Ssh() override {
    for (auto& [id, allocation] : allocations_) allocation->abandon();
  }

  Expected<void> request(const AllocationRequest& wanted) override {
    if (busy_with(wanted.id)) return fail(fmt::format("allocation {} is running already", wanted.id));
    std::vector<SshHost> free;
    for (const SshHost& host : around_.options.hosts)
      if (suits(host, wanted) && !taken(host.name) && free.size() < static_cast<std::size_t>(wanted.nodes))
        free.push_back(host);
    if (free.size() < static_cast<std::size_t>(wanted.nodes))
      return fail(fmt::format("allocation {} asks for {} hosts with hardware {}; {} are free", wanted.id,
                              wanted.nodes, wanted.hardware, free.size()));
    auto request = wanted;
    request.slots = std::min_element(free.begin(), free.end(), [](const SshHost& a, const SshHost& b) {
                      return a.slots < b.slots;
                    })->slots;
    auto made = std::make_shared<SshAllocation>(around_, request, std::move(free));
    allocations_[wanted.id] = made;
    return made->start();
  }

  Expected<std::optional<AllocationRequest>> adopt(const AllocationId& id, const std::filesystem::path& spool,
                                                   i64 incarnation, std::uint64_t outbox_offset) override {
    const auto record = SshAllocation::record_of(spool);
    if (!record) return tl::unexpected(record.error());
    if (!*record) return std::optional<AllocationRequest>();
    AllocationRequest request;
    request.id = id;
    request.spool = spool;
    request.incarnation = incarnation;
    request.outbox_offset = outbox_offset;
    request.nodes = integer_of(**record, "nodes");
    request.slots = std::max<i64>(integer_of(**record, "slots"), 1);
    request.gpus = integer_of(**record, "gpus");
    request.hardware = text_of(**record, "hardware");
    std::vector<SshHost> hosts;
    for (const auto& each : (**record)["hosts"]) {
      SshHost host;
      host.name = text_of(each, "host");
      for (const SshHost& known : around_.options.hosts)
        if (known.name == host.name) host = known;
      hosts.push_back(std::move(host));
    }
    if (hosts.empty()) return std::optional<AllocationRequest>();
    auto made = std::make_shared<SshAllocation>(around_, request, std::move(hosts));
    allocations_[id] = made;
    if (auto taken = made->take_up(**record); !taken) return tl::unexpected(taken.error());
    return std::optional<AllocationRequest>(std::move(request));
  }

  Expected<i64> post_attempt(const AllocationId& id, const Attempt& attempt) override {
    return post(id, spool::kAttempt, to_json(attempt));
  }
  Expected<void> post_cancel(const AllocationId& id, i64 attempt) override {
    return post(id, spool::kCancel, {{"attempt", attempt}}).map([](i64) {});
  }
  Expected<void> finish(const AllocationId& id, bool now) override {
    return post(id, spool::kFinish, {{"now", now}}).map([](i64) {});
  }
  void kill(const AllocationId& id) override {
    if (const auto known = allocations_.find(id); known != allocations_.end()) known->second->kill();
  }
  void acknowledge(const AllocationId& id, std::uint64_t offset) override {
    if (const auto known = allocations_.find(id); known != allocations_.end())
      known->second->acknowledge(offset);
  }

 private:
  Expected<i64> post(const AllocationId& id, std::string_view kind, const nlohmann::json& body) {
    const auto known = allocations_.find(id);
    if (known == allocations_.end()) return fail(fmt::format("there is no allocation {}", id));
    return known->second->post(kind, body);
  }
  bool busy_with(const AllocationId& id) const {
    const auto known = allocations_.find(id);
    return known != allocations_.end() && !known->second->ended();
  }
  bool taken(const std::string& host) const {
    return std::any_of(allocations_.begin(), allocations_.end(), [&](const auto& each) {
      const auto& hosts = each.second->hosts();
      return !each.second->ended() &&
             std::any_of(hosts.begin(), hosts.end(), [&](const SshHost& h) { return h.name == host; });
    });
  }
  static bool suits(const SshHost& host, const AllocationRequest& wanted) {
    const bool kind = host.hardware.empty() || host.hardware == wanted.hardware;
    return kind && std::find(wanted.avoid.begin(), wanted.avoid.end(), host.name) == wanted.avoid.end();
  }

  SshShell shell_;
  SshSurroundings around_;
  std::map<AllocationId, std::shared_ptr<SshAllocation>> allocations_;
};

}  // namespace

std::unique_ptr<Launcher> make_ssh(boost::asio::io_context& io, SshOptions options, Programs programs,
                                   Launcher::Sink sink) {
  return std::make_unique<Ssh>(io, std::move(options), std::move(programs), std::move(sink));
}

}  // namespace sweep::launch

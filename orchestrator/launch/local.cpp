// The local launcher: every allocation is a child of this process on this machine.
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/local_allocation.h"
#include "schema/codec.h"

namespace sweep::launch {

namespace {

namespace fs = std::filesystem;

fs::path beside_this_program(const char* name) {
  std::error_code ec;
  return fs::read_symlink("/proc/self/exe", ec).parent_path() / name;
}

class Local final : public Launcher {
 public:
  Local(boost::asio::io_context& io, LocalOptions options, Sink sink)
      : io_(io), options_(std::move(options)), sink_(std::move(sink)) {
    if (options_.agent.empty()) options_.agent = beside_this_program("sweep-agent");
    if (options_.rank.empty()) options_.rank = beside_this_program("sweep-rank");
  }
  ~Local() override {
    for (auto& [id, allocation] : allocations_) allocation->abandon();
  }

  Expected<void> request(const AllocationRequest& wanted) override {
    if (wanted.nodes != 1)
      return fail(
          fmt::format("this machine is one node; allocation {} asks for {}", wanted.id, wanted.nodes));
    if (const auto known = allocations_.find(wanted.id);
        known != allocations_.end() && !known->second->ended())
      return fail(fmt::format("allocation {} is running already", wanted.id));
    for (const auto& program : {options_.agent, options_.rank})
      if (::access(program.c_str(), X_OK) != 0)
        return fail(
            fmt::format("{} is not there or cannot be executed; build it or name another", program.string()));
    auto made = std::make_shared<LocalAllocation>(io_, options_, wanted, sink_);
    if (auto started = made->start(); !started) return started;
    allocations_[wanted.id] = std::move(made);
    return {};
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

  boost::asio::io_context& io_;
  LocalOptions options_;
  Sink sink_;
  std::map<AllocationId, std::shared_ptr<LocalAllocation>> allocations_;
};

}  // namespace

std::unique_ptr<Launcher> make_local(boost::asio::io_context& io, LocalOptions options, Launcher::Sink sink) {
  return std::make_unique<Local>(io, std::move(options), std::move(sink));
}

}  // namespace sweep::launch

// The local launcher: every allocation is a child of this process on this machine.
#include "orchestrator/launch/local/local.h"

#include <fmt/format.h>

#include "orchestrator/launch/held_allocations.h"
#include "orchestrator/launch/local/local_allocation.h"
#include "orchestrator/launch/programs.h"

namespace sweep::launch {

namespace {

class Local final : public HeldAllocations<LocalAllocation> {
 public:
  Local(boost::asio::io_context& io, LocalOptions options, Sink sink)
      : io_(io), options_(std::move(options)), sink_(std::move(sink)) {
    if (options_.agent.empty()) options_.agent = companion("sweep-agent");
  }
  ~Local() override { abandon_all(); }

  Expected<void> request(const AllocationRequest& wanted) override {
    if (wanted.nodes != 1 && options_.rehearsal.empty())
      return fail(
          fmt::format("this machine is one node; allocation {} asks for {}", wanted.id, wanted.nodes));
    if (busy_with(wanted.id)) return fail(fmt::format("allocation {} is running already", wanted.id));
    SWEEP_TRY(check_programs({options_.agent, options_.rank}));
    auto made = std::make_shared<LocalAllocation>(io_, options_, fenced(wanted), sink_);
    if (auto started = made->start(); !started) return started;
    held_[wanted.id] = std::move(made);
    return {};
  }

 private:
  boost::asio::io_context& io_;
  LocalOptions options_;
  Sink sink_;
};

}  // namespace

std::unique_ptr<Launcher> make_local(boost::asio::io_context& io, LocalOptions options, Launcher::Sink sink) {
  return std::make_unique<Local>(io, std::move(options), std::move(sink));
}

}  // namespace sweep::launch

#include "orchestrator/launch/launch_config.h"
#include "orchestrator/launch/local/local.h"

namespace sweep::launch {
namespace {

class LocalConfig final : public LaunchConfig {
 public:
  explicit LocalConfig(LocalSettings settings) : settings_(std::move(settings)) {}

  bool uses_this_machine() const override { return true; }
  std::string screen() const override { return *settings_.screen; }
  // On this machine each trial gets the slots that it needs: none is too many.
  Expected<SlotLimit> slot_limit(i64) const override { return SlotLimit{}; }
  Expected<RunLimits> prepare(const RunRequest& request) override {
    RunLimits limits;
    limits.slots =
        request.slots > 0 ? request.slots : settings_.slots.if_stated().value_or(request.own_slots);
    return limits;
  }
  std::unique_ptr<Launcher> make(boost::asio::io_context& io, const Programs& programs,
                                 Launcher::Sink sink) const override {
    return make_local(io, {programs.agent, programs.rank, programs.zygote, programs.screen}, std::move(sink));
  }

 private:
  LocalSettings settings_;
};

}  // namespace

Expected<std::unique_ptr<LaunchConfig>> configure_local(const LaunchSettings& settings, i64) {
  return std::make_unique<LocalConfig>(settings.local.value_or(LocalSettings()));
}

}  // namespace sweep::launch

#include "orchestrator/launch/local/local_config.h"

#include <nlohmann/json.hpp>

#include "orchestrator/launch/local/local.h"

namespace sweep::launch {
namespace {

class LocalConfig final : public LaunchConfig {
 public:
  LocalConfig(std::optional<i64> slots, std::string screen) : slots_(slots), screen_(std::move(screen)) {}

  bool uses_this_machine() const override { return true; }
  std::string screen() const override { return screen_; }
  // On this machine each trial gets the slots that it needs: none is too many.
  Expected<SlotLimit> slot_limit(i64) const override { return SlotLimit{}; }
  Expected<RunLimits> prepare(const RunRequest& request) override {
    RunLimits limits;
    limits.slots = request.slots > 0 ? request.slots : slots_.value_or(request.own_slots);
    return limits;
  }
  std::unique_ptr<Launcher> make(boost::asio::io_context& io, const Programs& programs,
                                 Launcher::Sink sink) const override {
    return make_local(io, {programs.agent, programs.rank, programs.zygote, programs.screen}, std::move(sink));
  }

 private:
  std::optional<i64> slots_;
  std::string screen_;
};

}  // namespace

Expected<std::unique_ptr<LaunchConfig>> configure_local(const nlohmann::json& settings, i64) {
  const auto slots =
      settings.contains("slots") ? std::optional(settings.at("slots").get<i64>()) : std::nullopt;
  return std::make_unique<LocalConfig>(slots, settings.value("screen", ""));
}

}  // namespace sweep::launch

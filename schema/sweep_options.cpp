#include "schema/sweep_options.h"

#include "schema/json_fields.h"

namespace sweep {
namespace {

template <class T, class F>
void for_each_option(T& o, F&& f) {
  f("imported", o.imported), f("build", o.build), f("launcher", o.launcher), f("measure", o.measure);
  f("retries_crash", o.retries_crash), f("retries_hang", o.retries_hang);
  f("retries_timeout", o.retries_timeout), f("retries_infra", o.retries_infra);
  f("trial_seconds", o.trial_seconds), f("hang_seconds", o.hang_seconds);
  f("start_seconds", o.start_seconds), f("gpu_hours", o.gpu_hours), f("usd", o.usd);
  f("slots", o.slots), f("start", o.start), f("screen", o.screen), f("rehearse_ranks", o.rehearse_ranks);
  f("confirms", o.confirms), f("strategy", o.strategy);
  f("max_trials", o.max_trials), f("at_once", o.at_once), f("least_gain", o.least_gain);
  f("auto_micro_batch", o.auto_micro_batch), f("history", o.history);
  f("skip_recompute", o.skip_recompute), f("audit", o.audit);
}

bool is_stated(bool flag) {
  return flag;
}
bool is_stated(const std::string& text) {
  return !text.empty();
}
template <class T>
bool is_stated(const std::optional<T>& member) {
  return member.has_value();
}

}  // namespace

std::string to_text(const SweepOptions& o) {
  auto j = nlohmann::json::object();
  for_each_option(o, [&](const char* key, const auto& member) {
    if (is_stated(member)) j[key] = fields::value(member);
  });
  if (o.launch) j["launch"] = to_json(*o.launch);
  return dump(j);
}

Expected<SweepOptions> sweep_options_from(std::string_view text) {
  const auto j = parse_json(text.empty() ? "{}" : text);
  if (!j) return fail("the sweep's stored options: " + j.error().message);
  SweepOptions out;
  fields::Reader in(*j, "the sweep's stored options");
  for_each_option(out, [&](const char* key, auto& member) { in.get(key, member); });
  if (j->is_object() && j->contains("launch")) {
    auto launch = launch_settings_from(j->at("launch"));
    if (!launch) return fail("the sweep's stored options: " + launch.error().message);
    out.launch = std::move(*launch);
  }
  return in.done(std::move(out));
}

void keep_strategy(const Strategy& strategy, SweepOptions& o) {
  o.strategy = to_string(strategy.kind);
  o.max_trials = strategy.max_trials, o.at_once = strategy.at_once, o.least_gain = strategy.least_gain;
  o.auto_micro_batch = strategy.auto_micro_batch;
  o.history = strategy.history, o.skip_recompute = strategy.skip_recompute;
  if (strategy.audit > 0) o.audit = strategy.audit;
}

Strategy kept_strategy(const SweepOptions& o) {
  Strategy out;
  out.kind = strategy_from(o.strategy).value_or(out.kind);
  out.max_trials = o.max_trials.value_or(out.max_trials);
  out.at_once = o.at_once.value_or(out.at_once);
  out.least_gain = o.least_gain.value_or(out.least_gain);
  out.auto_micro_batch = o.auto_micro_batch;
  out.history = o.history, out.skip_recompute = o.skip_recompute;
  out.audit = o.audit.value_or(out.audit);
  return out;
}

}  // namespace sweep

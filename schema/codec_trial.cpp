// JSON of what is requested: model, trial, measuring plan, deadlines, attempt.
#include "schema/json_fields.h"

namespace sweep {

using fields::Reader;
using fields::value;
using nlohmann::json;

namespace {

// Calls f(key, member) for every dimension of a model: the one list its JSON and its id follow.
template <class Spec, class F>
void for_each_dimension(Spec& s, F&& f) {
  f("family", s.family), f("layers", s.layers), f("hidden_size", s.hidden_size), f("heads", s.heads);
  f("kv_heads", s.kv_heads), f("head_dim", s.head_dim), f("intermediate_size", s.intermediate_size);
  f("vocab_size", s.vocab_size), f("max_positions", s.max_positions), f("tie_embeddings", s.tie_embeddings);
  f("attention_bias", s.attention_bias), f("linear_bias", s.linear_bias), f("rmsnorm", s.rmsnorm);
  f("swiglu", s.swiglu), f("rope", s.rope), f("norm_eps", s.norm_eps), f("rope_theta", s.rope_theta);
  f("rope_scaling", s.rope_scaling), f("sliding_window", s.sliding_window);
  f("sliding_window_pattern", s.sliding_window_pattern), f("rope_local_theta", s.rope_local_theta);
  f("rope_linear_factor", s.rope_linear_factor), f("query_pre_attn_scalar", s.query_pre_attn_scalar);
  f("experts", s.experts), f("experts_per_token", s.experts_per_token),
      f("router_aux_coef", s.router_aux_coef);
  f("kv_lora_rank", s.kv_lora_rank), f("q_lora_rank", s.q_lora_rank), f("rope_head_dim", s.rope_head_dim);
  f("v_head_dim", s.v_head_dim), f("yarn", s.yarn), f("shared_experts", s.shared_experts);
  f("dense_layers", s.dense_layers), f("dense_intermediate_size", s.dense_intermediate_size);
  f("expert_groups", s.expert_groups), f("groups_per_token", s.groups_per_token);
  f("routed_scaling", s.routed_scaling), f("encoder_layers", s.encoder_layers);
}

template <class T, class F>
void for_each_measure(T& m, F&& f) {
  f("warmup_steps", m.warmup_steps), f("steps", m.steps), f("repeats", m.repeats);
}

template <class T, class F>
void for_each_deadline(T& d, F&& f) {
  f("startup_s", d.startup_s), f("first_step_s", d.first_step_s), f("step_s", d.step_s);
  f("total_s", d.total_s), f("grace_s", d.grace_s), f("around_s", d.around_s);
}

}  // namespace

json to_json(const RopeScaling& r) {
  return {{"factor", r.factor},
          {"low_freq_factor", r.low_freq_factor},
          {"high_freq_factor", r.high_freq_factor},
          {"original_max_positions", r.original_max_positions}};
}

template <>
Expected<RopeScaling> from_json<RopeScaling>(const json& j) {
  RopeScaling r;
  Reader in(j, "rope_scaling");
  in.get("factor", r.factor).get("low_freq_factor", r.low_freq_factor);
  in.get("high_freq_factor", r.high_freq_factor).get("original_max_positions", r.original_max_positions);
  return in.done(r);
}

// `truncate` is left out where it is on, as it was when ids were first given.
json to_json(const YarnScaling& y) {
  json j = {{"factor", y.factor},
            {"beta_fast", y.beta_fast},
            {"beta_slow", y.beta_slow},
            {"mscale", y.mscale},
            {"mscale_all_dim", y.mscale_all_dim},
            {"original_max_positions", y.original_max_positions}};
  if (!y.truncate) j["truncate"] = false;
  return j;
}

template <>
Expected<YarnScaling> from_json<YarnScaling>(const json& j) {
  YarnScaling y;
  Reader in(j, "yarn");
  in.get("factor", y.factor).get("beta_fast", y.beta_fast).get("beta_slow", y.beta_slow);
  in.get("mscale", y.mscale).get("mscale_all_dim", y.mscale_all_dim);
  in.get("original_max_positions", y.original_max_positions).get("truncate", y.truncate);
  return in.done(y);
}

json to_json(const ModelSpec& s) {
  json j = json::object();
  for_each_dimension(s, [&](const char* key, const auto& member) { j[key] = value(member); });
  return j;
}

template <>
Expected<ModelSpec> from_json<ModelSpec>(const json& j) {
  ModelSpec s;
  Reader in(j, "model");
  for_each_dimension(s, [&](const char* key, auto& member) { in.get(key, member); });
  return in.done(s);
}

json to_json(const Trial& t) {
  json j = {{"model", t.model}, {"spec", to_json(t.spec)}};
  for_each_axis(t,
                [&](const FieldInfo& info, const auto&, const auto& member) { j[info.key] = value(member); });
  if (!t.labels.empty()) j["labels"] = t.labels;
  return j;
}

template <>
Expected<Trial> from_json<Trial>(const json& j) {
  Trial t;
  Reader in(j, "trial");
  in.get("model", t.model).get("spec", t.spec).get("labels", t.labels);
  for_each_axis(t, [&](const FieldInfo& info, const auto&, auto& member) { in.get(info.key, member); });
  return in.done(std::move(t));
}

json to_json(const MeasurePlan& m) {
  json j;
  for_each_measure(m, [&](const char* key, const auto& member) { j[key] = value(member); });
  // Left out where it is off: measuring plans are compared as text.
  if (m.early_stop) j["early_stop"] = true;
  return j;
}

template <>
Expected<MeasurePlan> from_json<MeasurePlan>(const json& j) {
  MeasurePlan m;
  Reader in(j, "measure");
  for_each_measure(m, [&](const char* key, auto& member) { in.get(key, member); });
  in.get("early_stop", m.early_stop);
  return in.done(m);
}

json to_json(const Deadlines& d) {
  json j;
  for_each_deadline(d, [&](const char* key, const auto& member) { j[key] = value(member); });
  return j;
}

template <>
Expected<Deadlines> from_json<Deadlines>(const json& j) {
  Deadlines d;
  Reader in(j, "deadlines");
  for_each_deadline(d, [&](const char* key, auto& member) { in.get(key, member); });
  return in.done(d);
}

json to_json(const Attempt& a) {
  return {{"id", a.id},
          {"trial_id", a.trial_id},
          {"trial", to_json(a.trial)},
          {"measure", to_json(a.measure)},
          {"deadlines", to_json(a.deadlines)},
          {"log_limit_bytes", a.log_limit_bytes},
          {"start", to_string(a.start)},
          {"usd_per_node_hour", value(a.usd_per_node_hour)},
          {"checkpoint_folder", a.checkpoint_folder},
          {"predicted_s", value(a.predicted_s)},
          {"stop_above_ms", value(a.stop_above_ms)},
          {"rehearsed_ranks", a.rehearsed_ranks}};
}

template <>
Expected<Attempt> from_json<Attempt>(const json& j) {
  Attempt a;
  Reader in(j, "attempt");
  in.get("id", a.id).get("trial_id", a.trial_id).get("trial", a.trial).get("measure", a.measure);
  in.get("deadlines", a.deadlines).get("log_limit_bytes", a.log_limit_bytes).get("start", a.start);
  in.get("usd_per_node_hour", a.usd_per_node_hour).get("rehearsed_ranks", a.rehearsed_ranks);
  in.get("checkpoint_folder", a.checkpoint_folder);
  in.get("predicted_s", a.predicted_s).get("stop_above_ms", a.stop_above_ms);
  if (a.runs_command()) SWEEP_TRY(command_from(a.trial.program));
  return in.done(std::move(a));
}

}  // namespace sweep

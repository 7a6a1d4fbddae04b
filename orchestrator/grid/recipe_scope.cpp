#include "orchestrator/grid/recipe_scope.h"

#include <algorithm>

#include "bench_kernels/shape/family.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/splits.h"

namespace sweep::grid {
namespace {

const char* number_name(shape::Number number) {
  switch (number) {
    case shape::Number::kFp32:
      return "fp32";
    case shape::Number::kBf16:
      return "bf16";
    case shape::Number::kFp16:
      return "fp16";
  }
  return "";
}

Cell real(double value) {
  Cell out{0};
  out.r = value;
  return out;
}

}  // namespace

RecipeScope::RecipeScope(const Scope& of_grid, const MeasurePlan& measure, const std::string& script)
    : scope_(of_grid) {
  add(Type::kBool,
      {"has_model", "rope", "rms_norm", "swiglu", "gelu_gate", "norm_adds_one", "qk_norm", "post_norms",
       "linear_bias", "attention_bias", "tie_embeddings"},
      {"model"});
  add(Type::kInt,
      {"max_positions", "sliding_window", "sliding_window_pattern", "experts", "experts_per_token",
       "padded_vocab"},
      {"model"});
  add(Type::kReal, {"rope_theta", "rope_factor", "norm_eps", "router_aux_coef"}, {"model"});
  add(Type::kText, {"family"}, {"model"});
  add(Type::kText, {"gradient_type"}, {"precision", "grad_dtype"});
  add(Type::kInt, {"gradient_bytes"}, {"precision", "grad_dtype"});
  add(Type::kInt, {"shard_ranks"}, {"dp_shard"});
  add(Type::kInt, {"initial_loss_scale"}, {"initial_scale_power"});
  add(Type::kInt, {"warmup_steps", "steps", "total_steps"}, {});
  if (!script.empty()) add(Type::kText, {"script"}, {});
  for (const shape::Family* family : shape::all_families()) scope_.words.id(family->name);
  for (const char* type : {"fp32", "bf16", "fp16"}) scope_.words.id(type);
  constants_.cells.assign(scope_.size(), Cell{0});
  constants_.held.assign(scope_.size(), Presence::kAbsent);
  set(constants_, "warmup_steps", {measure.warmup_steps});
  set(constants_, "steps", {measure.steps});
  set(constants_, "total_steps", {measure.warmup_steps + measure.steps});
  if (!script.empty()) set(constants_, "script", {scope_.words.id(script)});
}

void RecipeScope::add(Type type, std::initializer_list<const char*> names,
                      std::initializer_list<const char*> of_axes) {
  for (const char* name : names) {
    if (scope_.find(name)) continue;
    const Slot slot = scope_.add_label(name);
    scope_.set_type(slot, type);
    added_.insert(name);
    for (const char* axis : of_axes) reads_[slot].insert(scope_.slot(axis));
    if (of_axes.size() == 0) reads_[slot] = {};
  }
}

void RecipeScope::set(Point& point, std::string_view name, Cell value) const {
  if (!added_.contains(name)) return;
  const Slot slot = scope_.slot(name);
  point.cells[slot] = value;
  point.held[slot] = Presence::kValue;
}

Point RecipeScope::point_of(Point point, const Trial& t) const {
  const std::size_t own = point.cells.size();
  point.cells.resize(scope_.size(), Cell{0});
  point.held.resize(scope_.size(), Presence::kAbsent);
  for (std::size_t slot = own; slot < constants_.cells.size(); ++slot) {
    point.cells[slot] = constants_.cells[slot];
    point.held[slot] = constants_.held[slot];
  }
  const ModelSpec& m = t.spec;
  const auto flag = [&](const char* name, bool value) { set(point, name, {value ? 1 : 0}); };
  const auto word = [&](const char* name, std::string_view value) {
    if (const auto id = scope_.words.find(value)) set(point, name, {*id});
  };
  flag("has_model", m.layers > 0);
  flag("rope", m.rope), flag("rms_norm", m.rmsnorm), flag("swiglu", m.swiglu);
  flag("gelu_gate", shape::family_of(m).gelu_gate), flag("norm_adds_one", shape::family_of(m).norm_adds_one);
  flag("qk_norm", shape::family_of(m).qk_norm), flag("post_norms", shape::family_of(m).post_norms());
  flag("linear_bias", m.linear_bias), flag("attention_bias", m.attention_bias);
  flag("tie_embeddings", m.tie_embeddings);
  set(point, "max_positions", {m.max_positions});
  if (m.sliding_window) set(point, "sliding_window", {*m.sliding_window});
  set(point, "sliding_window_pattern", {m.sliding_window_pattern});
  set(point, "experts", {m.experts}), set(point, "experts_per_token", {m.experts_per_token});
  set(point, "padded_vocab", {shape::padded_vocab(t)});
  const auto gradients = shape::state_types(t).gradients;
  set(point, "gradient_bytes", {shape::bytes_of(gradients)});
  set(point, "shard_ranks", {t.dp_shard.value_or(t.dp)});
  set(point, "initial_loss_scale", {i64{1} << std::clamp<i64>(t.initial_scale_power, 0, 62)});
  set(point, "rope_theta", real(m.rope_theta)), set(point, "norm_eps", real(m.norm_eps));
  set(point, "router_aux_coef", real(m.router_aux_coef));
  if (m.rope_scaling) set(point, "rope_factor", real(m.rope_scaling->factor));
  word("family", m.family), word("gradient_type", number_name(gradients));
  return point;
}

Point point_of(const Trial& trial, Scope& scope) {
  Point out;
  const std::size_t known = scope.slot("world") + std::size_t{1};  // point_of() adds what follows
  out.cells.assign(known, Cell{0});
  out.held.assign(known, Presence::kValue);
  Slot slot = 0;
  for_each_axis(trial, [&](const FieldInfo&, const auto&, const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    Cell& cell = out.cells[slot];
    if constexpr (AxisChoice<Value>) {
      cell.i = scope.words.id(to_string(value));
    } else if constexpr (std::is_same_v<Value, std::string>) {
      cell.i = scope.words.id(value);
    } else if constexpr (std::is_same_v<Value, std::optional<i64>>) {
      cell.i = value.value_or(0);
      if (!value) out.held[slot] = Presence::kAbsent;
    } else {
      cell.i = value;
    }
    ++slot;
  });
  out.cells[scope.slot("model")].i = scope.words.id(trial.model);
  for (const auto& [name, value] : dimensions_of(trial.spec)) out.cells[scope.slot(name)].i = value;
  out.cells[scope.slot("world")].i = trial.world();
  return out;
}

}  // namespace sweep::grid

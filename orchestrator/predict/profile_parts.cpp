#include "orchestrator/predict/profile_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/predict/memory_model.h"

namespace sweep::predict {
namespace {

using PartJson = nlohmann::ordered_json;

constexpr std::size_t kMostParts = 256;
constexpr double kUnbounded = 1e300;

const PartJson& part_at(const PartJson& from, const char* key) {
  static const PartJson none;
  const auto it = from.find(key);
  return it == from.end() ? none : *it;
}

bool read_words(const PartJson& from, std::vector<std::string>& out) {
  if (from.is_null()) return true;
  if (!from.is_array() || from.size() > kMostParts) return false;
  for (const PartJson& word : from) {
    if (!word.is_string()) return false;
    out.push_back(word.get<std::string>());
  }
  return true;
}

double finite_or(const PartJson& from, double otherwise) {
  return from.is_number() && std::isfinite(from.get<double>()) ? from.get<double>() : otherwise;
}

Expected<Effect> read_effect(const PartJson& from, std::size_t index) {
  SWEEP_TRY(
      check_keys(from, fmt::format("effects[{}]: ", index), {"effect", "share", "hardware", "when", "how"}));
  Effect e;
  const std::string word =
      part_at(from, "effect").is_string() ? part_at(from, "effect").get<std::string>() : "";
  const auto found = std::ranges::find(effect_words(), word);
  if (found == effect_words().end())
    return fail("effects: 'effect' is none of {}", fmt::join(effect_words(), ", "));
  e.kind = static_cast<EffectKind>(found - effect_words().begin());
  e.share = finite_or(part_at(from, "share"), -1);
  for (const auto& [key, text] : {std::pair("hardware", &e.hardware), std::pair("how", &e.how)}) {
    if (!part_at(from, key).is_string()) return fail("effects: {} does not say '{}'", word, key);
    *text = part_at(from, key).get<std::string>();
  }
  if (e.share <= 0 || e.share > 1) return fail("effects: 'share' of {} is not within 0 and 1", word);
  if (!part_at(from, "when").is_object() || part_at(from, "when").empty())
    return fail("effects: {} does not say 'when'", word);
  for (const auto& [of, range] : part_at(from, "when").items()) {
    if (effect_quantity(of) == nullptr || !range.is_array() || range.size() != 2)
      return fail("effects: '{}' of {} is no quantity with two bounds", of, word);
    e.when.push_back({of, finite_or(range[0], -kUnbounded), finite_or(range[1], kUnbounded)});
  }
  return e;
}

Expected<void> read_residual(const PartJson& from, TimeResidual& out) {
  if (from.is_null()) return {};
  SWEEP_TRY(check_keys(from, "residual: ", {"hardware", "spread", "noise", "axes", "places"}));
  const auto wrong = [] { return fail("residual: no hardware, spread, noise, axes and places of them"); };
  std::vector<std::string> axes;
  if (!from.is_object() || !read_words(part_at(from, "axes"), axes) || axes.size() != residual_axes().size())
    return wrong();
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != residual_axes()[i].name) return wrong();
  out.spread = finite_or(part_at(from, "spread"), 0), out.noise = finite_or(part_at(from, "noise"), 0);
  const PartJson& places = part_at(from, "places");
  if (!part_at(from, "hardware").is_string() || out.spread <= 0 || out.noise <= 0 || !places.is_array() ||
      places.size() > kMostParts)
    return wrong();
  out.hardware = part_at(from, "hardware").get<std::string>();
  for (const PartJson& place : places) {
    if (!place.is_array() || place.size() != axes.size() + 1) return wrong();
    ResidualPlace at{};
    for (std::size_t i = 0; i < axes.size(); ++i) at[i] = finite_or(place[i], 0);
    out.places.push_back(at), out.off.push_back(finite_or(place[axes.size()], 0));
  }
  out.solve();
  return {};
}

PartJson rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

PartJson residual_json(const TimeResidual& r) {
  PartJson out{{"hardware", r.hardware}, {"spread", r.spread}, {"noise", r.noise}};
  out["axes"] = PartJson::array(), out["places"] = PartJson::array();
  for (const ResidualAxis& axis : residual_axes()) out["axes"].push_back(axis.name);
  for (std::size_t i = 0; i < r.places.size(); ++i) {
    PartJson place = PartJson::array();
    for (const double at : r.places[i]) place.push_back(rounded(at));
    place.push_back(rounded(r.off[i]));
    out["places"].push_back(std::move(place));
  }
  return out;
}

PartJson effect_json(const Effect& e) {
  PartJson when = PartJson::object();
  const auto bound = [](double value) { return std::abs(value) < kUnbounded ? PartJson(value) : PartJson(); };
  for (const EffectRange& range : e.when) when[range.of] = {bound(range.least), bound(range.most)};
  return {{"effect", effect_words()[static_cast<std::size_t>(e.kind)]},
          {"share", e.share},
          {"hardware", e.hardware},
          {"when", std::move(when)},
          {"how", e.how}};
}

}  // namespace

Expected<void> check_keys(const PartJson& object, const std::string& place,
                          const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    const auto close = shape::nearest(key, known);
    return fail(ErrorKind::kUnknownName, key, "{}'{}' is no key of a profile{}; it is one of {}", place, key,
                close ? fmt::format(" (did you mean '{}'?)", *close) : "", fmt::join(known, ", "));
  }
  return {};
}

void write_parts(const TrainerProfile& p, nlohmann::ordered_json& out) {
  out["trainers"] = p.trainers, out["rules"] = p.rules;
  if (!p.effects.empty()) {
    out["effects"] = PartJson::array();
    for (const Effect& e : p.effects) out["effects"].push_back(effect_json(e));
  }
  if (!p.residual.places.empty()) out["residual"] = residual_json(p.residual);
}

Expected<void> read_parts(const nlohmann::ordered_json& whole, TrainerProfile& p) {
  if (!read_words(part_at(whole, "trainers"), p.trainers) || !read_words(part_at(whole, "rules"), p.rules))
    return fail("'trainers' and 'rules' are lists of words");
  for (const std::string& rule : p.rules)
    if (std::ranges::find(rule_words(), rule) == rule_words().end())
      return fail("rules: '{}' is none of {}", rule, fmt::join(rule_words(), ", "));
  const PartJson& effects = part_at(whole, "effects");
  if (!effects.is_null() && !effects.is_array()) return fail("effects: it is no list");
  if (effects.size() > kMostParts) return fail("effects: there are too many");
  for (std::size_t i = 0; i < effects.size(); ++i) {
    auto effect = read_effect(effects[i], i);
    if (!effect) return tl::unexpected<Error>(effect.error());
    p.effects.push_back(std::move(*effect));
  }
  return read_residual(part_at(whole, "residual"), p.residual);
}

}  // namespace sweep::predict

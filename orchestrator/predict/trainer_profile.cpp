#include "orchestrator/predict/trainer_profile.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sweep::predict {
namespace {

using Json = nlohmann::ordered_json;
using M = MemoryParameters;
using T = TimeParameters;
using F = ProfileFacts;

constexpr std::array kMemory{
    Parameter<M>{"base_gib", &M::base_gib, "GiB that no configuration changes"},
    Parameter<M>{"gradient_copies", &M::gradient_copies,
                 "16-bit gradients that find no freed block, in sets of them"},
    Parameter<M>{"scatter_copies", &M::scatter_copies,
                 "ZeRO: share of the reduce-scatter's copies that finds no freed block"},
    Parameter<M>{"fragmentation", &M::fragmentation,
                 "share of the activations lost between micro-batches in flight"},
    Parameter<M>{"gather_buffers", &M::gather_buffers, "whole-sequence tensors a tensor-parallel rank keeps"},
    Parameter<M>{"held_most", &M::held_most,
                 "whole-sequence tensors that wait for the communication stream, at most"},
    Parameter<M>{"held_filling", &M::held_filling, "of them while a pipeline fills, at most"},
    Parameter<M>{"held_from", &M::held_from,
                 "full pipeline: ln(GPU / host time of a layer) from which they wait"},
    Parameter<M>{"held_offset", &M::held_offset, "while a pipeline fills: log-odds that they wait"},
    Parameter<M>{"held_per_tp", &M::held_per_tp, "change with ln(tp)"},
    Parameter<M>{"held_per_balance", &M::held_per_balance,
                 "change with ln(slowest later stage / first stage)"},
    Parameter<M>{"held_until", &M::held_until,
                 "no pipeline: ln(GPU / host time of a layer) up to which they wait"}};

constexpr std::array kTime{
    Parameter<T>{"matmul_share", &T::matmul_share, "of the dense peak, for wide matrices"},
    Parameter<T>{"half_width", &T::half_width, "hidden_size / tp at which half of that is reached"},
    Parameter<T>{"bandwidth_share", &T::bandwidth_share,
                 "of the memory bandwidth, for everything but matrix products"},
    Parameter<T>{"layer_launch_s", &T::layer_launch_s, "host time of a layer, forward and backward"},
    Parameter<T>{"stage_launch_s", &T::stage_launch_s,
                 "host time of a micro-batch on a stage, beyond its layers"},
    Parameter<T>{"hop_launch_s", &T::hop_launch_s,
                 "more host time of a layer under tp, where collectives start slowly"},
    Parameter<T>{"hop_power", &T::hop_power, "its growth with tp"},
    Parameter<T>{"near_latency_s", &T::near_latency_s, "of a tp collective inside a node"},
    Parameter<T>{"near_share", &T::near_share, "of the link inside a node; above 1: overlapped"},
    Parameter<T>{"far_latency_s", &T::far_latency_s, "of a tp collective per node it spans"},
    Parameter<T>{"far_share", &T::far_share, "of the measured bandwidth across nodes; above 1: overlapped"},
    Parameter<T>{"slow_message_s", &T::slow_message_s, "of a pipeline message on the slow path"},
    Parameter<T>{"data_parallel_share", &T::data_parallel_share,
                 "time of data-parallel collectives over what bandwidth says"},
    Parameter<T>{"optimizer_share", &T::optimizer_share,
                 "time of the optimizer over what memory bandwidth says"},
    Parameter<T>{"retry_s", &T::retry_s, "of a micro-batch when the allocator frees and asks again"}};

constexpr std::array kFacts{Parameter<F>{"weight_bytes", &F::weight_bytes, ""},
                            Parameter<F>{"gradient_bytes", &F::gradient_bytes, ""},
                            Parameter<F>{"optimizer_bytes", &F::optimizer_bytes, ""},
                            Parameter<F>{"logit_bytes", &F::logit_bytes, ""},
                            Parameter<F>{"hidden_saved", &F::hidden_saved, ""},
                            Parameter<F>{"intermediate_saved", &F::intermediate_saved, ""},
                            Parameter<F>{"reported_unit", &F::reported_unit, ""},
                            Parameter<F>{"need_share", &F::need_share, ""},
                            Parameter<F>{"need_logits", &F::need_logits, ""},
                            Parameter<F>{"need_whole", &F::need_whole, ""},
                            Parameter<F>{"need_held", &F::need_held, ""},
                            Parameter<F>{"unsure_band", &F::unsure_band, ""},
                            Parameter<F>{"reserved_share", &F::reserved_share, ""},
                            Parameter<F>{"retry_share", &F::retry_share, ""}};

// Profiles saved by earlier versions lack these.
constexpr std::array kLaterFacts{Parameter<F>{"score_bytes", &F::score_bytes, ""},
                                 Parameter<F>{"update_bytes", &F::update_bytes, ""}};

using U = Uncertainty;
constexpr std::array kErrors{Parameter<U>{"memory", &U::memory, ""},
                             Parameter<U>{"memory_tensor", &U::memory_tensor, ""},
                             Parameter<U>{"time", &U::time, ""}, Parameter<U>{"time_far", &U::time_far, ""},
                             Parameter<U>{"time_many", &U::time_many, ""}};

constexpr std::array<std::pair<const char*, bool F::*>, 9> kSwitches{{
    {"joint_qkv", &F::joint_qkv},
    {"splits_by_cost", &F::splits_by_cost},
    {"reports_first_stage", &F::reports_first_stage},
    {"warmup_needs_micros", &F::warmup_needs_micros},
    {"tied_zero0_hangs", &F::tied_zero0_hangs},
    {"follows_step", &F::follows_step},
    {"eager", &F::eager},
    {"whole_logits", &F::whole_logits},
    {"keeps_gradients", &F::keeps_gradients},
}};

template <class S, class Table>
Json numbers_of(const S& values, const Table& table) {
  Json out = Json::object();
  for (const auto& p : table) out[p.name] = values.*(p.member);
  return out;
}

Expected<double> number(const Json& from, const std::string& key) {
  const auto it = from.find(key);
  if (it == from.end() || !it->is_number() || !std::isfinite(it->template get<double>()))
    return fail(fmt::format("'{}' is missing or no finite number", key));
  return it->template get<double>();
}

template <class S, class Table>
Expected<void> read_numbers(const Json& whole, const char* section, S& values, const Table& table) {
  const auto from = whole.find(section);
  if (from == whole.end() || !from->is_object())
    return fail(fmt::format("the object '{}' is missing", section));
  for (const auto& p : table) {
    const auto value = number(*from, p.name);
    if (!value)
      return fail(fmt::format("{}: {}; a profile that an earlier version saved is fitted again with --fit",
                              section, value.error().message));
    values.*(p.member) = *value;
  }
  return {};
}

Expected<std::vector<double>> read_list(const Json& from, const char* key) {
  std::vector<double> out;
  const auto list = from.find(key);
  if (list == from.end() || !list->is_array() || list->empty() || list->size() > 64)
    return fail(fmt::format("links: '{}' is no list of 1 to 64 numbers", key));
  for (const auto& item : *list) {
    if (!item.is_number() || !(item.template get<double>() > 0))
      return fail(fmt::format("links: '{}' holds something else than a positive number", key));
    out.push_back(item.template get<double>());
  }
  return out;
}

Expected<void> read_links(const Json& whole, LinkTable& links) {
  const auto from = whole.find("links");
  if (from == whole.end() || !from->is_object()) return fail("the object 'links' is missing");
  const std::pair<const char*, std::vector<double>*> lists[] = {
      {"nodes", &links.nodes}, {"all_reduce", &links.all_reduce}, {"all_gather", &links.all_gather}};
  for (const auto& [key, values] : lists) {
    auto list = read_list(*from, key);
    if (!list) return tl::unexpected<Error>(list.error());
    *values = std::move(*list);
  }
  if (links.all_reduce.size() != links.nodes.size() || links.all_gather.size() != links.nodes.size())
    return fail("links: the three lists have different lengths");
  return {};
}

// Earlier versions saved one figure for memory and one for time.
Expected<void> read_errors(const Json& whole, Uncertainty& error) {
  if (whole.contains("error")) return read_numbers(whole, "error", error, kErrors);
  const auto memory = number(whole, "memory_error"), time = number(whole, "time_error");
  if (!memory || !time) return fail("the object 'error' is missing");
  error.memory = error.memory_tensor = *memory;
  error.time = error.time_far = error.time_many = *time;
  return {};
}

Expected<void> read_all(const Json& whole, TrainerProfile& p) {
  const auto words = [&](const char* key, std::string& text) {
    if (whole.contains(key) && whole[key].is_string()) text = whole[key].template get<std::string>();
  };
  words("name", p.name), words("hardware", p.hardware), words("source", p.source);
  if (auto done = read_numbers(whole, "memory", p.memory, kMemory); !done) return done;
  if (auto done = read_numbers(whole, "time", p.time, kTime); !done) return done;
  if (auto done = read_numbers(whole, "facts", p.facts, kFacts); !done) return done;
  for (const auto& [key, member] : kSwitches)
    if (whole["facts"].contains(key) && whole["facts"][key].is_boolean())
      p.facts.*member = whole["facts"][key];
  for (const auto& fact : kLaterFacts)
    if (const auto value = number(whole["facts"], fact.name)) p.facts.*(fact.member) = *value;
  if (auto done = read_errors(whole, p.error); !done) return done;
  return read_links(whole, p.links);
}

// All-reduce and all-gather at 256 MB as the Ultra-Scale Playbook measured them, GB/s.
LinkTable h100_links() {
  LinkTable t{{1, 2, 4, 8, 16, 32, 64},
              {435.97, 361.75, 160.14, 99.56, 84.74, 64.93, 32.93},
              {249.85, 184.61, 118.97, 69.00, 54.97, 27.98, 11.04}};
  for (auto* list : {&t.all_reduce, &t.all_gather})
    for (double& gb : *list) gb *= 1e9;
  return t;
}

}  // namespace

std::span<const Parameter<MemoryParameters>> memory_parameters() {
  return kMemory;
}
std::span<const Parameter<TimeParameters>> time_parameters() {
  return kTime;
}

const TrainerProfile& nanotron_profile() {
  static const TrainerProfile profile = [] {
    TrainerProfile p;
    p.source =
        "1,631 configurations of two Llama models on 1 to 64 nodes of 8 H100 (the Ultra-Scale Playbook)";
    p.links = h100_links();
    return p;
  }();
  return profile;
}

std::string to_json(const TrainerProfile& p) {
  Json out;
  out["name"] = p.name, out["hardware"] = p.hardware, out["source"] = p.source;
  out["memory"] = numbers_of(p.memory, kMemory);
  out["time"] = numbers_of(p.time, kTime);
  out["facts"] = numbers_of(p.facts, kFacts);
  for (const auto& [key, member] : kSwitches) out["facts"][key] = p.facts.*member;
  for (const auto& fact : kLaterFacts) out["facts"][fact.name] = p.facts.*(fact.member);
  out["error"] = numbers_of(p.error, kErrors);
  out["links"] = {
      {"nodes", p.links.nodes}, {"all_reduce", p.links.all_reduce}, {"all_gather", p.links.all_gather}};
  return out.dump(2) + "\n";
}

Expected<TrainerProfile> profile_from_json(std::string_view text) {
  const Json whole = Json::parse(text, nullptr, false);
  if (whole.is_discarded() || !whole.is_object()) return fail("it is no JSON object");
  TrainerProfile p;
  if (auto done = read_all(whole, p); !done) return tl::unexpected<Error>(done.error());
  return p;
}

}  // namespace sweep::predict

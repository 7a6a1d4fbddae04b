#include "orchestrator/predict/trainer_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "orchestrator/predict/profile_parts.h"
#include "orchestrator/predict/time_model.h"

namespace sweep::predict {
namespace {

using Json = nlohmann::ordered_json;

// For who reads a profile that lacks what this version knows.
constexpr const char* kIfFromEarlierVersion =
    "a profile that an earlier version saved is fitted again with --fit";

// visit(section, name, number) for those that the profile's models read.
template <class Profile, class Visit>
void for_each_number(Profile& p, Visit&& visit) {
  const unsigned memory = p.memory_model->reader, time = p.time_model->reader;
#define MEMORY_NUMBER(name, readers, doubt, meaning) \
  if ((readers)&memory) visit("memory", #name, p.memory.name);
#define TIME_NUMBER(name, readers, doubt, meaning) \
  if ((readers)&time) visit("time", #name, p.time.name);
#define FACT(name, readers, meaning) \
  if ((readers)&memory) visit("facts", #name, p.facts.name);
#define ERROR_NUMBER(name, readers, meaning) visit("error", #name, p.error.name);
#include "orchestrator/predict/profile_numbers.def"
#undef MEMORY_NUMBER
#undef TIME_NUMBER
#undef FACT
#undef ERROR_NUMBER
}

// visit(name, flag) for those of the facts that the profile's models read.
template <class Profile, class Visit>
void for_each_flag(Profile& p, Visit&& visit) {
  const unsigned memory = p.memory_model->reader;
#define FLAG(name, readers, meaning) \
  if ((readers)&memory) visit(#name, p.facts.name);
#include "orchestrator/predict/profile_numbers.def"
#undef FLAG
}

bool has_origin(const TrainerProfile& p, const std::string& section, const std::string& name) {
  return std::ranges::any_of(p.origins, [&](const Origin& o) {
    return std::ranges::any_of(
        o.of, [&](const std::string& of) { return of == section || of == section + "." + name; });
  });
}

// Null: it has no such key.
const Json& at(const Json& from, const char* key) {
  static const Json none;
  const auto it = from.find(key);
  return it == from.end() ? none : *it;
}

std::string text_at(const Json& from, const char* key) {
  return at(from, key).is_string() ? at(from, key).get<std::string>() : std::string();
}

// Not finite: it is no number.
double number_of(const Json& from) {
  return from.is_number() ? from.get<double>() : NAN;
}

Expected<void> read_numbers(const Json& whole, TrainerProfile& p) {
  std::string problem;
  const auto check = [&](const char* section, const char* name, bool fine, const char* what) {
    if (!fine)
      problem = fmt::format("{}: '{}' is missing or {}; {}", section, name, what, kIfFromEarlierVersion);
    else if (!has_origin(p, section, name))
      problem = fmt::format("origins: none of them names '{0}' or '{0}.{1}'", section, name);
  };
  for_each_number(p, [&](const char* section, const char* name, double& number) {
    if (!problem.empty()) return;
    number = number_of(at(at(whole, section), name));
    check(section, name, std::isfinite(number), "no finite number");
  });
  for_each_flag(p, [&](const char* name, bool& flag) {
    if (!problem.empty()) return;
    const Json& said = at(at(whole, "facts"), name);
    flag = said.is_boolean() && said.get<bool>();
    check("facts", name, said.is_boolean(), "neither true nor false");
  });
  if (!problem.empty()) return fail(problem);
  return {};
}

// The names of a section's numbers and flags, whichever model reads them.
std::vector<std::string> names_in(std::string_view section) {
  std::vector<std::string> out;
#define NAMED(of, name) \
  if (section == (of)) out.emplace_back(#name);
#define MEMORY_NUMBER(name, readers, doubt, meaning) NAMED("memory", name)
#define TIME_NUMBER(name, readers, doubt, meaning) NAMED("time", name)
#define FACT(name, readers, meaning) NAMED("facts", name)
#define FLAG(name, readers, meaning) NAMED("facts", name)
#define ERROR_NUMBER(name, readers, meaning) NAMED("error", name)
#include "orchestrator/predict/profile_numbers.def"
#undef MEMORY_NUMBER
#undef TIME_NUMBER
#undef FACT
#undef FLAG
#undef ERROR_NUMBER
#undef NAMED
  return out;
}

// A misspelt key would leave the number of the base in its place.
Expected<void> check_all_keys(const Json& whole) {
  SWEEP_TRY(check_keys(whole, "",
                       {"name", "hardware", "extends", "memory_model", "time_model", "memory", "time",
                        "facts", "error", "links", "trainers", "rules", "effects", "residual", "origins"}));
  for (const char* section : {"memory", "time", "facts", "error"})
    SWEEP_TRY(check_keys(at(whole, section), fmt::format("{}: ", section), names_in(section)));
  return check_keys(at(whole, "links"), "links: ", {"nodes", "all_reduce", "all_gather"});
}

// Some shares lie within 0 and 1, what divides is above 0, and but for the numbers of memory none is negative.
Expected<void> check_ranges(const TrainerProfile& p) {
  static const std::set<std::string_view> kShares{"selective_again", "exchanges_beside", "kept_gradients",
                                                  "unsure_band",     "reserved_share",   "retry_share"};
  static const std::set<std::string_view> kDivisors{"matmul_share", "bandwidth_share", "near_share",
                                                    "far_share",    "attention_share", "need_share",
                                                    "reported_unit"};
  std::string section, name, range;
  for_each_number(p, [&](const char* of, const char* number, double value) {
    const char* wrong = kShares.contains(number) && (value < 0 || value > 1) ? "within 0 and 1"
                        : kDivisors.contains(number) && value <= 0           ? "above 0"
                        : value < 0 && std::string_view(of) != "memory"      ? "at least 0"
                                                                             : nullptr;
    if (wrong != nullptr && range.empty()) section = of, name = number, range = wrong;
  });
  if (range.empty()) return {};
  return fail(ErrorKind::kInvalidValue, name, "{}: '{}' must be {}", section, name, range);
}

Expected<void> read_links(const Json& whole, LinkTable& links) {
  const std::pair<const char*, std::vector<double>*> lists[] = {
      {"nodes", &links.nodes}, {"all_reduce", &links.all_reduce}, {"all_gather", &links.all_gather}};
  for (const auto& [key, values] : lists) {
    for (const Json& item : at(at(whole, "links"), key)) values->push_back(number_of(item));
    const bool positive = std::ranges::all_of(*values, [](double value) { return value > 0; });
    if (!positive || values->size() > 64 || values->size() != links.nodes.size())
      return fail("links: '{}' is no list of at most 64 positive numbers, as many as 'nodes'", key);
  }
  if (std::ranges::adjacent_find(links.nodes, std::greater_equal<>()) != links.nodes.end())
    return fail(ErrorKind::kInvalidValue, "links", "links: 'nodes' must rise from one to the next");
  return {};
}

Expected<void> read_origins(const Json& whole, std::vector<Origin>& origins) {
  const Json& all = at(whole, "origins");
  if (!all.is_null() && !all.is_array()) return fail("origins: it is no list");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Json& from = all[i];
    SWEEP_TRY(check_keys(from, fmt::format("origins[{}]: ", i), {"of", "how", "rows", "machine", "date"}));
    Origin o{
        {}, text_at(from, "how"), text_at(from, "rows"), text_at(from, "machine"), text_at(from, "date")};
    for (const Json& of : at(from, "of"))
      if (of.is_string()) o.of.push_back(of.get<std::string>());
    if (o.of.empty() || o.how.empty() || o.date.empty())
      return fail("origins: each of them says 'of' which numbers, 'how' and on which 'date'");
    origins.push_back(std::move(o));
  }
  return {};
}

Expected<void> read_all(const Json& whole, TrainerProfile& p) {
  p.name = text_at(whole, "name"), p.hardware = text_at(whole, "hardware");
  p.memory_model = memory_model(text_at(whole, "memory_model"));
  p.time_model = time_model(text_at(whole, "time_model"));
  if (p.memory_model == nullptr)
    return fail("'memory_model' is none of nanotron, eager, step; {}", kIfFromEarlierVersion);
  if (p.time_model == nullptr)
    return fail("'time_model' is none of nanotron, plain, queued; {}", kIfFromEarlierVersion);
  SWEEP_TRY(read_origins(whole, p.origins));
  SWEEP_TRY(read_numbers(whole, p));
  if (!has_origin(p, "links", "")) return fail("origins: none of them names 'links'");
  SWEEP_TRY(read_parts(whole, p));
  SWEEP_TRY(read_links(whole, p.links));
  SWEEP_TRY(check_all_keys(whole));
  return check_ranges(p);
}

// Whether an origin of `now` says where the number or section `of` comes from.
bool says_for(const std::string& now, const std::string& of) {
  return of == now || of.starts_with(now + ".");
}

// The profile that `extends` names, with what this one says instead; of the base's origins those that it does not say anew.
Expected<Json> with_base(Json own) {
  const std::string name = text_at(own, "extends");
  if (name.empty()) return own;
  const auto base = std::ranges::find(profile_texts(), name, &ProfileText::name);
  if (base == profile_texts().end())
    return fail("'extends' names '{}', which is not built in; there are: {}", name, built_in_profiles());
  auto whole = with_base(Json::parse(base->json));
  if (!whole) return whole;
  Json origins = own.value("origins", Json::array());
  if (!origins.is_array()) return fail("origins: it is no list");
  std::vector<std::string> said;
  for (const Json& origin : origins)
    for (const Json& of : at(origin, "of"))
      if (of.is_string()) said.push_back(of.get<std::string>());
  for (Json origin : at(*whole, "origins")) {
    auto of = at(origin, "of").get<std::vector<std::string>>();
    std::erase_if(of, [&](const std::string& each) {
      return std::ranges::any_of(said, [&](const std::string& now) { return says_for(now, each); });
    });
    if (of.empty()) continue;
    origin["of"] = std::move(of);
    origins.push_back(std::move(origin));
  }
  whole->merge_patch(own);
  (*whole)["origins"] = std::move(origins);
  return whole;
}

}  // namespace

void TrainerProfile::set_origin(Origin origin) {
  const auto replaced = [&](const std::string& of) {
    return std::ranges::any_of(origin.of, [&](const std::string& now) { return says_for(now, of); });
  };
  for (Origin& o : origins) std::erase_if(o.of, replaced);
  std::erase_if(origins, [](const Origin& o) { return o.of.empty(); });
  origins.push_back(std::move(origin));
}

void TrainerProfile::move_to(const std::string& other, const std::string& date) {
  if (hardware == other) return;
  const std::string how = "none: the profile was of " + hardware;
  hardware = other, links = {};
  set_origin({{"links"}, how, "", other, date});
  if (facts.score_bytes > 0 || facts.score_traffic == 0) return;
  facts.score_traffic = 0;
  set_origin({{"facts.score_traffic"}, how, "", other, date});
}

const Origin* TrainerProfile::origin_of(const std::string& section) const {
  const auto found = std::ranges::find_if(
      origins, [&](const Origin& o) { return std::ranges::find(o.of, section) != o.of.end(); });
  return found == origins.end() ? nullptr : &*found;
}

std::vector<double> doubts_of(const TrainerProfile& p, std::string_view section,
                              const std::vector<std::string>& held) {
  constexpr double kHeld = 1e-6;
  std::vector<double> out;
  const unsigned memory = p.memory_model->reader, time = p.time_model->reader;
  const auto add = [&](std::string_view of, bool reads, const char* name, double doubt) {
    if (reads && of == section) out.push_back(std::ranges::find(held, name) == held.end() ? doubt : kHeld);
  };
#define MEMORY_NUMBER(name, readers, doubt, meaning) add("memory", ((readers)&memory) != 0, #name, doubt);
#define TIME_NUMBER(name, readers, doubt, meaning) add("time", ((readers)&time) != 0, #name, doubt);
#include "orchestrator/predict/profile_numbers.def"
#undef MEMORY_NUMBER
#undef TIME_NUMBER
  return out;
}

std::vector<std::string> names_of(const TrainerProfile& p, std::string_view section) {
  std::vector<std::string> out;
  for_each_number(p, [&](std::string_view of, const char* name, double) {
    if (of == section) out.emplace_back(name);
  });
  return out;
}

std::vector<double*> numbers_of(TrainerProfile& p, std::string_view section) {
  std::vector<double*> out;
  for_each_number(p, [&](std::string_view of, const char*, double& number) {
    if (of == section) out.push_back(&number);
  });
  return out;
}

std::string to_json(const TrainerProfile& p) {
  Json out;
  out["name"] = p.name, out["hardware"] = p.hardware;
  out["memory_model"] = p.memory_model->word, out["time_model"] = p.time_model->word;
  for (const char* section : {"memory", "time", "facts", "error"}) out[section] = Json::object();
  for_each_number(p,
                  [&](const char* section, const char* name, double number) { out[section][name] = number; });
  for_each_flag(p, [&](const char* name, bool flag) { out["facts"][name] = flag; });
  out["links"] = {
      {"nodes", p.links.nodes}, {"all_reduce", p.links.all_reduce}, {"all_gather", p.links.all_gather}};
  write_parts(p, out);
  out["origins"] = Json::array();
  for (const Origin& o : p.origins)
    out["origins"].push_back(
        {{"of", o.of}, {"how", o.how}, {"rows", o.rows}, {"machine", o.machine}, {"date", o.date}});
  return out.dump(2) + "\n";
}

Expected<TrainerProfile> profile_from_json(std::string_view text) {
  const Json whole = Json::parse(text, nullptr, false);
  if (whole.is_discarded() || !whole.is_object()) return fail("it is no JSON object");
  SWEEP_GET(const auto full, with_base(whole));
  TrainerProfile p;
  SWEEP_TRY(read_all(full, p));
  return p;
}

const TrainerProfile* built_in_profile(std::string_view name) {
  struct Read {
    std::once_flag once;
    TrainerProfile profile;
  };
  static std::vector<Read> read(profile_texts().size());
  const auto text = std::ranges::find(profile_texts(), name, &ProfileText::name);
  if (text == profile_texts().end()) return nullptr;
  Read& found = read[static_cast<std::size_t>(text - profile_texts().begin())];
  std::call_once(found.once, [&] { found.profile = profile_from_json(text->json).value(); });
  return &found.profile;
}

bool TrainerProfile::is_of(std::string_view trainer) const {
  return std::ranges::any_of(trainers, [&](const auto& word) { return same_word(word, trainer); });
}

const TrainerProfile* profile_of_trainer(std::string_view trainer, std::string_view hardware) {
  const TrainerProfile* other = nullptr;
  for (const ProfileText& text : profile_texts()) {
    const TrainerProfile* p = built_in_profile(text.name);
    const bool own =
        trainer.empty() ? p->trainers.empty() && p->memory_model->of_own_step() : p->is_of(trainer);
    if (!own) continue;
    if (p->hardware == hardware) return p;
    if (other == nullptr) other = p;
  }
  return other;
}

std::string built_in_profiles() {
  std::string out;
  for (const ProfileText& text : profile_texts()) out += (out.empty() ? "" : ", ") + std::string(text.name);
  return out;
}

}  // namespace sweep::predict

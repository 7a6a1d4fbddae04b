// The profiles of trainers: names, their form on disk, what one takes from another, and which trainer has which.
#include "orchestrator/predict/trainer_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/predict/predict_fixture.h"

namespace sweep::predict {
namespace {

using ::testing::HasSubstr;

TEST(Profile, IsFoundByItsName) {
  for (const char* name :
       {"nanotron", "sweep", "fsdp2", "transformers", "lightning", "megatron", "deepspeed", "torchtitan",
        "torchtitan-compiled", "torchtitan-compiled-blocks", "megatron-flex", "composer"}) {
    const auto* p = built_in_profile(name);
    ASSERT_NE(p, nullptr) << name;
    EXPECT_EQ(to_json(*profile_from_json(to_json(*p))), to_json(*p));
  }
  EXPECT_EQ(built_in_profile("unknown"), nullptr);
}

// The error of reading nanotron's profile with `from` changed into `to`.
std::string problem(const std::string& from, const std::string& to) {
  std::string text = to_json(built_in("nanotron"));
  text.replace(text.find(from), from.size(), to);
  const auto read = profile_from_json(text);
  return read ? "" : read.error().message;
}

TEST(Profile, SaysWhatItLacks) {
  EXPECT_EQ(problem("nanotron", "another"), "");
  EXPECT_THAT(problem("kernel_s", "kernels_s"), HasSubstr("'kernel_s'"));
  EXPECT_THAT(problem("\"effect\": \"fails\"", "\"effect\": \"hangs\""), HasSubstr("'effect'"));
  EXPECT_THAT(problem("\"kv_heads\"", "\"kw_heads\""), HasSubstr("'kw_heads'"));
  EXPECT_THAT(problem("\"memory_model\": \"nanotron\"", "\"memory_model\": \"other\""),
              HasSubstr("'memory_model'"));
  EXPECT_THAT(problem("\"memory_model\"", "\"follows_step\""), HasSubstr("--fit")) << "an earlier version's";
  EXPECT_THAT(problem("facts.need_held", "facts.need_hold"), HasSubstr("'facts.need_held'")) << "no origin";
  EXPECT_THAT(problem("\"links\"\n", "\"lines\"\n"), HasSubstr("'links'"));
  for (const char* origins : {"{}", "\"x\""}) {
    const auto own =
        profile_from_json(std::string(R"({"name": "m", "extends": "fsdp2", "origins": )") + origins + "}");
    ASSERT_FALSE(own) << origins;
    EXPECT_THAT(own.error().message, HasSubstr("origins"));
  }
}

// The error of a profile of one's own with these members.
std::string own_problem(const std::string& members) {
  const auto read = profile_from_json(R"({"name": "m", "extends": "nanotron", )" + members +
                                      R"(, "origins": [{"of": ["facts", "memory", "time", "error", "links"],
                                          "how": "told", "date": "2026-11-29"}]})");
  return read ? "" : read.error().message;
}

TEST(Profile, RefusesKeysAndValuesThatMeanNothing) {
  EXPECT_EQ(own_problem(R"("facts": {"need_share": 0.9})"), "");
  EXPECT_THAT(own_problem(R"("fact": {"need_share": 0.9})"), HasSubstr("'fact'"));
  EXPECT_THAT(own_problem(R"("facts": {"need_shar": 0.9})"), HasSubstr("facts: 'need_shar'"));
  EXPECT_THAT(own_problem(R"("time": {"matmul_shares": 0.9})"), HasSubstr("time: 'matmul_shares'"));
  EXPECT_THAT(own_problem(R"("facts": {"need_share": 0})"), HasSubstr("facts: 'need_share'"));
  EXPECT_THAT(own_problem(R"("facts": {"need_share": -1})"), HasSubstr("facts: 'need_share'"));
  EXPECT_THAT(own_problem(R"("facts": {"unsure_band": 7})"), HasSubstr("facts: 'unsure_band'"));
  EXPECT_THAT(own_problem(R"("time": {"matmul_share": 0})"), HasSubstr("time: 'matmul_share'"));
  EXPECT_THAT(own_problem(R"("time": {"kernel_s": -1e-6})"), HasSubstr("time: 'kernel_s'"));
  EXPECT_THAT(own_problem(R"("error": {"memory": -0.1})"), HasSubstr("error: 'memory'"));
  const std::string lists = R"("all_reduce": [2e9, 1e9], "all_gather": [2e9, 1e9])";
  EXPECT_EQ(own_problem(R"("links": {"nodes": [1, 2], )" + lists + "}"), "");
  EXPECT_THAT(own_problem(R"("links": {"nodes": [2, 1], )" + lists + "}"), HasSubstr("links"));
  EXPECT_THAT(own_problem(R"("links": {"node": [1], "nodes": [1, 2], )" + lists + "}"), HasSubstr("'node'"));
}

TEST(Profile, FlagsAreTrueOrFalse) {
  const auto flag = [](const std::string& value) {
    return own_problem(R"("facts": {"once_per_node": )" + value + "}");
  };
  EXPECT_EQ(flag("true"), "");
  EXPECT_EQ(flag("false"), "");
  for (const char* other : {"1", "0", "0.5", "\"true\"", "null"})
    EXPECT_THAT(flag(other), HasSubstr("facts: 'once_per_node'")) << other;
  EXPECT_THAT(to_json(built_in("megatron")), HasSubstr("\"even_stages\": true"));
  EXPECT_THAT(to_json(built_in("fsdp2")), HasSubstr("\"even_stages\": false"));
  EXPECT_TRUE(built_in("megatron").facts.even_stages);
  EXPECT_FALSE(built_in("fsdp2").facts.even_stages);
}

TEST(Profile, RefusesUnknownKeysOfItsLists) {
  TrainerProfile whole = built_in("nanotron");
  whole.residual.hardware = whole.hardware;
  whole.residual.places = {ResidualPlace{}}, whole.residual.off = {0.1};
  const auto unknown = [&](const std::string& from, const std::string& to) {
    std::string text = to_json(whole);
    text.replace(text.find(from), from.size(), to);
    const auto read = profile_from_json(text);
    return read ? std::pair(ErrorKind::kFailed, std::string())
                : std::pair(read.error().kind, read.error().message);
  };
  const auto effect = unknown("\"effects\": [\n    {", "\"effects\": [\n    {\"hardwares\": \"x\",");
  EXPECT_EQ(effect.first, ErrorKind::kUnknownName);
  EXPECT_THAT(effect.second, HasSubstr("effects[0]: 'hardwares'"));
  const auto residual = unknown("\"spread\"", "\"spreads\": 1, \"spread\"");
  EXPECT_EQ(residual.first, ErrorKind::kUnknownName);
  EXPECT_THAT(residual.second, HasSubstr("residual: 'spreads'"));
  const auto origin = unknown("\"machine\"", "\"machines\"");
  EXPECT_EQ(origin.first, ErrorKind::kUnknownName);
  EXPECT_THAT(origin.second, HasSubstr("]: 'machines'"));
}

TEST(Profile, SaysOnlyWhatDiffersFromTheOneThatItExtends) {
  const auto own = profile_from_json(
      R"({"name": "mine", "extends": "torchtitan", "facts": {"logit_bytes": 6},
          "origins": [{"of": ["facts.logit_bytes"], "how": "counted", "date": "2026-11-28"}]})");
  ASSERT_TRUE(own) << own.error().message;
  TrainerProfile like = *built_in_profile("torchtitan");
  like.name = "mine", like.facts.logit_bytes = 6;
  const auto again = profile_from_json(to_json(*own));
  ASSERT_TRUE(again) << again.error().message;
  like.origins = again->origins;
  EXPECT_EQ(to_json(*again), to_json(like));
  const auto says = [&](const std::string& number) {
    return std::ranges::count_if(own->origins,
                                 [&](const Origin& o) { return std::ranges::count(o.of, number) > 0; });
  };
  EXPECT_EQ(says("facts.logit_bytes"), 1) << "that of the base went";
  EXPECT_EQ(own->origins.front().how, "counted");
  EXPECT_FALSE(profile_from_json(R"({"name": "mine", "extends": "nobody"})"));
}

// An origin of a base's section would stand beside that of one of its numbers.
TEST(Profile, ANumberOfABuiltInProfilesMemoryHasOneOrigin) {
  for (const char* name :
       {"fsdp2", "transformers", "lightning", "megatron", "deepspeed", "torchtitan", "composer"})
    for (const char* number : {"base_gib", "fragmentation", "gather_buffers"})
      EXPECT_EQ(std::ranges::count_if(built_in(name).origins,
                                      [&](const Origin& o) {
                                        return std::ranges::any_of(o.of, [&](const std::string& of) {
                                          return of == "memory" || of == std::string("memory.") + number;
                                        });
                                      }),
                1)
          << name << " " << number;
}

TEST(Profile, HasOnlyTheNumbersThatItsModelsRead) {
  TrainerProfile nanotron = built_in("nanotron"), step = built_in("sweep");
  EXPECT_EQ(numbers_of(nanotron, "memory").size(), 12u);
  EXPECT_EQ(numbers_of(nanotron, "time").size(), 15u);
  EXPECT_EQ(numbers_of(step, "memory").size(), 0u);
  EXPECT_EQ(to_json(built_in("fsdp2")).find("held_most"), std::string::npos);
}

TEST(Profile, ANumberHasOneOrigin) {
  TrainerProfile p = built_in("nanotron");
  p.set_origin({{"facts", "links", "effects"}, "told", "", "", "2026-01-01"});
  for (std::size_t i = 0; i + 1 < p.origins.size(); ++i)
    for (const auto& of : p.origins[i].of) EXPECT_TRUE(of == "memory" || of == "time" || of == "error") << of;
  EXPECT_EQ(p.origins.back().of.size(), 3u);
}

TEST(Profile, IsChosenByTrainerAndHardware) {
  const auto name = [](const char* trainer, const char* hardware) {
    const TrainerProfile* p = profile_of_trainer(trainer, hardware);
    return p ? p->name : std::string();
  };
  EXPECT_EQ(name("", "a100-80gb"), "sweep") << "the built-in step";
  EXPECT_EQ(name("nanotron", "h100-sxm-80gb"), "nanotron");
  EXPECT_EQ(name("nanotron", "a100-80gb"), "nanotron") << "another machine's, where there is no other";
  EXPECT_EQ(name("megatron", "a100-80gb"), "megatron");
  EXPECT_EQ(name("Megatron-LM", "a100-80gb"), "megatron") << "its recipe's trainer";
  EXPECT_EQ(name("transformers", "a100-80gb"), name("huggingface", "a100-80gb"));
  EXPECT_EQ(name("torchtitan", "h100-sxm-80gb"), "torchtitan");
  EXPECT_EQ(name("deepspeed", "h100-sxm-80gb"), "deepspeed");
  EXPECT_EQ(name("absent", "h100-sxm-80gb"), "");
  for (const auto& [trainer, profile] :
       {std::pair("nemo", "megatron"), std::pair("megatron-bridge", "megatron"),
        std::pair("megatron-deepspeed", "megatron"), std::pair("llm-foundry", "composer"),
        std::pair("accelerate", "transformers"), std::pair("torchtune", "fsdp2"),
        std::pair("litgpt", "fsdp2")})
    EXPECT_EQ(name(trainer, "h100-sxm-80gb"), profile);
}

}  // namespace
}  // namespace sweep::predict

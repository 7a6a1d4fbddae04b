#include "schema/codec.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "schema/progress.h"
#include "schema/rank_launch.h"
#include "schema/sweep_options.h"
#include "tests/support/error_matchers.h"

namespace sweep {
namespace {

Trial sample_trial() {
  Trial t;
  t.model = "tiny";
  t.spec.layers = 2;
  t.spec.hidden_size = 64;
  t.tp = 2;
  t.memory_cap_bytes = 1 << 20;
  return t;
}

TEST(TrialId, IgnoresLabelAndSpeltOutDefaults) {
  Trial t = sample_trial();
  const std::string id = trial_id(t);
  t.model = "another label";
  t.labels = R"({"x":1})";
  t.optimizer = OptimizerKind::kFused;
  EXPECT_EQ(trial_id(t), id);
  EXPECT_EQ(id.size(), 16u);
}

TEST(TrialId, ChangesWithAnyAxisOrDimension) {
  const Trial t = sample_trial();
  Trial other = t;
  other.micro_batch_size = 2;
  EXPECT_NE(trial_id(other), trial_id(t));
  other = t;
  other.spec.norm_eps = 1e-6;
  EXPECT_NE(trial_id(other), trial_id(t));
}

TEST(TrialId, IsFrozen) {
  EXPECT_EQ(canonical(sample_trial()),
            R"({"memory_cap_bytes":1048576,"model":{"hidden_size":64,"layers":2},"tp":2})");
  EXPECT_EQ(trial_id(sample_trial()), "121ee2a7beaf51f1");
}

TEST(Codec, AttemptRoundTrips) {
  Attempt a;
  a.id = 7;
  a.trial = sample_trial();
  a.trial.spec.rope_scaling = RopeScaling{};
  a.trial_id = trial_id(a.trial);
  a.measure.steps = 5;
  a.rehearsed_ranks = {0, 8};
  const auto back = must(from_json<Attempt>(to_json(a)));
  EXPECT_EQ(back, a);
}

TEST(Codec, RankRecordRoundTripsWithNullsAndNan) {
  RankRecord r;
  r.outcome = Outcome::kOom;
  r.oom_kind = OomKind::kDevice;
  r.samples.resize(2);
  r.samples[1].loss = std::nan("");
  r.sent = {{"tp", 12, 4096}, {"world", 1, 8}};
  r.loss_scale = 65536;
  const auto text = dump(to_json(r));
  const auto back = must(from_json<RankRecord>(*parse_json(text)));
  EXPECT_EQ(back.oom_kind, OomKind::kDevice);
  EXPECT_FALSE(back.peak_allocated_bytes);
  EXPECT_TRUE(std::isnan(back.samples[1].loss));
  EXPECT_EQ(back.sent, r.sent);
  EXPECT_EQ(back.loss_scale, 65536);
  EXPECT_FALSE(back.expert_load);
}

TEST(Codec, TheEndOfAnAttemptRoundTripsWithEveryCause) {
  const std::pair<EndCause, std::string_view> stored[] = {{EndCause::kDone, "done"},
                                                          {EndCause::kRankFailed, "rank_failed"},
                                                          {EndCause::kHang, "hang"},
                                                          {EndCause::kTimeout, "timeout"},
                                                          {EndCause::kCancelled, "cancelled"},
                                                          {EndCause::kAgentStopping, "agent_stopping"},
                                                          {EndCause::kStartFailed, "start_failed"},
                                                          {EndCause::kNodeLost, "node_lost"},
                                                          {EndCause::kNoTime, "no_time"}};
  for (const auto& [cause, text] : stored) {
    AttemptEnd end;
    end.cause = cause, end.unclean_nodes = {1, 3};
    const auto j = to_json(end);
    EXPECT_EQ(j.at("cause"), text);
    const auto back = must(from_json<AttemptEnd>(j));
    EXPECT_EQ(back.cause, cause);
    EXPECT_EQ(back.unclean_nodes, end.unclean_nodes);
  }
  EXPECT_FALSE(from_json<AttemptEnd>({{"cause", "bored"}}));
}

TEST(SweepOptions, TheStoredTextIsThatOfEarlierVersions) {
  SweepOptions run;
  run.build = "0.1.0 abc", run.launcher = "slurm", run.launch.emplace().slurm.emplace().partition = "gpu";
  run.measure = MeasurePlan{.warmup_steps = 1, .steps = 2, .repeats = 3};
  run.retries_crash = 1, run.retries_infra = 3, run.gpu_hours = 2.5;
  EXPECT_EQ(to_text(run), R"({"build":"0.1.0 abc","gpu_hours":2.5,"launch":{"slurm":{"partition":"gpu"}},)"
                          R"("launcher":"slurm","measure":)" +
                              dump(to_json(*run.measure)) + R"(,"retries_crash":1,"retries_infra":3})");
  const std::string imported =
      R"({"imported":true,"retries_crash":0,"retries_hang":0,"retries_infra":0,"retries_timeout":0})";
  EXPECT_EQ(to_text(*sweep_options_from(imported)), imported);
  EXPECT_EQ(to_text(SweepOptions()), "{}");
}

TEST(SweepOptions, ReadWhatWasWritten) {
  const SweepOptions all{.imported = true,
                         .build = "b",
                         .launcher = "ssh",
                         .launch = LaunchSettings(),
                         .measure = MeasurePlan(),
                         .retries_crash = 1,
                         .retries_hang = 2,
                         .retries_timeout = 3,
                         .retries_infra = 4,
                         .trial_seconds = 5.5,
                         .hang_seconds = 6.5,
                         .start_seconds = 7.5,
                         .gpu_hours = 8.5,
                         .usd = 8.75,
                         .slots = 9,
                         .start = "exec",
                         .screen = "show",
                         .rehearse_ranks = 10,
                         .confirms = "first",
                         .strategy = "search",
                         .max_trials = 12,
                         .at_once = 2,
                         .least_gain = 0.5,
                         .audit = 0.02,
                         .auto_micro_batch = true,
                         .history = true,
                         .skip_recompute = false};
  const auto back = must(sweep_options_from(to_text(all)));
  EXPECT_EQ(back, all);
  EXPECT_EQ(*sweep_options_from(""), SweepOptions());
  EXPECT_EQ(*sweep_options_from(R"({"of a later version":1})"), SweepOptions());
  for (const char* text : {"{", "[]", R"({"retries_crash":"two"})", R"({"measure":7})"})
    EXPECT_FALSE(sweep_options_from(text)) << text;
}

TEST(Codec, ACollectiveIsNamedAndNoPageContentBreaksTheText) {
  EXPECT_EQ(CollectiveName::of(Collective::kReduceScatter, 17, "shard").text(), "reduce_scatter 17 of shard");
  EXPECT_EQ(CollectiveName().text(), "none");
  CollectiveSlot slot;
  slot.put(CollectiveName::of(Collective::kJoin, 1, "a name of more than sixteen"));
  EXPECT_EQ(slot.get().text(), "join 1 of a?name?of?more?t");
  CollectiveName wild;
  wild.what = ~std::uint64_t{0}, wild.group = {~std::uint64_t{0}, 7};
  EXPECT_EQ(wild.text(), "unknown 72057594037927935 of ?????????");
}

TEST(Codec, SamplesTravelAsColumns) {
  RankRecord r;
  r.samples.resize(3);
  for (i64 i = 0; i < 3; ++i) {
    StepSample& s = r.samples[static_cast<std::size_t>(i)];
    s.repeat = i, s.step = 10 + i, s.warmup = i == 0, s.step_ns = 100 + i, s.forward_ns = 200 + i;
    s.backward_ns = 300 + i, s.optimizer_ns = 400 + i, s.tokens = 500 + i, s.loss = 0.5 * double(i);
    s.alloc_retries = 600 + i;
  }
  r.samples[1].exposed_comm_ns = 7;
  const auto j = to_json(r);
  EXPECT_EQ(dump(j.at("samples").at("step")), "[10,11,12]");
  EXPECT_EQ(dump(j.at("samples").at("exposed_comm_ns")), "[null,7,null]");
  const auto back = must(from_json<RankRecord>(*parse_json(dump(j))));
  EXPECT_EQ(back.samples, r.samples);
}

TEST(Codec, WhatIsAbsentIsLeftOutAndComesBackAbsent) {
  RankRecord r;
  r.samples.resize(2);
  r.peak_allocated_bytes = 0;
  const auto j = to_json(r);
  for (const char* absent :
       {"oom_kind", "oom_asked_bytes", "startup_ns", "peak_reserved_bytes", "cpu_percent"})
    EXPECT_FALSE(j.contains(absent)) << absent;
  EXPECT_EQ(j.at("peak_allocated_bytes"), 0);  // measured, and nothing
  EXPECT_FALSE(j.at("samples").contains("exposed_comm_ns"));
  EXPECT_EQ(j.at("samples").at("loss").size(), 2u);
  const auto back = must(from_json<RankRecord>(*parse_json(dump(j))));
  EXPECT_EQ(back.samples, r.samples);
  EXPECT_EQ(back.peak_allocated_bytes, 0);
  EXPECT_FALSE(back.oom_kind || back.startup_ns || back.peak_reserved_bytes);
  EXPECT_FALSE(to_json(RankExit{}).contains("signal"));
}

TEST(Codec, SamplesOfUnequalColumnsAreRefused) {
  const auto read = [](const char* samples) {
    nlohmann::json j = to_json(RankRecord{});
    j["samples"] = *parse_json(samples);
    return from_json<RankRecord>(j);
  };
  const auto fine = must(read(R"({"step":[4,5],"column_of_tomorrow":[]})"));
  ASSERT_EQ(fine.samples.size(), 2u);
  EXPECT_EQ(fine.samples[1].step, 5);
  EXPECT_EQ(fine.samples[1].step_ns, 0);
  EXPECT_TRUE(read("{}"));
  for (const char* bad : {R"({"step":[4,5],"step_ns":[1]})", R"({"step":[1],"step_ns":[]})", R"({"step":4})",
                          R"({"step":["4"]})", R"({"step":[null]})", R"({"warmup":[1]})", R"([{"step":4}])",
                          R"({"step":[1],"loss":null})", "null"}) {
    const auto back = read(bad);
    ASSERT_FALSE(back) << bad;
    EXPECT_NE(back.error().message.find("'samples'"), std::string::npos);
  }
}

TEST(Codec, SamplesAreBounded) {
  nlohmann::json j = to_json(RankRecord{});
  j["samples"] = {{"step", nlohmann::json::array_t(std::size_t{1} << 20, 0)}};
  EXPECT_TRUE(from_json<RankRecord>(j));
  j["samples"]["step"].push_back(0);
  EXPECT_FALSE(from_json<RankRecord>(j));
}

TEST(Codec, WrongTypesAreRefusedByName) {
  auto j = to_json(sample_trial());
  j["tp"] = "two";
  const auto back = from_json<Trial>(j);
  ASSERT_FALSE(back);
  EXPECT_NE(back.error().message.find("'tp'"), std::string::npos);
  j = to_json(sample_trial());
  j["tp"] = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(from_json<Trial>(j));
  EXPECT_FALSE(from_json<RankRecord>(nlohmann::json::array()));
}

TEST(Codec, UnknownKeysAreIgnoredAndAbsentOnesDefault) {
  const auto back = must(from_json<Trial>(*parse_json(R"({"tp":4,"axis_of_tomorrow":9})")));
  EXPECT_EQ(back.tp, 4);
  EXPECT_EQ(back.seq_len, 1024);
}

TEST(ParseJson, RefusesDepthAndSizeBeforeParsing) {
  EXPECT_FALSE(parse_json(std::string(100000, '[')));
  EXPECT_FALSE(parse_json("[1,2,3]", 3));
  EXPECT_FALSE(parse_json("{\"a\":"));
  EXPECT_TRUE(parse_json(R"({"brackets in strings":"[[[[[[[[[["})", 1000, 2));
}

TEST(ParseJson, NumbersAreTheNearestDouble) {
  for (const char* text :
       {"0.1", "1e23", "9.5367431640625e-07", "123456789.12345678", "1.7976931348623157e308", "5e-324",
        "2.2250738585072011e-308", "0.30000000000000004", "100000000000000000000001"})
    EXPECT_EQ(parse_json(text)->get<double>(), std::strtod(text, nullptr)) << text;
  EXPECT_TRUE(std::signbit(parse_json("-0.0")->get<double>()));
  EXPECT_EQ(parse_json("1e-999")->get<double>(), 0.0);
  EXPECT_FALSE(parse_json("1e999"));
  EXPECT_TRUE(parse_json("7")->is_number_unsigned());
  EXPECT_EQ(parse_json("18446744073709551615")->get<std::uint64_t>(), 18446744073709551615ull);
  EXPECT_EQ(parse_json("-9223372036854775808")->get<std::int64_t>(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(parse_json("18446744073709551616")->is_number_float());
}

TEST(ParseJson, BuildsWhatNlohmannBuilds) {
  const std::string longer(5000, 'x');
  for (const std::string& text :
       {std::string(
            R"({"b":[1,-2,[],{},null,true,[[false]]],"a":{"c":{"d":"e"},"":[{"k":1},{"k":2}]},"z":0})"),
        std::string(R"(["\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00"])"), std::string("[\"\xc3\xa9\"]"),
        std::string(R"({"twice":1,"twice":[2]})"),
        "{\"" + longer + "\\n\":\"" + longer + "\\u0041" + longer + "\"}",
        std::string("\xef\xbb\xbf [ 1 ]\r\n"), std::string("\"alone\""), std::string("null")}) {
    const auto ours = parse_json(text);
    ASSERT_TRUE(ours) << text << ours.error().message;
    EXPECT_EQ(*ours, nlohmann::json::parse(text)) << text;
  }
}

TEST(ParseJson, RefusesWhatIsNotJsonAndNamesTheByte) {
  for (const char* text : {"", " ", "[1,]", "[1] 2", "{\"a\" 1}", "nul", "NaN", "+1", "01", "1.", "'a'",
                           "[1 // no\n]", "\"\xff\"", "\"\\ud800\"", "\"a\nb\"", "\"open", "{1:2}"})
    EXPECT_FALSE(parse_json(text)) << text;
  EXPECT_THAT(parse_json("[1,x]").error().message, ::testing::HasSubstr("byte 4"));
}

TEST(Dump, InvalidUtf8IsReplaced) {
  EXPECT_NO_THROW(dump(nlohmann::json(std::string("a\xff\xfe"))));
}

TEST(RankLaunch, RoundTrips) {
  RankLaunch l{"/a", "/a/f", "/b", 1, 1, 2, 77, 0, "/b/store", "10.0.0.2", "eth0", "0,1", "4,5"};
  EXPECT_EQ(must(from_json<RankLaunch>(to_json(l))), l);
}

TEST(Outcome, NamesRoundTripAndFinalityIsAsDocumented) {
  for (int i = 0; i <= 10; ++i) {
    const auto o = static_cast<Outcome>(i);
    EXPECT_EQ(outcome_from(to_string(o)), o);
    EXPECT_FALSE(is_answer(o) && is_infrastructure(o));
  }
  EXPECT_FALSE(outcome_from("OOM"));
  EXPECT_FALSE(is_always_final(Outcome::kCrash));
}

}  // namespace
}  // namespace sweep

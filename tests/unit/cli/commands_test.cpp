// sweep compare, best and replay as people type them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "orchestrator/cli/detach.h"
#include "schema/strategy.h"
#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

class Commands : public CommandTest {};

TEST_F(Commands, CompareSaysThatBothSidesAreOneSweep) {
  start(2);
  for (const auto& entry : plan_) finish(entry, Outcome::kOk, 5);
  const std::vector<std::string> same = {"compare", "s", path_.string() + ":s", "--metric", "tokens_per_s"};
  const Answer said = ask(same);
  EXPECT_EQ(said.code, kAnswered);
  EXPECT_NE(said.err, "") << "both sides are one sweep: it says so";
}

TEST_F(Commands, BestRefusesAMetricThatNothingIsBetterBy) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  EXPECT_EQ(ask({"best", "--metric", "peak_rank"}).code, kBadInput);
  EXPECT_EQ(ask({"best", "--metric", "tokens_per_s"}).code, kAnswered);
}

TEST_F(Commands, ANameGivenTwiceIsRefused) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  EXPECT_EQ(ask({"query", "select :n as n, :m as m", "--set", "n=1", "--set", "m=2"}).code, kAnswered);
  EXPECT_EQ(ask({"query", "select :n as n", "--set", "n=1", "--set", "n=2"}).code, kBadInput);
}

TEST_F(Commands, OfflineRunsAreNotWrittenIntoAFile) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  EXPECT_EQ(ask({"export", "wandb", "--offline", file("taken", "")}).code, kBadInput);
}

TEST_F(Commands, ACrashIsNoAnswer) {
  start(3);
  finish(plan_[0], Outcome::kOk, 5);
  finish(plan_[1], Outcome::kOom);
  for (int attempt = 0; attempt < 2; ++attempt) finish(plan_[2], Outcome::kCrash);
  const auto row = nlohmann::json::parse(ask({"list", "--json"}).out).at(0);
  EXPECT_EQ(row.at("trials"), 3);
  EXPECT_EQ(row.at("answered"), 2);
  EXPECT_EQ(row.at("ok"), 1);
}

TEST_F(Commands, ListSaysWhichSweepsWereImported) {
  start(1);
  const std::string measured = file("brought.csv",
                                    "model,hardware,seq_len,precision,mbs,tok_s_gpu\n"
                                    "llama3-8b,h100-sxm-80gb,4096,bf16,1,100\n");
  ASSERT_EQ(ask({"import", measured}).code, kAnswered);
  std::map<std::string, std::string> kinds;
  for (const auto& row : nlohmann::json::parse(ask({"list", "--json"}).out))
    kinds[row.at("sweep")] = row.at("kind");
  EXPECT_EQ(kinds, (std::map<std::string, std::string>{{"s", "measured"}, {"brought", "imported"}}));
}

TEST_F(Commands, ReplayHasNoFigureOfARowThatDidNotRun) {
  const std::string measured = file(
      "m.csv", "model,nodes,dp,tp,pp,mbs,gas,status,tok_s_gpu\n1B,1,8,1,1,1,4,ok,100\n1B,1,8,1,1,2,2,oom,\n");
  const auto rows = csv_rows(sweep({"replay", measured, "--strategy", "grid"}).out);
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("tokens_per_s_gpu"), row.at("row") == "2" ? "100" : "");
    EXPECT_EQ(row.at("share_of_best"), row.at("row") == "2" ? "1.0000" : "");
  }
}

TEST_F(Commands, ReplayTakesEveryStrategy) {
  const std::string measured = file("m.csv", "model,nodes,dp,tp,pp,mbs,gas,tok_s_gpu\n1B,1,8,1,1,1,4,100\n");
  for (const std::string& word : strategy_words()) {
    const Answer said = sweep({"replay", measured, "--strategy", word});
    EXPECT_EQ(said.code, kAnswered) << word << said.err;
  }
}

TEST_F(Commands, AnImportAgainWithACorrectedFlagIsRefusedOrReplaces) {
  const std::string csv = file("my.csv", "model,mbs,dp,tok_s_gpu\na,1,8,10\na,2,8,20\n");
  std::vector<std::string> words = {"import", csv, "--set", "seq_len=4096", "--set", "precision=bf16"};
  auto with = [&](const char* hardware) {
    auto out = words;
    out.insert(out.end(), {"--hardware", hardware});
    return out;
  };
  EXPECT_EQ(ask(with("h100-sxm-80gb")).code, kAnswered);
  EXPECT_EQ(ask(with("h100-sxm-80gb")).code, kAnswered) << "the same again";
  EXPECT_EQ(ask(with("a100-80gb")).code, kBadInput);
  words.emplace_back("--replace");
  EXPECT_EQ(ask(with("a100-80gb")).code, kAnswered);
  EXPECT_EQ(ask({"query", "select hardware from results group by 1", "--csv"}).out, "hardware\na100-80gb\n");
}

TEST_F(Commands, AnImportWithoutARowMakesNothing) {
  const std::string flags = "model,mbs,dp,tok_s_gpu,status\n";
  for (const auto& csv : {file("empty.csv", flags), file("pending.csv", flags + "a,1,8,,PENDING\n")}) {
    EXPECT_EQ(ask({"import", csv, "--set", "seq_len=4096", "--set", "precision=bf16", "--set",
                   "hardware=h100-sxm-80gb"})
                  .code,
              kBadInput);
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
}

TEST_F(Commands, NoFileKeepsADatabaseInMemory) {
  const std::string csv = file("my.csv", "model,mbs,dp,tok_s_gpu\na,1,8,10\n");
  std::filesystem::current_path(dir_);
  const Answer said = sweep({"import", csv, "--set", "seq_len=4096", "--set", "precision=bf16", "--hardware",
                             "h100-sxm-80gb", "--db", ":memory:", "--json"});
  std::filesystem::current_path("/");
  EXPECT_EQ(said.code, kBadInput);
  EXPECT_EQ(nlohmann::json::parse(said.err)["error"]["kind"], "invalid_value");
  EXPECT_FALSE(std::filesystem::exists(dir_ / ":memory:"));
}

TEST_F(Commands, WhatAMergeBroughtIsCountedInWords) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  ASSERT_TRUE(store_->release_lease(sweep_));
  store_.reset();
  const Answer said = sweep({"merge", dir_ / "all.db", path_});
  EXPECT_EQ(said.code, kAnswered) << said.err;
  EXPECT_EQ(said.err.find("1 sweeps"), std::string::npos) << said.err;
}

/// The names of the findings of `doctor --json`. Their details, such as the bytes free on a disk, change between two calls.
std::vector<std::string> findings_of(const Answer& doctor) {
  std::vector<std::string> names;
  const auto said = nlohmann::json::parse(doctor.out);
  for (const auto& finding : said["findings"]) names.push_back(finding["what"]);
  return names;
}

TEST_F(Commands, DoctorChecksThePlaceThatAGridNames) {
  const std::string head = "name: t\nmodel: llama3-8b\nbase: {dp: 1}\n";
  const std::string there = file("there.yaml", head + "launch: {slurm: {partition: p}}\n");
  const std::string here = file("here.yaml", head + "workload: torchtitan\n");
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);  // no Slurm, whatever machine this is
  const Answer slurm = ask({"doctor", "--grid", there, "--json"}),
               local = ask({"doctor", "--grid", here, "--json"}), plain = ask({"doctor", "--json"});
  EXPECT_EQ(findings_of(ask({"doctor", "--grid", there, "--on", "local", "--json"})), findings_of(plain));
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(slurm.code, kUnanswered) << slurm.out;
  EXPECT_NE(findings_of(slurm), findings_of(plain));
  EXPECT_EQ(findings_of(local), findings_of(plain));
}

TEST_F(Commands, ResumeRefusesAnOutcomeThatNoRunHas) {
  start(1);
  EXPECT_EQ(ask({"resume", "--retry", "omm"}).code, kBadInput);
  EXPECT_EQ(ask({"resume", "--retry", "pruned"}).code, kBadInput);
}

TEST_F(Commands, AQueryMayNotTakeLongerThanAClockCounts) {
  start(1);
  EXPECT_EQ(ask({"query", "select 1", "--seconds", "1e12"}).code, kBadInput);
  EXPECT_EQ(ask({"query", "select 1", "--seconds", "1e9"}).code, kAnswered);
}

TEST(Detach, TheCommandThatIsStartedHasTheFlagInNoForm) {
  EXPECT_EQ(detached_words({"sweep", "run", "--detach", "g.yaml", "--detach=true", "--detached"}, {"--yes"}),
            (std::vector<std::string>{"sweep", "run", "g.yaml", "--detached", "--yes"}));
}

TEST(Detach, WordsThatAreNoOptionsStayBehindTheOptions) {
  EXPECT_EQ(detached_words({"sweep", "run", "--detach", "--", "--detach"}, {"--yes"}),
            (std::vector<std::string>{"sweep", "run", "--yes", "--", "--detach"}));
}

}  // namespace
}  // namespace sweep::cli

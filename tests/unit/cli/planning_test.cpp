// The commands that need no results, as people type them: plan, choose, predict, replay and the catalogues.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

using nlohmann::json;

constexpr const char* kGrid = R"(name: g
model: {family: llama, name: t, layers: 1, hidden_size: 32, heads: 2, kv_heads: 2, intermediate_size: 64, vocab_size: 64}
base: {hardware: h100-sxm-80gb, nodes: 1, gpus_per_node: 8, dp: 8, seq_len: 16, global_batch_size: 32}
grid:
  micro_batch_size: [1, 3, 4]
)";

class Planned : public CommandTest {
 protected:
  std::string grid_;
  void SetUp() override {
    CommandTest::SetUp();
    grid_ = file("grid.yaml", kGrid);
  }
};

TEST_F(Planned, PlanPrunesByRuleAndStartsNothing) {
  const Answer said = ask({"plan", grid_, "--json"});
  EXPECT_EQ(said.code, kAnswered) << said.err;
  std::istringstream lines(said.out);
  i64 admitted = 0, pruned = 0;
  for (std::string line; std::getline(lines, line);) {
    const json entry = json::parse(line);
    const bool runs = entry["admitted"].get<bool>();
    ++(runs ? admitted : pruned);
    EXPECT_EQ(entry["trial"]["micro_batch_size"] == 3, !runs);
    EXPECT_EQ(entry.contains("rule"), !runs);
  }
  EXPECT_EQ(admitted, 2);
  EXPECT_EQ(pruned, 1);
  EXPECT_EQ(csv_rows(ask({"plan", grid_, "--csv"}).out).size(), 3u);
  EXPECT_EQ(ask({"plan", grid_, "--list"}).code, kAnswered);
  EXPECT_EQ(ask({"plan", dir_ / "absent.yaml"}).code, kBadInput);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Planned, ChooseSaysWhatMeetsADeadline) {
  const auto choose = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"choose", grid_, "--tokens", "1e9"};
    words.insert(words.end(), more.begin(), more.end());
    return sweep(words).code;
  };
  EXPECT_EQ(choose({}), kAnswered);
  EXPECT_EQ(choose({"--days", "0.0000001"}), kUnanswered);
  EXPECT_EQ(sweep({"choose", grid_}).code, kBadInput) << "--tokens is required";
  const auto document = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"choose", grid_, "--tokens", "1e9", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(sweep(words).out);
  };
  const json all = document({});
  EXPECT_EQ(all["meeting"], 2);
  ASSERT_EQ(all["choices"].size(), 2u);
  EXPECT_EQ(all["ordered_by"], "usd");
  EXPECT_EQ(all["choices"][0]["trial"], all["fastest"]["trial"]) << "on one kind of hardware the cheapest";
  EXPECT_EQ(document({"--show", "1"})["choices"].size(), 1u);
  EXPECT_EQ(document({"--usd", "1e9"})["ordered_by"], "days");
  const json none = document({"--days", "0.0000001"});
  EXPECT_EQ(none["meeting"], 0);
  EXPECT_GT(none["fastest"]["days"], 0.0000001);
}

TEST_F(Planned, ChooseCountsUsefulTokensAndNamesWhatTellsItsRowsApart) {
  const std::string grid =
      file("documents.yaml", std::string(kGrid) + "  packing: [false, true]\n" + "  lengths: [fixed 4]\n");
  const json all = json::parse(sweep({"choose", grid, "--tokens", "1e9", "--json"}).out);
  ASSERT_EQ(all["choices"].size(), 4u);
  EXPECT_EQ(all["fastest"]["configuration"]["packing"], true);
  EXPECT_EQ(all["fastest"]["useful_tokens_per_s"], all["fastest"]["tokens_per_s"]);
  for (const json& choice : all["choices"]) {
    const bool packed = choice["configuration"].value("packing", false);
    EXPECT_DOUBLE_EQ(choice["useful_tokens_per_s"].get<double>() / choice["tokens_per_s"].get<double>(),
                     packed ? 1 : 0.25);
    EXPECT_NEAR(choice["days"].get<double>() * 86400 * choice["useful_tokens_per_s"].get<double>(), 1e9, 1);
  }
  EXPECT_NE(sweep({"choose", grid, "--tokens", "1e9"}).out.find("packing="), std::string::npos);
  EXPECT_EQ(sweep({"choose", grid_, "--tokens", "1e9"}).out.find("setting"), std::string::npos)
      << "the micro-batch has a column";
}

TEST_F(Planned, PredictGivesEachRowItsMemoryAndTime) {
  const std::string csv = file("c.csv", "model,nodes,dp,tp\nllama3-8b,1,1,8\nllama3-70b,1,8,1\n");
  const Answer said = sweep({"predict", "--configs", csv, "--hardware", "h100-sxm-80gb"});
  EXPECT_EQ(said.code, kAnswered) << said.err;
  const auto rows = csv_rows(said.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("fits"), "true");
  EXPECT_GT(std::stod(rows[0].at("predicted_bytes")), 1e9);
  EXPECT_EQ(rows[1].at("fits"), "false");
  const json objects =
      json::parse(sweep({"predict", "--configs", csv, "--hardware", "h100-sxm-80gb", "--json"}).out);
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[0]["model"], "llama3-8b");
  EXPECT_EQ(objects[0]["tp"], "8") << "fields of the file are text";
  EXPECT_EQ(objects[0]["fits"], true);
  EXPECT_TRUE(objects[0]["reason"].is_null());
  EXPECT_EQ(objects[1]["fits"], false);
  EXPECT_EQ(objects[1]["reason"].get<std::string>().find("memory: stage 0"), 0u);
  for (const auto& [name, text] : rows[0])
    if (objects[0][name].is_number()) {
      EXPECT_NEAR(objects[0][name], std::stod(text), 1e-3 * std::abs(std::stod(text))) << name;
    }
  EXPECT_EQ(sweep({"predict"}).code, kBadInput);
  EXPECT_EQ(sweep({"predict", "--configs", csv, "--hardware", "absent"}).code, kBadInput);
}

TEST_F(Planned, ReplayTriesAllOfThemByGrid) {
  const std::string csv = file("m.csv",
                               "model,nodes,dp,tp,pp,mbs,gas,tok_s_gpu\n"
                               "1B,1,8,1,1,1,4,100\n1B,1,8,1,1,2,2,200\n");
  const auto rows = csv_rows(sweep({"replay", csv, "--strategy", "grid"}).out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("trial"), "1");
  for (const auto& row : rows) EXPECT_EQ(row.at("share_of_best"), row.at("row") == "3" ? "1.0000" : "0.5000");
  EXPECT_EQ(sweep({"replay", csv, "--strategy", "absent"}).code, kBadInput);
  const std::string unmeasured = file("u.csv", "model,nodes,dp,tp,pp,mbs,gas\n1B,1,8,1,1,1,4\n");
  EXPECT_EQ(sweep({"replay", unmeasured}).code, kBadInput) << "no row says how fast it ran";
  const json tried = json::parse(sweep({"replay", csv, "--strategy", "grid", "--json"}).out);
  ASSERT_EQ(tried.size(), 2u);
  for (const auto& each : tried) {
    EXPECT_EQ(each["share_of_best"], each["row"] == 3 ? 1 : 0.5);
    EXPECT_EQ(each["configuration"]["micro_batch_size"], each["row"] == 3 ? 2 : 1);
  }
}

TEST(Catalogues, AreTablesAndDocuments) {
  const json models = json::parse(sweep({"models", "--json"}).out);
  ASSERT_FALSE(models.empty());
  const std::string name = models[0]["name"];
  EXPECT_EQ(json::parse(sweep({"models", name, "--json"}).out), json::array({models[0]}));
  EXPECT_EQ(json::parse(sweep({"list", "models", name, "--json"}).out), json::array({models[0]}));
  EXPECT_EQ(sweep({"list", "hardware", "cpu"}).out, sweep({"hardware", "cpu"}).out);
  EXPECT_EQ(sweep({"list", "recipes", "torchtitan"}).code, kBadInput);
  EXPECT_NE(sweep({"models"}).out.find(name), std::string::npos);
  EXPECT_EQ(sweep({"models", "absent"}).code, kBadInput);
  const json cards = json::parse(sweep({"hardware", "h100-sxm-80gb", "--json"}).out);
  ASSERT_EQ(cards.size(), 1u);
  EXPECT_EQ(cards[0]["gpus_per_node"], 8);
  EXPECT_NE(sweep({"hardware"}).out.find("h100-sxm-80gb"), std::string::npos);
  EXPECT_EQ(sweep({"hardware", "absent"}).code, kBadInput);
}

TEST_F(Planned, ASimulationWithTrialsThatHaveNoAnswerSaysSo) {
  EXPECT_EQ(sweep({"simulate", grid_, "--crash", "100", "--oom", "0", "--hang", "0"}).code, kUnanswered);
  EXPECT_EQ(sweep({"simulate", grid_, "--crash", "0", "--hang", "0"}).code, kAnswered);
}

}  // namespace
}  // namespace sweep::cli

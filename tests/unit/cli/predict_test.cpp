// sweep predict and sweep replay as people type them: fits, what a file says beside its rows, and what is refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

using Rows = std::vector<std::map<std::string, std::string>>;

class Predicted : public CommandTest {
 protected:
  // The rows as `sweep predict` with these words answers them.
  static Rows rows_of(std::vector<std::string> words) {
    words.insert(words.begin(), "predict");
    const Answer said = sweep(words);
    EXPECT_EQ(said.code, kAnswered) << said.err;
    return csv_rows(said.out);
  }

  static double number(const std::map<std::string, std::string>& row, const char* column) {
    const std::string& cell = row.at(column);
    return cell.empty() ? 0 : std::stod(cell);
  }

  nlohmann::json saved() const { return nlohmann::json::parse(std::ifstream(profile())); }
  std::string profile() const { return (dir_ / "p.json").string(); }
};

constexpr const char* kLayouts = "model,nodes,dp,tp,zero,mbs,gas";

// Layouts on 1 to 64 nodes, as lines of a file.
std::vector<std::string> layouts() {
  std::vector<std::string> out;
  for (const char* model : {"llama3-8b", "llama3.2-1b"})
    for (const int nodes : {1, 4, 16, 64})
      for (const int tp : {1, 2, 8})
        for (const int mbs : {1, 2})
          out.push_back(std::string(model) + ',' + std::to_string(nodes) + ',' +
                        std::to_string(nodes * 8 / tp) + ',' + std::to_string(tp) + ",1," +
                        std::to_string(mbs) + ",4");
  return out;
}

std::string lines(const std::string& head, const std::vector<std::string>& all) {
  std::string out = head + "\n";
  for (const std::string& line : all) out += line + "\n";
  return out;
}

TEST_F(Predicted, AFitToItsOwnPredictionsOnAnotherGpuGivesThem) {
  for (const auto& [profile_name, hardware] :
       {std::pair("nanotron", "a100-80gb"), std::pair("megatron", "h100-sxm-80gb"),
        std::pair("lightning", "a100-80gb")}) {
    const std::string path = file("l.csv", lines(kLayouts, layouts()));
    const Rows told = rows_of({"--configs", path, "--profile", profile_name, "--hardware", hardware});
    std::vector<std::string> measured = layouts();
    for (std::size_t i = 0; i < measured.size(); ++i) measured[i] += ',' + told[i].at("predicted_step_s");
    const std::string own = file("own.csv", lines(std::string(kLayouts) + ",step_s", measured));
    const Rows again = rows_of({"--fit", own, "--configs", path, "--profile", profile_name, "--hardware",
                                hardware, "--save", profile()});
    const Rows later = rows_of({"--configs", path, "--profile", profile(), "--hardware", hardware});
    for (std::size_t i = 0; i < told.size(); ++i)
      for (const Rows* rows : {&again, &later})
        EXPECT_NEAR(number((*rows)[i], "predicted_step_s") / number(told[i], "predicted_step_s"), 1, 0.02)
            << profile_name << ": " << layouts()[i];
    EXPECT_EQ(saved()["hardware"], hardware);
  }
}

// 32 rows that ran with little memory, and 32 of each status, which need little too.
std::string with_failures(const std::vector<std::string>& statuses) {
  std::vector<std::string> all;
  for (int i = 0; i < 32; ++i) {
    const auto text = [](int n) { return std::to_string(n); };
    all.push_back("llama3.2-1b,8,3," + text(1 + i % 3) + ',' + text(1 + i % 5) + ',' +
                  text(512 * (1 + i % 4)) + ",ok,0." + text(50 + i) + ',' + text(8 + i / 10));
    for (const auto& status : statuses)
      all.push_back("llama3.2-1b,8,3,1," + text(1 + i) + ",512," + status + ",,");
  }
  return lines("model,dp,zero,mbs,gas,seq_len,status,step_s,mem_gib", all);
}

TEST_F(Predicted, OnlyMemoryMovesTheLimitOfMemory) {
  const std::string asked = file("q.csv", "model,dp,zero,mbs,gas,seq_len\nllama3-8b,8,3,1,1,4096\n");
  for (const std::vector<std::string>& statuses :
       {std::vector<std::string>{"timeout", "crash", "pending", "cancelled", "node_lost", "hang", "invalid",
                                 "unsupported"},
        std::vector<std::string>{"oom"}}) {
    const Rows told = rows_of({"--fit", file("f.csv", with_failures(statuses)), "--trainer", "torchrun",
                               "--configs", asked, "--save", profile()});
    EXPECT_EQ(told.at(0).at("fits"), "true") << statuses.front();
    EXPECT_GE(saved()["facts"]["need_share"], 0.95) << statuses.front();
  }
}

TEST_F(Predicted, APrecisionWithoutAPeakHasNoTime) {
  const std::string path = file("c.csv", "model,dp,zero,precision\nllama3-8b,8,3,fp8\nllama3-8b,8,3,bf16\n");
  const Rows told = rows_of({"--configs", path, "--trainer", "torchrun", "--hardware", "a100-80gb"});
  EXPECT_EQ(told.at(0).at("predicted_step_s"), "");
  EXPECT_EQ(told.at(0).at("predicted_tokens_per_s_gpu"), "");
  EXPECT_NE(told.at(0).at("reason"), "");
  EXPECT_GT(number(told.at(0), "needed_bytes"), 0);
  EXPECT_GT(number(told.at(1), "predicted_step_s"), 0);
  EXPECT_EQ(told.at(1).at("reason"), "");
}

TEST_F(Predicted, AnEncoderDecoderIsRefusedByProfilesOfTrainers) {
  const std::string path = file("c.csv", "model,dp,zero,seq_len\nblenderbot-400m,8,3,128\n");
  for (const char* trainer : {"torchrun", "nanotron", "megatron", "huggingface"}) {
    const Rows told = rows_of({"--configs", path, "--trainer", trainer});
    EXPECT_EQ(told.at(0).at("fits"), "false") << trainer;
    EXPECT_EQ(told.at(0).at("reason").find("encoder"), 0u) << trainer;
  }
  EXPECT_EQ(rows_of({"--configs", path}).at(0).at("fits"), "true") << "the built-in step has it";
}

TEST_F(Predicted, TheFileNamesItsHardware) {
  const auto asked = [&](const std::string& rows, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"predict", "--configs",
                                      file("c.csv", "model,dp,zero,hardware\n" + rows)};
    words.insert(words.end(), more.begin(), more.end());
    return sweep(words);
  };
  const std::string one = "llama3-8b,8,3,a100-80gb\n", two = "llama3-8b,8,3,h200-141gb\n";
  const Answer own = asked(one + one);
  ASSERT_EQ(own.code, kAnswered) << own.err;
  EXPECT_EQ(own.out, asked(one + one, {"--hardware", "a100-80gb"}).out);
  EXPECT_EQ(own.out, asked(one + "llama3-8b,8,3,a100-80gb\n").out);
  const Answer mixed = asked(one + two);
  EXPECT_EQ(mixed.code, kBadInput);
  EXPECT_NE(mixed.err.find("c.csv:3"), std::string::npos) << mixed.err;
  EXPECT_NE(mixed.err.find("'hardware'"), std::string::npos) << mixed.err;
  const Answer other = asked(one, {"--hardware", "h100-sxm-80gb"});
  EXPECT_EQ(other.code, kBadInput);
  EXPECT_NE(other.err.find("c.csv:2"), std::string::npos) << other.err;
  EXPECT_EQ(asked("llama3-8b,8,3,absent\n").code, kBadInput);
  const std::string measured = file("m.csv", "model,dp,hardware,tok_s_gpu\nllama3-8b,8,a100-80gb,10\n");
  EXPECT_EQ(sweep({"replay", measured}).code, kAnswered);
  EXPECT_EQ(sweep({"replay", measured}).out, sweep({"replay", measured, "--hardware", "a100-80gb"}).out);
  EXPECT_EQ(sweep({"replay", measured, "--hardware", "h100-sxm-80gb"}).code, kBadInput);
}

TEST_F(Predicted, FewRowsMakeNoCertainty) {
  const std::string asked =
      file("q.csv", "model,nodes,dp,tp,zero\nllama3-8b,1,8,1,3\nllama3-8b,8,8,8,3\nllama3-70b,64,64,8,3\n");
  const auto fitted_to = [&](const std::vector<std::string>& measured) {
    return rows_of({"--trainer", "torchrun", "--configs", asked, "--fit",
                    file("f.csv", lines("model,dp,zero,mbs,gas,step_s,mem_gib", measured))});
  };
  const Rows plain = rows_of({"--trainer", "torchrun", "--configs", asked});
  const Rows same = fitted_to(std::vector<std::string>(42, "llama3-8b,8,3,1,1,0.6,50"));
  EXPECT_GT(number(same[0], "uncertainty_time_factor"), 1.03) << "42 times one row are one row";
  EXPECT_GT(number(same[0], "uncertainty_bytes"), 0.03);
  std::vector<std::string> few;
  for (int i = 1; i <= 6; ++i)
    few.push_back("llama3-8b,8,3," + std::to_string(i) + ",1,0." + std::to_string(55 * i % 100) + "," +
                  std::to_string(45 + 5 * i));
  const Rows one_node = fitted_to(few);
  EXPECT_GE(number(one_node[1], "uncertainty_bytes"), number(plain[1], "uncertainty_bytes"))
      << "no row has tensor parallelism";
}

TEST_F(Predicted, AFitReadsWhatExportWrites) {
  std::vector<std::string> all;
  for (const int batch : {1, 2, 3, 4, 5, 6})
    all.push_back("false,llama3-8b,8,3," + std::to_string(batch) + ',' +
                  std::to_string(60000 + 1000 * batch) + ',' + std::to_string((45 + 5LL * batch) << 30) +
                  ",1,1");
  const std::string path =
      file("e.csv",
           lines("rehearsed,model,dp,zero,mbs,tokens_per_s,peak_reserved_bytes,predicted_bytes,predicted_ms",
                 all));
  const Answer said = sweep({"predict", "--trainer", "torchrun", "--fit", path, "--save", profile()});
  EXPECT_EQ(said.code, kAnswered) << said.err;
  EXPECT_NE(said.err.find("6 rows state a time, 6 state memory"), std::string::npos) << said.err;
  EXPECT_EQ(sweep({"predict", "--trainer", "torchrun", "--configs", path}).code, kBadInput)
      << "its columns would be there twice";
  EXPECT_EQ(csv_rows(sweep({"replay", path, "--trainer", "torchrun", "--strategy", "grid"}).out).size(), 6u);
}

TEST_F(Predicted, ARehearsedRowIsNotMeasured) {
  std::vector<std::string> all(6, "llama3-8b,8,3,1,1,0.6,0");
  all.back() = "llama3-8b,8,3,2,1,0.9,1";
  const std::string path = file("r.csv", lines("model,dp,zero,mbs,gas,step_s,rehearsed", all));
  const std::vector<std::vector<std::string>> ways{
      {"predict", "--trainer", "torchrun", "--fit", path, "--save", profile()}, {"replay", path}};
  for (const auto& words : ways) {
    const Answer said = sweep(words);
    EXPECT_EQ(said.code, kBadInput) << words[0];
    EXPECT_NE(said.err.find("r.csv:7"), std::string::npos) << said.err;
  }
  EXPECT_EQ(sweep({"predict", "--trainer", "torchrun", "--configs", path}).code, kAnswered)
      << "only their configurations are read";
}

TEST_F(Predicted, AFileHasOneTrainer) {
  const std::string two = file("t.csv",
                               "model,dp,zero,mbs,trainer,tok_s_gpu\nllama3-8b,8,1,1,nanotron,100\n"
                               "llama3-8b,8,1,2,megatron,90\n");
  const std::vector<std::vector<std::string>> ways{
      {"predict", "--configs", two}, {"predict", "--fit", two, "--save", profile()}, {"replay", two}};
  for (const auto& words : ways) {
    const Answer said = sweep(words);
    EXPECT_EQ(said.code, kBadInput) << words[0];
    for (const char* part : {"t.csv:3", "nanotron", "megatron"})
      EXPECT_NE(said.err.find(part), std::string::npos) << said.err;
  }
  EXPECT_EQ(sweep({"predict", "--configs", two, "--trainer", "nanotron"}).code, kAnswered);
  const std::string one = file("o.csv", "model,dp,zero,trainer,tok_s_gpu\nllama3-8b,8,1,nanotron,100\n");
  EXPECT_EQ(sweep({"replay", one}).out, sweep({"replay", one, "--trainer", "nanotron"}).out);
  EXPECT_NE(sweep({"replay", one}).out, sweep({"replay", one, "--profile", "sweep"}).out);
}

TEST_F(Predicted, ATrainerMayHaveTwoNames) {
  const std::string two = file("n.csv",
                               "model,dp,zero,mbs,trainer\nllama3-8b,8,1,1,megatron\n"
                               "llama3-8b,8,1,2,Megatron-LM\nllama3-8b,8,1,2,\n");
  EXPECT_EQ(rows_of({"--configs", two}).size(), 3u);
  const std::string others = file("m.csv",
                                  "model,dp,zero,mbs,trainer\nllama3-8b,8,1,1,megatron\n"
                                  "llama3-8b,8,1,2,none of them\n");
  EXPECT_EQ(sweep({"predict", "--configs", others}).code, kBadInput);
}

TEST_F(Predicted, ReplayLeavesOutRowsWithoutAnAnswer) {
  const std::string path = file("p.csv",
                                "model,dp,mbs,gas,status,tok_s_gpu\n1B,8,1,4,pending,\n1B,8,2,2,ok,100\n"
                                "1B,8,4,1,cancelled,\n1B,8,1,8,oom,\n");
  const Rows tried = csv_rows(sweep({"replay", path, "--strategy", "grid"}).out);
  ASSERT_EQ(tried.size(), 2u);
  EXPECT_EQ((std::set<std::string>{tried[0].at("row"), tried[1].at("row")}),
            (std::set<std::string>{"3", "5"}));
}

TEST_F(Predicted, WhatTheProgramDecidesIsNotSure) {
  const std::string open = file("o.csv", "model,dp\nllama3-8b,8\nllama3.2-1b,8\n");
  const std::string stated = file("s.csv", "model,dp,zero,precision\nllama3-8b,8,0,bf16\n");
  const Rows told = rows_of({"--configs", open, "--trainer", "torchtitan"});
  EXPECT_EQ(told.at(0).at("fits"), "false");
  EXPECT_EQ(told.at(0).at("sure"), "no") << "torchtitan shards unless it is told otherwise";
  EXPECT_EQ(told.at(1).at("sure"), "yes");
  EXPECT_EQ(rows_of({"--configs", stated, "--trainer", "torchtitan"}).at(0).at("sure"), "yes");
  const auto notes = [](std::vector<std::string> words) {
    words.insert(words.begin(), "predict");
    return sweep(words).err.find("note:") != std::string::npos;
  };
  EXPECT_TRUE(notes({"--configs", open, "--trainer", "torchtitan"}));
  EXPECT_FALSE(notes({"--configs", stated, "--trainer", "torchtitan"}));
  EXPECT_FALSE(notes({"--configs", open})) << "the built-in step has defaults of its own";
}

TEST_F(Predicted, ChooseSaysWhatTheGridLeavesToTheProgram) {
  const std::string grid = file("g.yaml", R"(name: g
model: llama3.2-1b
workload: torchtitan
base: {hardware: h100-sxm-80gb, nodes: 1, gpus_per_node: 8, dp: 8, seq_len: 4096, global_batch_size: 32}
grid: {micro_batch_size: [1, 2]}
)");
  const Answer said = sweep({"choose", grid, "--tokens", "1e9"});
  EXPECT_EQ(said.code, kAnswered) << said.err;
  EXPECT_NE(said.err.find("note:"), std::string::npos) << said.err;
}

}  // namespace
}  // namespace sweep::cli

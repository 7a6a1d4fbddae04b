// A log that grows while it is read, and of which the agent cuts bytes out.
#include "worker/command/trainer_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "tests/support/temporary_folder.h"

namespace sweep::command {
namespace {

class TrainerOutputTest : public ::testing::Test {
 protected:
  TrainerOutput open(bool finds_steps = true) {
    CommandSpec spec;
    spec.log_patterns = {{"step_ms", "took ([0-9.]+)"}};
    return std::move(TrainerOutput::open(results_, log_, spec, finds_steps).value());
  }
  static void append(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file, std::ios::app | std::ios::binary) << text;
  }

  // A look ends after a quarter of a second, also where this process had no processor meanwhile.
  static void read_all(TrainerOutput& output) {
    while (!output.look()) {
    }
  }

  const TemporaryFolder folder_;
  const std::filesystem::path results_ = folder_ / "results", log_ = folder_ / "log";
};

TEST_F(TrainerOutputTest, StepsAreFoundAsTheyAppear) {
  TrainerOutput output = open();
  read_all(output);
  EXPECT_FALSE(output.log_has_grown());
  append(log_, "took 1\ntoo");
  read_all(output);
  EXPECT_TRUE(output.log_has_grown());
  EXPECT_EQ(output.report().last_step(), 1);
  append(log_, "k 2\ntook 3");
  read_all(output);
  EXPECT_EQ(output.report().last_step(), 2);
  output.finish();
  EXPECT_EQ(output.report().last_step(), 3);
  EffectiveSettings used;
  output.describe(used);
  EXPECT_EQ(to_json(used), (nlohmann::json{{"report", "from_log"},
                                           {"steps", 3},
                                           {"log", {{"lines", 3}, {"matches", {{"step_ms", 3}}}}}}));
}

TEST_F(TrainerOutputTest, WhatWasCutOutIsPassedOver) {
  TrainerOutput output = open();
  append(log_, "took 1\n");
  read_all(output);
  append(log_, std::string(1 << 20, 'x') + "took 7");
  ASSERT_EQ(::truncate(log_.c_str(), 3 << 20), 0);  // a hole behind it
  append(log_, " and the rest of a line\ntook 2\n");
  read_all(output);
  output.finish();
  EXPECT_EQ(output.report().last_step(), 2);
  EXPECT_EQ(output.report().steps().back().ms, 2);
}

TEST_F(TrainerOutputTest, ALogThatWasMadeShorterIsReadFromItsEnd) {
  TrainerOutput output = open();
  append(log_, "took 1\n" + std::string(5000, 'x'));
  read_all(output);
  ASSERT_EQ(::truncate(log_.c_str(), 4000), 0);
  read_all(output);
  append(log_, "\ntook 2\n");
  read_all(output);
  EXPECT_EQ(output.report().last_step(), 2);
}

TEST_F(TrainerOutputTest, ALogOfAnotherRanksProcessOnlyGrows) {
  TrainerOutput output = open(false);
  append(log_, "took 1\n");
  read_all(output);
  EXPECT_TRUE(output.log_has_grown());
  EXPECT_EQ(output.report().last_step(), 0);
  append(results_, "{\"kind\":\"step\",\"step\":1,\"ms\":4}\n");
  read_all(output);
  EXPECT_EQ(output.report().last_step(), 1);
}

}  // namespace
}  // namespace sweep::command

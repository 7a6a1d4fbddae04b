#include "schema/command_spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "tests/support/error_matchers.h"

namespace sweep {
namespace {

CommandSpec every_member() {
  CommandSpec spec;
  spec.argv = {"python", "train.py", "--tp", "2"};
  spec.environment = {{"OMP_NUM_THREADS", "4"}};
  spec.files = {{"conf/ds.json", "{{}}"}};
  spec.folder = "/home/me/code";
  spec.per_node = spec.stop_after_steps = true;
  spec.log_patterns = {{"step_ms", "time ([0-9.]+)"}};
  spec.axes = {{"lr", "0.1"}};
  return spec;
}

TEST(CommandSpec, ComesBackFromItsJson) {
  EXPECT_EQ(from_json<CommandSpec>(to_json(every_member())).value(), every_member());
  CommandSpec small;
  small.argv = {"true"};
  EXPECT_EQ(from_json<CommandSpec>(to_json(small)).value(), small);
}

TEST(CommandSpec, TravelsInTheTrialOfAnAttemptAlone) {
  Attempt attempt;
  attempt.trial.workload = Workload::kCommand;
  attempt.trial.program = dump(to_json(every_member()));
  const auto line = to_json(attempt);
  EXPECT_FALSE(line.contains("command"));
  const auto read = must(from_json<Attempt>(line));
  EXPECT_EQ(read, attempt);
  EXPECT_TRUE(read.runs_command());
  EXPECT_EQ(command_from(read.trial.program).value(), every_member());
  EXPECT_FALSE(from_json<Attempt>(to_json(Attempt{})).value().runs_command());
}

TEST(CommandSpec, AnAttemptWhoseProgramIsNoCommandIsRefused) {
  Attempt attempt;
  for (const char* program : {"train.py", R"({"argv": []})"}) {
    attempt.trial.program = program;
    EXPECT_FALSE(from_json<Attempt>(to_json(attempt))) << program;
  }
}

TEST(CommandSpec, WhatCannotBeIsRefused) {
  for (const char* text :
       {R"({})", R"([])", R"({"argv": []})", R"({"argv": [""]})", R"({"argv": ["a", 1]})",
        R"({"argv": ["a"], "shell": true})", R"({"argv": ["a"], "files": {"../x": ""}})",
        R"({"argv": ["a"], "files": {"/x": ""}})", R"({"argv": ["a"], "files": {"a//b": ""}})",
        R"({"argv": ["a"], "env": {"A=B": ""}})", R"({"argv": ["a"], "env": {"RANK": "0"}})",
        R"({"argv": ["a"], "env": {"SWEEP_ATTEMPT": ""}})", R"({"argv": ["a\u0000b"]})",
        R"({"argv": ["a"], "folder": "relative"})", R"({"argv": ["a"], "per_node": 1})"})
    EXPECT_FALSE(from_json<CommandSpec>(nlohmann::json::parse(text))) << text;
}

TEST(CommandSpec, OneRankNeedsNoLauncher) {
  using Words = std::vector<std::string>;
  const auto alone = [](Words argv) {
    CommandSpec spec;
    spec.argv = std::move(argv), spec.per_node = true;
    return without_launcher(spec);
  };
  const std::vector<std::pair<Words, Words>> cases{
      {{"/v/bin/torchrun", "--nproc-per-node", "8", "--nnodes=2", "train.py", "--micro", "1"},
       {"/v/bin/python3", "train.py", "--micro", "1"}},
      {{"torchrun", "--rdzv_id=a.py", "-m", "torchtitan.train", "--job.config_file", "c.toml"},
       {"python3", "-m", "torchtitan.train", "--job.config_file", "c.toml"}},
      {{"python", "-u", "-m", "torch.distributed.run", "--nproc_per_node", "2", "-m", "sweep_trial", "t.py"},
       {"python", "-u", "-m", "sweep_trial", "t.py"}},
      {{"deepspeed", "--num_gpus", "8", "train.py", "--deepspeed"}, {"python3", "train.py", "--deepspeed"}},
      // It tells its ranks more than their place, and stays.
      {{"/v/bin/accelerate", "launch", "--use_fsdp", "train.py"},
       {"/v/bin/accelerate", "launch", "--use_fsdp", "train.py"}},
      {{"python", "-m", "accelerate.commands.launch", "t.py"},
       {"python", "-m", "accelerate.commands.launch", "t.py"}}};
  for (const auto& [launched, expected] : cases) {
    const auto found = must(alone(launched));
    EXPECT_EQ(found.argv, expected);
    EXPECT_FALSE(found.per_node);
  }
  Words sourced = after_prologue("source venv/bin/activate"), expected = sourced;
  sourced.insert(sourced.end(), {"torchrun", "train.py"}),
      expected.insert(expected.end(), {"python3", "train.py"});
  ASSERT_TRUE(alone(sourced));
  EXPECT_EQ(alone(sourced)->argv, expected);
  EXPECT_FALSE(alone({"accelerate", "config", "train.py"}));
  EXPECT_FALSE(alone({"srun", "train.py"}));
  EXPECT_FALSE(alone({"torchrun", "--nproc-per-node", "8", "--no-python", "train"}));
  CommandSpec own;
  own.argv = {"srun", "train.py"};
  EXPECT_EQ(without_launcher(own)->argv, own.argv) << "a process for each rank has no launcher";
}

TEST(CommandSpec, TheScriptIsWhatLaunchersStart) {
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, std::string>> cases{
      {{"torchrun", "--nproc-per-node", "8", "train.py", "--micro", "1"}, "train.py"},
      {{"torchrun", "-m", "sweep_trial", "train.py"}, "train.py"},
      {{"torchrun", "-m", "torchtitan.train", "--job.config_file", "c.toml"}, "torchtitan.train"},
      {{"python", "-m", "torch.distributed.run", "-m", "own.train"}, "own.train"},
      {{"deepspeed", "--module", "sweep_trial", "train.py"}, "train.py"},
      {{"bash", "run.sh"}, "run.sh"},
      {{"train"}, "train"},
      {{}, ""}};
  for (const auto& [argv, script] : cases) EXPECT_EQ(script_of(argv), script);
}

}  // namespace
}  // namespace sweep

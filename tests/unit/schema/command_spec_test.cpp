#include "schema/command_spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "schema/codec.h"

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

TEST(CommandSpec, TravelsWithAnAttempt) {
  Attempt attempt;
  attempt.command = every_member();
  EXPECT_EQ(from_json<Attempt>(to_json(attempt)).value(), attempt);
  attempt.command.reset();
  EXPECT_EQ(from_json<Attempt>(to_json(attempt)).value(), attempt);
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

}  // namespace
}  // namespace sweep

// The section `workload`: what it refuses, what it renders, and how its axes enter ids and labels.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "grid_text.h"
#include "schema/codec.h"

namespace sweep::grid {
namespace {

// A grid of a command, with further lines.
std::string with(const std::string& workload, const std::string& rest = "base: {dp: 1}\n") {
  return "name: t\nworkload:\n" + workload + rest;
}

CommandSpec command_of(const PlanEntry& entry) {
  const auto json = parse_json(entry.trial.program);
  EXPECT_TRUE(json) << entry.trial.program;
  auto spec = from_json<CommandSpec>(*json);
  EXPECT_TRUE(spec) << entry.trial.program;
  return spec.value_or(CommandSpec{});
}

TEST(GridWorkload, AxesFillTheTemplatesAndRankNamesStay) {
  const auto out =
      expanded(with("  command: [torchrun, train.py, --tp, \"{tp}\", --port, \"{master_port}\", \"{{x}}\", "
                    "\"{total_steps}\"]\n"
                    "  env: {THREADS: \"{threads}\"}\n  files: {a/ds.json: '{{\"stage\": {zero}}}'}\n"
                    "  processes: per_node\n",
                    "grid: {tp: [1, 2]}\nmeasure: {warmup_steps: 2, steps: 3}\n"));
  ASSERT_EQ(out.admitted().size(), 2u);
  const CommandSpec spec = command_of(out.admitted()[1]);
  EXPECT_EQ(spec.argv, (std::vector<std::string>{"torchrun", "train.py", "--tp", "2", "--port",
                                                 "{master_port}", "{{x}}", "5"}));
  EXPECT_EQ(spec.environment.at("THREADS"), "1");
  EXPECT_EQ(spec.files.at("a/ds.json"), "{{\"stage\": 0}}");
  EXPECT_TRUE(spec.per_node);
  EXPECT_EQ(out.admitted()[1].trial.model, "command");
}

TEST(GridWorkload, OwnAxesAreLabelsAndPartOfTheId) {
  const std::string axes =
      "  command: [train]\n  axes:\n    lr: {type: number, default: 0.1}\n    compile: {type: flag, default: "
      "false}\n"
      "    mode: {type: text, default: eager}\n    chunks: {type: integer, default: -1}\n";
  const auto out = expanded(with(axes, "grid: {lr: [0.1, 0.25], mode: [eager, graph], chunks: [-1]}\n"));
  std::set<std::string> ids;
  for (const PlanEntry& entry : out.admitted()) ids.insert(entry.id);
  EXPECT_EQ(ids.size(), 4u);  // although no template names them
  const auto labels = nlohmann::json::parse(out.admitted()[3].trial.labels);
  EXPECT_EQ(labels, (nlohmann::json{{"lr", 0.25}, {"compile", false}, {"mode", "graph"}, {"chunks", -1}}));
}

TEST(GridWorkload, ExpressionsReadOwnAxes) {
  const auto out =
      expanded(with("  command: [train, \"{double}\"]\n  axes: {width: {type: integer, default: 1}}\n",
                    "grid: {width: [1, 2, 3]}\nderive: {double: width * 2}\nwhere: [width < 3]\n"));
  ASSERT_EQ(out.admitted().size(), 2u);
  EXPECT_EQ(command_of(out.admitted()[1]).argv.back(), "4");
}

TEST(GridWorkload, SpellingChangesWordsAndEmptyArgumentsGo) {
  const auto out =
      expanded(with("  command: [train, \"{recompute}\", \"{precision}\", \"\"]\n  spelling:\n"
                    "    recompute: {none: \"\", full: --checkpoint}\n    precision: {bf16: bfloat16}\n",
                    "grid: {recompute: [none, full]}\nbase: {precision: bf16}\n"));
  EXPECT_EQ(command_of(out.admitted()[0]).argv, (std::vector<std::string>{"train", "bfloat16", ""}));
  EXPECT_EQ(command_of(out.admitted()[1]).argv,
            (std::vector<std::string>{"train", "--checkpoint", "bfloat16", ""}));
}

TEST(GridWorkload, TheSameCommandIsTheSameTrial) {
  const auto once = expanded(with("  command: [train, \"{dp}\"]\n", "grid: {dp: [1, 2]}\n"));
  const auto again =
      expanded(with("  command: [ train, \"{dp}\" ]\n  processes: per_rank\n", "grid: {dp: [2, 1]}\n"));
  EXPECT_EQ(once.admitted()[0].id, again.admitted()[1].id);
}

TEST(GridWorkload, WhatIsWrongIsRefusedWithItsPlace) {
  struct Case {
    std::string text, place;
  };
  for (const Case& each : {
           Case{with("  folder: .\n"), "g.yaml:2:1:"},
           Case{with("  command: []\n"), "g.yaml:3:12:"},
           Case{with("  command: train.py\n"), "g.yaml:3:12:"},
           Case{with("  command: [\"{nowhere}\"]\n"), "g.yaml:3:13:"},
           Case{with("  command: [\"{\"]\n"), "g.yaml:3:13:"},
           Case{with("  command: [a]\n  shell: true\n"), "g.yaml:4:3:"},
           Case{with("  command: [a]\n  files: {../x: y}\n"), "g.yaml:4:11:"},
           Case{with("  command: [a]\n  files: {x: {from: nowhere.json}}\n"), "g.yaml:4:21:"},
           Case{with("  command: [a]\n  processes: many\n"), "g.yaml:4:14:"},
           Case{with("  command: [a]\n  axes: {tp: {type: integer, default: 1}}\n"), "g.yaml:4:10:"},
           Case{with("  command: [a]\n  axes: {lr: {type: real, default: 1}}\n"), "g.yaml:4:21:"},
           Case{with("  command: [a]\n  axes: {lr: {type: number}}\n"), "g.yaml:4:10:"},
           Case{with("  command: [a]\n  axes: {lr: {type: integer, default: 0.5}}\n"), "g.yaml:4:39:"},
           Case{with("  command: [a]\n", "grid: {lr: [1]}\n"), "g.yaml:4:8:"},
           Case{with("  command: [a]\n", "base: {program: x}\n"), "g.yaml:4:8:"},
           Case{kHead + "base: {workload: command}\n", "g.yaml:3:8:"},
           Case{with("  command: [a]\n  spelling: {nowhere: {a: b}}\n"), "g.yaml:2:1:"},
       })
    EXPECT_EQ(error_of(each.text).substr(0, each.place.size()), each.place)
        << each.text << error_of(each.text);
}

TEST(GridWorkload, AModelBringsItsRules) {
  const auto out = expanded(with("  command: [train, \"{layers}\"]\n", "model: llama3-8b\nbase: {dp: 1}\n"));
  EXPECT_EQ(command_of(out.admitted()[0]).argv.back(), "32");
  EXPECT_EQ(out.admitted()[0].trial.spec.layers, 32);
}

}  // namespace
}  // namespace sweep::grid

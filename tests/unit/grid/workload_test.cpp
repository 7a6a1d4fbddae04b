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

TEST(GridWorkload, TheUnitOfAnOwnAxisIsKeptBesideTheLabelsAndChangesNoId) {
  const std::string before = "  command: [train]\n  axes: {pause: {type: integer, default: 1";
  const auto plain = expanded(with(before + "}}\n", "grid: {pause: [2]}\n"));
  const auto with_unit = expanded(with(before + ", unit: ms}}\n", "grid: {pause: [2]}\n"));
  EXPECT_EQ(nlohmann::json::parse(with_unit.admitted().front().trial.labels),
            (nlohmann::json{{"pause", 2}, {"@units", {{"pause", "ms"}}}}));
  EXPECT_EQ(with_unit.admitted().front().id, plain.admitted().front().id);
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

TEST(GridWorkload, RowsTakeTheFirstCaseThatHolds) {
  const std::string rows =
      "  command: [train]\n  derive: {doubled: micro_batch_size * 2}\n  flags:\n"
      "    --tp: \"{tp}\"\n    --zero: \"{zero}\"\n    --batch: \"{doubled}\"\n    --world: {value: "
      "\"{world}\", of: []}\n"
      "    --mode: [{when: zero == 3, value: shard}, {value: copy, of: [zero]}]\n    --full: {when: "
      "recompute == \"full\"}\n"
      "    --window: \"{sliding_window}\"\n"
      "  unsupported: [{when: zero == 1, why: \"stage {zero}\"}, {when: not grad_clip, why: never said}]\n";
  const auto out =
      expanded(with(rows, "grid: {zero: [0, 1, 3]}\nbase: {dp: 2, micro_batch_size: 4, recompute: full}\n"));
  ASSERT_EQ(out.admitted().size(), 2u);
  EXPECT_EQ(command_of(out.admitted()[0]).argv,
            (std::vector<std::string>{"train", "--zero", "0", "--batch", "8", "--world", "2", "--mode",
                                      "copy", "--full"}));
  EXPECT_EQ(command_of(out.admitted()[1]).argv[8], "shard");
  ASSERT_EQ(out.with_rule("unsupported").size(), 1u);
  EXPECT_EQ(out.with_rule("unsupported")[0].reason, "stage 1");
  EXPECT_EQ(out.with_rule("unsupported")[0].verdict, Outcome::kUnsupported);
}

TEST(GridWorkload, SettingsAreLaidOverATreeAndKeepTheirTypes) {
  const auto out = expanded(
      with("  command: [train]\n  files:\n    c.yaml:\n      format: yaml\n      set: {a.b: \"{tp}\", a.c: "
           "\"{files}/x\", d: 1e-5, "
           "e: \"{{true}}\", f: \"true\"}\n    c.json: {set: {a.b: \"{tp}\", a.t: \"{precision}\"}}\n",
           "base: {tp: 2, precision: bf16}\n"));
  ASSERT_EQ(out.admitted().size(), 1u);
  const auto files = command_of(out.admitted()[0]).files;
  EXPECT_EQ(files.at("c.yaml"), "a:\n  b: 2\n  c: \"{files}/x\"\nd: 1.0e-05\ne: \"{{true}}\"\nf: true\n");
  EXPECT_EQ(files.at("c.json"), "{{\n  \"a\": {{\n    \"b\": 2,\n    \"t\": \"bf16\"\n  }}\n}}\n");
}

TEST(GridWorkload, AShellRunsThePrologueAndAContainerTheCommand) {
  const auto out =
      expanded(with("  command: [train, \"{dp}\"]\n  container: [apptainer, exec, x.sif]\n  prologue: source "
                    "${VENV}/activate\n"));
  EXPECT_EQ(command_of(out.admitted()[0]).argv,
            (std::vector<std::string>{"/bin/bash", "-c", "source ${{VENV}}/activate\nexec \"$@\"", "prologue",
                                      "apptainer", "exec", "x.sif", "train", "1"}));
}

TEST(GridWorkload, HostileTablesAreRefusedWithTheirPlace) {
  const std::string head = "  command: [a]\n";
  for (const auto& [text, place] : std::initializer_list<std::pair<std::string, std::string>>{
           {"  flags: [a]\n", "g.yaml:4:3:"},
           {"  flags: {--x: {when: \"tp >\", value: a}}\n", "g.yaml:4:28:"},
           {"  flags: {--x: {when: tp, value: a}}\n", "g.yaml:4:23:"},
           {"  flags: {--x: {values: a}}\n", "g.yaml:4:17:"},
           {"  flags: {--x: \"{nowhere}\"}\n", "g.yaml:4:16:"},
           {"  flags: {--x: {value: a, of: [nowhere]}}\n", "g.yaml:4:16:"},
           {"  derive: {tp: 1}\n", "g.yaml:4:16:"},
           {"  derive: {x: y, y: 1}\n", "g.yaml:4:15:"},
           {"  derive: {x: [{when: true, value: 1}, \"true\"]}\n", "g.yaml:4:40:"},
           {"  unsupported: [{when: true}]\n", "g.yaml:4:17:"},
           {"  unsupported: {a: b}\n", "g.yaml:4:16:"},
           {"  files: {a: {set: {x: \"{nowhere}\"}}}\n", "g.yaml:4:24:"},
           {"  files: {a: {set: {x: 1}, format: xml}}\n", "g.yaml:4:36:"},
           {"  env: {RANK: 1}\n", "g.yaml:2:1:"},
           {"  axes: {a: {type: integer, default: 1, values: [x]}}\n", "g.yaml:4:41:"},
           {"  axes: {a: {type: text, default: z, values: [x]}}\n", "g.yaml:4:35:"},
           {"  recipe: nowhere\n", "g.yaml:4:11:"},
           {"  recipe: ./nowhere.yaml\n", "g.yaml:4:11:"},
       }) {
    const auto error = error_of(with(head + text));
    EXPECT_EQ(error.substr(0, place.size()), place) << text << error;
  }
}

TEST(GridWorkload, RecipesLieOverOneAnotherAndErrorsNameTheirFile) {
  const std::map<std::string, std::string, std::less<>> texts{
      {"low",
       "command: [low, \"{script}\"]\nflags: {--a: {value: \"1\", of: []}, --b: {value: \"2\", of: []}}\n"},
      {"high", "recipe: low\nscript: s.py\nflags: {--a: {value: \"3\", of: []}, --b: null}\n"},
      {"wrong", "command: [x]\nflags: {--a: \"{nowhere}\"}\n"},
      {"circle", "recipe: circle\n"}};
  ReadOptions options;
  options.recipes.find = [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = texts.find(name);
    return found == texts.end() ? std::nullopt : std::optional<std::string_view>(found->second);
  };
  const auto high = read_text("name: t\nworkload: high\nbase: {dp: 1}\n", "g.yaml", options);
  ASSERT_TRUE(high) << high.error().message;
  std::vector<std::string> argv;
  ASSERT_TRUE(expand(
      *high, [&](PlanEntry&& entry) { return argv = command_of(entry).argv, true; }, 0));
  EXPECT_EQ(argv, (std::vector<std::string>{"low", "s.py", "--a", "3"}));
  for (const auto& [name, place] : std::initializer_list<std::pair<std::string, std::string>>{
           {"wrong", "recipe wrong:2:14:"}, {"circle", "recipe circle:1:9:"}, {"low", "g.yaml:2:1:"}}) {
    const auto error = error_of("name: t\nworkload: " + name + "\nbase: {dp: 1}\n", options);
    EXPECT_EQ(error.substr(0, place.size()), place) << error;
  }
}

TEST(GridWorkload, AModelBringsItsRules) {
  const auto out = expanded(with("  command: [train, \"{layers}\"]\n", "model: llama3-8b\nbase: {dp: 1}\n"));
  EXPECT_EQ(command_of(out.admitted()[0]).argv.back(), "32");
  EXPECT_EQ(out.admitted()[0].trial.spec.layers, 32);
}

}  // namespace
}  // namespace sweep::grid

// The section `workload`: what it refuses, what it renders, and how its axes enter ids and labels.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/expected.h"
#include "grid_text.h"
#include "schema/codec.h"
#include "schema/columns.h"

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

// The results have such a column already, where the axis would not be seen.
TEST(GridWorkload, AnAxisCannotHaveTheNameOfAColumn) {
  const auto axis = [](const std::string& name) {
    return with("  command: [train, \"{" + name + "}\"]\n  axes: {" + name +
                ": {type: integer, default: 1}}\n");
  };
  for (const char* name : {"loss_scale", "outcome", "step_ms", "trial", "name", "phase"}) {
    const auto grid = read_text(axis(name), "g.yaml", {});
    ASSERT_FALSE(grid) << name;
    EXPECT_EQ(grid.error().kind, ErrorKind::kConflict);
    EXPECT_EQ(grid.error().subject, name);
  }
  EXPECT_TRUE(read_text(axis("my_outcome"), "g.yaml", {}));
}

TEST(GridWorkload, OwnAxesAreLabelsAndPartOfTheId) {
  const std::string axes =
      "  command: [train, \"{lr}\", \"{mode}\"]\n  axes:\n    lr: {type: number, default: 0.1}\n    compile: "
      "{type: flag, default: "
      "false}\n"
      "    mode: {type: text, default: eager}\n    chunks: {type: integer, default: -1}\n";
  const auto out = expanded(with(axes, "grid: {lr: [0.1, 0.25], mode: [eager, graph], chunks: [-1]}\n"));
  std::set<std::string> ids;
  for (const PlanEntry& entry : out.admitted()) ids.insert(entry.id);
  EXPECT_EQ(ids.size(), 4u);
  auto labels = nlohmann::json::parse(out.admitted()[3].trial.labels);
  labels.erase("@axes");
  EXPECT_EQ(labels, (nlohmann::json{{"lr", 0.25}, {"compile", false}, {"mode", "graph"}, {"chunks", -1}}));
}

TEST(GridWorkload, TheUnitOfAnOwnAxisIsKeptBesideTheLabelsAndChangesNoId) {
  const std::string before = "  command: [train]\n  axes: {pause: {type: integer, default: 1";
  const auto plain = expanded(with(before + "}}\n", "grid: {pause: [2]}\n"));
  const auto with_unit = expanded(with(before + ", unit: ms}}\n", "grid: {pause: [2]}\n"));
  auto labels = nlohmann::json::parse(with_unit.admitted().front().trial.labels);
  labels.erase("@axes");
  EXPECT_EQ(labels, (nlohmann::json{{"pause", 2}, {"@units", {{"pause", "ms"}}}}));
  EXPECT_EQ(with_unit.admitted().front().id, plain.admitted().front().id);
}

TEST(GridWorkload, ExpressionsReadOwnAxes) {
  const auto out =
      expanded(with("  command: [train, \"{double}\"]\n  axes: {width: {type: integer, default: 1}}\n",
                    "grid: {width: [1, 2, 3]}\nderive: {double: width * 2}\nwhere: [width < 3]\n"));
  ASSERT_EQ(out.admitted().size(), 2u);
  EXPECT_EQ(command_of(out.admitted()[1]).argv.back(), "4");
}

// The values of an axis must reach the program: in its words, or in what follows from them.
TEST(GridWorkload, AnAxisWithSeveralValuesThatReachNoProgramIsRefused) {
  const std::string own = "  command: [a]\n  axes: {lr: {type: number, default: 1}}\n";
  for (const Refused& each : std::initializer_list<Refused>{
           {with("  command: [a]\n", "grid:\n  dp: [1, 2]\n  micro_batch_size: [1, 2, 4]\n"), 6, 3,
            ErrorKind::kUnsupported, "micro_batch_size"},
           {with("  command: [a]\n", "grid: {micro_batch_size: auto}\nbase: {global_batch_size: 8}\n"), 4, 8,
            ErrorKind::kUnsupported, "micro_batch_size"},
           {with(own, "grid: {lr: [1, 2]}\n"), 5, 8, ErrorKind::kUnsupported, "lr"},
           {with("  command: [a]\n  derive: {twice: zero * 2}\n", "grid: {zero: [0, 1]}\n"), 5, 8,
            ErrorKind::kUnsupported, "zero"},
           {with("  command: [a]\n", "grid: {zero: [0, 1]}\nderive: {twice: zero * 2}\n"), 4, 8,
            ErrorKind::kUnsupported, "zero"},
           {with("  command: [a]\n", "zip: [{zero: [0, 1], seq_len: [64, 128]}]\n"), 4, 8,
            ErrorKind::kUnsupported, "zero"},
           {with("  command: [a]\n", "base: {nodes: 1, gpus_per_node: 4}\ngrid: {tp: [1, 2]}\n"), 5, 8,
            ErrorKind::kUnsupported, "tp"},
       }) {
    const Error error = error_of(each.text);
    EXPECT_EQ(error.file, "g.yaml") << each.text;
    EXPECT_THAT(error, each.error()) << each.text;
  }
}

TEST(GridWorkload, IncludedPointsThatDifferInWhatReachesNoProgramAreRefused) {
  const std::string own = "  command: [a, \"{dp}\"]\n  axes: {lr: {type: number, default: 1}}\n";
  for (const char* points : {"include:\n  - {dp: 2, lr: 1}\n  - {dp: 2, lr: 2}\n",
                             "grid: {dp: [1, 2]}\ninclude:\n  - {zero: 0}\n  - {zero: 1}\n"})
    EXPECT_THAT(error_of(with(own, points)), IsError(ErrorKind::kUnsupported)) << points;
  for (const char* points : {"include: [{dp: 2, lr: 1}, {dp: 4, lr: 2}]\n", "include: [{dp: 2, lr: 2}]\n",
                             "grid: {dp: [1, 2]}\ninclude: [{dp: 4, lr: 2}]\n",
                             "include: [{model: gpt2, dp: 1}, {model: gpt2-xl, dp: 2}]\n"})
    EXPECT_GE(expanded(with(own, points)).admitted().size(), 1u) << points;
}

TEST(GridWorkload, WhatTheProgramKnowsOfItsTrialIsInTheLabelsAndNotInTheId) {
  const auto out =
      expanded(with("  command: [a, \"{zero}\"]\n",
                    "base: {seq_len: 64}\ngrid: {dp: [2], zero: [0, 1], micro_batch_size: [4]}\n"));
  const Trial trial = out.admitted().front().trial;
  EXPECT_EQ(trial.labels,
            R"({"@axes":" hardware nodes gpus_per_node dp tp pp cp ep zero micro_batch_size seq_len "})");
  ResultRow row;
  row.trial = trial;
  EXPECT_EQ(find_column("seq_len")->get(row), Value{i64{64}});
  for (const char* axis :
       {"optimizer", "precision", "grad_accum", "global_batch_size", "threads", "schedule"})
    EXPECT_EQ(find_column(axis)->get(row), Value{}) << axis;
  row.trial.labels.clear();
  EXPECT_EQ(trial_id(row.trial), out.admitted().front().id);
  EXPECT_EQ(find_column("grad_accum")->get(row), Value{i64{1}}) << "of a database of an earlier version";
}

TEST(GridWorkload, AnAxisIsReadByWayOfWhatFollowsFromIt) {
  const std::string words = "  command: [a, \"{doubled}\"]\n";
  for (const std::string& text :
       {with("  command: [a]\n", "grid: {dp: [1, 2]}\n"),
        with("  command: [a]\n", "grid: {hardware: [cpu, h100-sxm-80gb], tp: [1, 2]}\n"),
        with("  command: [a, \"{dp}\"]\n", "base: {nodes: 1, gpus_per_node: 4}\ngrid: {tp: [1, 2]}\n"),
        with("  command: [a, \"{grad_accum}\"]\n",
             "base: {global_batch_size: 8}\ngrid: {micro_batch_size: [1, 2]}\n"),
        with(words, "grid: {zero: [0, 1]}\nderive: {doubled: zero * 2}\n"),
        with(words + "  derive: {doubled: zero * 2}\n", "grid: {zero: [0, 1]}\n"),
        with("  command: [a]\n  env: {STAGE: \"{zero}\"}\n", "grid: {zero: [0, 1]}\n"),
        with("  command: [a]\n  files: {x: \"{zero}\"}\n", "grid: {zero: [0, 1]}\n"),
        with("  command: [a]\n  files: {x.json: {set: {y: \"{zero}\"}}}\n", "grid: {zero: [0, 1]}\n"),
        with("  command: [a]\n  flags: {--shard: {when: zero == 1}}\n", "grid: {zero: [0, 1]}\n"),
        with("  command: [a, \"{zero}\"]\n", "zip: [{zero: [0, 1], seq_len: [64, 128]}]\n"),
        with("  command: [a, \"{layers}\"]\n", "grid: {model: [llama3-8b, playbook-1b], dp: [1]}\n"),
        with("  command: [a, \"{zero}\"]\n",
             "grid: {zero: [0, 1], tp: [1, 2]}\nbase: {gpus_per_node: 2}\nwhere: [tp == zero + 1]\n")})
    EXPECT_GE(expanded(text).admitted().size(), 2u) << text;
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
  for (const Refused& each : std::initializer_list<Refused>{
           {with("  folder: .\n"), 2, 1, ErrorKind::kMissing, "command"},
           {with("  command: []\n"), 3, 12, ErrorKind::kInvalidValue, "command"},
           {with("  command: [a]\n  log_patterns: {step: '((('}\n"), 4, 24, ErrorKind::kInvalidValue, "step"},
           {with("  command: [a]\n  log_patterns: {step: '[0-9]+'}\n"), 4, 24, ErrorKind::kInvalidValue,
            "step"},
           {with("  command: [a]\n  log_patterns: {steps: '([0-9]+)'}\n"), 4, 18, ErrorKind::kUnknownName,
            "steps"},
           {with("  command: train.py\n"), 3, 12, ErrorKind::kInvalidValue, "command"},
           {with("  command: [\"{nowhere}\"]\n"), 3, 13, ErrorKind::kUnknownName, "nowhere"},
           {with("  command: [\"{\"]\n"), 3, 13, ErrorKind::kUnknownName, "{"},
           {with("  command: [a]\n  shell: true\n"), 4, 3, ErrorKind::kUnknownName, "shell"},
           {with("  command: [a]\n  files: {../x: y}\n"), 4, 11, ErrorKind::kInvalidValue, "../x"},
           {with("  command: [a]\n  files: {x: {from: nowhere.json}}\n"), 4, 21, ErrorKind::kNotFound},
           {with("  command: [a]\n  processes: many\n"), 4, 14, ErrorKind::kInvalidValue, "many"},
           {with("  command: [a]\n  axes: {tp: {type: integer, default: 1}}\n"), 4, 10, ErrorKind::kConflict,
            "tp"},
           {with("  command: [a]\n  axes: {lr: {type: real, default: 1}}\n"), 4, 21, ErrorKind::kInvalidValue,
            "real"},
           {with("  command: [a]\n  axes: {lr: {type: number}}\n"), 4, 10, ErrorKind::kMissing, "default"},
           {with("  command: [a]\n  axes: {lr: {type: integer, default: 0.5}}\n"), 4, 39,
            ErrorKind::kInvalidValue, "lr"},
           {with("  command: [a]\n", "grid: {lr: [1]}\n"), 4, 8, ErrorKind::kUnknownName, "lr"},
           {with("  command: [a]\n", "base: {program: x}\n"), 4, 8, ErrorKind::kUnsupported, "program"},
           {kHead + "base: {workload: command}\n", 3, 8, ErrorKind::kUnsupported, "workload"},
           {with("  command: [a]\n  spelling: {precision: {bf17: b}}\n"), 2, 1, ErrorKind::kUnknownName,
            "bf17"},
           {with("  command: [a]\n", "base: {tp: 2}\nmeasure: {repeats: 2}\n"), 5, 11,
            ErrorKind::kUnsupported, "repeats"},
           {with("  command: [a]\n  spelling: {nowhere: {a: b}}\n"), 2, 1, ErrorKind::kUnknownName,
            "nowhere"},
       }) {
    const Error error = error_of(each.text);
    EXPECT_EQ(error.file, "g.yaml") << each.text;
    EXPECT_THAT(error, each.error()) << each.text;
  }
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

// A recipe that knows its trainer would leave the axis out of the command, and the result would still name it.
TEST(GridWorkload, ARecipeThatListsWhatIsUnsupportedRefusesAxesItDoesNotRead) {
  const std::string knows = "  command: [train]\n  unsupported: [{when: packing, why: no packing}]\n";
  const auto refused = [](const std::string& rows, const std::string& base) {
    return expanded(with(rows, "base: " + base + "\n")).with_rule("unsupported");
  };
  const auto lora = refused(knows, "{lora_rank: 8, env: A=1}");
  ASSERT_EQ(lora.size(), 1u);
  EXPECT_TRUE(lora[0].reason.starts_with("lora_rank:")) << lora[0].reason;
  EXPECT_EQ(lora[0].verdict, Outcome::kUnsupported);
  EXPECT_EQ(refused(knows, "{lora_rank: 0}").size(), 0u) << "its default";
  EXPECT_EQ(refused(knows, "{dp: 2, micro_batch_size: 4, env: A=1}").size(), 0u);
  EXPECT_EQ(refused(knows + "  arguments: [--rank, \"{lora_rank}\"]\n", "{lora_rank: 8}").size(), 0u);
  EXPECT_EQ(refused(knows + "  notes: [{when: lora_rank > 0, why: in its file}]\n", "{lora_rank: 8}").size(),
            0u);
  EXPECT_EQ(refused("  command: [train]\n", "{lora_rank: 8}").size(), 0u) << "a command of one's own";
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

TEST(GridWorkload, APrologueIsATextOrAListOfLines) {
  const auto script = [](const std::string& prologue) {
    const auto out = expanded(with("  command: [train, \"{dp}\"]\n  prologue: " + prologue + "\n"));
    return command_of(out.admitted()[0]).argv.at(2);
  };
  EXPECT_EQ(script("[set -e, source a]"), "set -e\nsource a\nexec \"$@\"");
  EXPECT_EQ(script("\"set -e\\nsource a\""), script("[set -e, source a]"));
}

TEST(GridWorkload, HostileTablesAreRefusedWithTheirPlace) {
  const std::string head = "  command: [a]\n";
  for (const Refused& each : std::initializer_list<Refused>{
           {"  prologue: []\n", 4, 13, ErrorKind::kInvalidValue, "prologue"},
           {"  prologue: [[a]]\n", 4, 14, ErrorKind::kInvalidValue, "prologue"},
           {"  flags: [a]\n", 4, 3, ErrorKind::kInvalidValue, "flags"},
           {"  flags: {--x: {when: \"tp >\", value: a}}\n", 4, 28, ErrorKind::kInvalidValue, ""},
           {"  flags: {--x: {when: tp, value: a}}\n", 4, 23, ErrorKind::kInvalidValue, "tp"},
           {"  flags: {--x: {values: a}}\n", 4, 17, ErrorKind::kUnknownName, "values"},
           {"  flags: {--x: \"{nowhere}\"}\n", 4, 16, ErrorKind::kUnknownName, "nowhere"},
           {"  flags: {--x: {value: a, of: [nowhere]}}\n", 4, 16, ErrorKind::kUnknownName, "nowhere"},
           {"  derive: {tp: 1}\n", 4, 16, ErrorKind::kConflict, "tp"},
           {"  derive: {x: y, y: 1}\n", 4, 15, ErrorKind::kUnknownName, "y"},
           {"  derive: {x: [{when: true, value: 1}, \"true\"]}\n", 4, 40, ErrorKind::kInvalidValue, "x"},
           {"  unsupported: [{when: true}]\n", 4, 17, ErrorKind::kMissing, "why"},
           {"  unsupported: {a: b}\n", 4, 16, ErrorKind::kInvalidValue, "unsupported"},
           {"  files: {a: {set: {x: \"{nowhere}\"}}}\n", 4, 24, ErrorKind::kUnknownName, "nowhere"},
           {"  files: {a: {set: {x: 1}, format: xml}}\n", 4, 36, ErrorKind::kInvalidValue, "xml"},
           {"  env: {RANK: 1}\n", 2, 1, ErrorKind::kInvalidValue, "RANK"},
           {"  axes: {a: {type: integer, default: 1, values: [x]}}\n", 4, 41, ErrorKind::kConflict, "values"},
           {"  axes: {a: {type: text, default: z, values: [x]}}\n", 4, 35, ErrorKind::kInvalidValue, "z"},
           {"  recipe: nowhere\n", 4, 11, ErrorKind::kUnknownName, "nowhere"},
           {"  recipe: ./nowhere.yaml\n", 4, 11, ErrorKind::kNotFound, "./nowhere.yaml"},
       }) {
    const Error error = error_of(with(head + each.text));
    EXPECT_EQ(error.file, "g.yaml") << each.text;
    EXPECT_THAT(error, each.error()) << each.text;
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
  const auto high = must(read_text("name: t\nworkload: high\nbase: {dp: 1}\n", "g.yaml", options));
  std::vector<std::string> argv;
  ASSERT_TRUE(expand(
      high, [&](PlanEntry&& entry) { return argv = command_of(entry).argv, true; }, 0));
  EXPECT_EQ(argv, (std::vector<std::string>{"low", "s.py", "--a", "3"}));
  struct Refusal {
    std::string name, place;
    ErrorKind kind;
    std::string subject;
  };
  for (const auto& [name, place, kind, subject] :
       std::initializer_list<Refusal>{{"wrong", "recipe wrong:2:14:", ErrorKind::kUnknownName, "nowhere"},
                                      {"circle", "recipe circle:1:9:", ErrorKind::kInvalidValue, "circle"},
                                      {"low", "g.yaml:2:1:", ErrorKind::kMissing, "script"}}) {
    const Error error = error_of("name: t\nworkload: " + name + "\nbase: {dp: 1}\n", options);
    EXPECT_EQ(place_of(error), place) << error.message;
    EXPECT_THAT(error, IsError(kind, subject));
  }
}

TEST(GridWorkload, AModelBringsItsRules) {
  const auto out = expanded(with("  command: [train, \"{layers}\"]\n", "model: llama3-8b\nbase: {dp: 1}\n"));
  EXPECT_EQ(command_of(out.admitted()[0]).argv.back(), "32");
  EXPECT_EQ(out.admitted()[0].trial.spec.layers, 32);
}

}  // namespace
}  // namespace sweep::grid

// Everything wrong is refused before anything starts, with file:line:column and what would be right.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"
#include "grid_text.h"
#include "orchestrator/grid/document.h"
#include "orchestrator/grid/spec.h"

namespace sweep::grid {
namespace {

TEST(GridRead, AStrategyIsAWordOrAMap) {
  const auto word = must(read_text(kHead + "grid: {tp: [1]}\nstrategy: batch\n", "g.yaml"));
  ASSERT_TRUE(word.strategy);
  EXPECT_EQ(word.strategy->kind, StrategyKind::kBatch);
  const auto map = must(read_text(
      kHead + "grid: {tp: [1]}\nstrategy: {kind: search, max_trials: 7, least_gain: 0.02, at_once: 3}\n",
      "g.yaml"));
  EXPECT_EQ(*map.strategy, (Strategy{StrategyKind::kSearch, 7, 0.02, 3}));
  EXPECT_FALSE(read_text(kHead + "grid: {tp: [1]}\n", "g.yaml")->strategy);
}

TEST(GridRead, AWrongStrategyIsRefusedWithItsPlace) {
  const std::string head = kHead + "grid: {tp: [1]}\nstrategy: ";
  EXPECT_THAT(error_of(head + "best\n"), AllOf(At(4, 11), IsError(ErrorKind::kInvalidValue, "best")));
  EXPECT_THAT(error_of(head + "{max_trials: 3}\n"), AllOf(At(4, 1), IsError(ErrorKind::kMissing, "kind")));
  EXPECT_THAT(error_of(head + "{kind: batch, max_trials: 3}\n"),
              AllOf(At(4, 37), IsError(ErrorKind::kConflict, "max_trials")));
  EXPECT_THAT(error_of(head + "{kind: search, max_trials: 0}\n"),
              AllOf(At(4, 38), IsError(ErrorKind::kInvalidValue, "max_trials")));
  EXPECT_THAT(error_of(head + "{kind: search, most: 1}\n"),
              AllOf(At(4, 26), IsError(ErrorKind::kUnknownName, "most")));
  EXPECT_THAT(error_of(head + "{kind: search, least_gain: 2}\n"),
              AllOf(At(4, 38), IsError(ErrorKind::kInvalidValue, "least_gain")));
}

TEST(GridRead, AWholeFile) {
  const auto grid = read_text(R"(
name: full
question: Which one?
model: llama3-8b
base: {hardware: h100-sxm-80gb, seq_len: 4096, global_batch_size: 256, precision: bf16}
grid:
  nodes: [1, 2]
  tp: {pow2: [1, 8]}
  grad_bucket_mb: {range: [10, 31, 10]}
zip:
  - {zero: [0, 1], micro_batch_size: [4, 2]}
where: ["tp <= gpus_per_node"]
exclude: [{tp: 8, nodes: [1, 2]}]
include: [{nodes: 4, tp: 2}]
derive: {half: tp // 2}
repeats: 3
measure: {warmup_steps: 1, steps: 5}
limits: {gpu_hours: 1.5, trial_seconds: 30, hang_seconds: 45.5, start_seconds: 300, retries_crash: 0, retries_infra: 2}
launch: {slurm: {partition: gpu, time: "02:00:00", extra: ["--exclusive"], hardware: {h100-sxm-80gb: {partition: h}}}, local: {slots: 2}}
)",
                              "g.yaml");
  ASSERT_TRUE(grid) << grid.error().message;
  EXPECT_EQ(grid->name, "full");
  EXPECT_EQ(grid->question, "Which one?");
  EXPECT_EQ(grid->spec->points, 2u * 4 * 3 * 2);
  EXPECT_EQ(grid->measure, (MeasurePlan{1, 5, 3}));
  EXPECT_EQ(grid->limits.gpu_hours, 1.5);
  EXPECT_EQ(grid->limits.trial_seconds, 30);
  EXPECT_EQ(grid->limits.hang_seconds, 45.5);
  EXPECT_EQ(grid->limits.start_seconds, 300);
  EXPECT_EQ(grid->limits.retries_crash, 0);
  EXPECT_EQ(grid->limits.retries_infra, 2);
  EXPECT_EQ(
      to_json(grid->launch).dump(),
      R"({"local":{"slots":2},"slurm":{"extra":["--exclusive"],"hardware":{"h100-sxm-80gb":{"partition":"h"}},)"
      R"("partition":"gpu","time":"02:00:00"}})");
}

TEST(GridRead, MisspeltKeysSuggestTheNearest) {
  for (const Refused& each : std::vector<Refused>{
           {"grids: {tp: [1]}\n", 3, 1, ErrorKind::kUnknownName, "grids", "grid"},
           {"grid:\n  micro_batchsize: [1]\n", 4, 3, ErrorKind::kUnknownName, "micro_batchsize",
            "micro_batch_size"},
           {"grid: {tp: [1]}\nmeasure: {step: 3}\n", 4, 11, ErrorKind::kUnknownName, "step", "steps"},
           {"grid: {tp: {pow: [1, 2]}}\n", 3, 13, ErrorKind::kUnknownName, "pow", "pow2"},
           {"grid: {tp: [1]}\nlimits: {gpu_hour: 3}\n", 4, 10, ErrorKind::kUnknownName, "gpu_hour",
            "gpu_hours"},
           {"grid: {tp: [1]}\nlaunch: {slum: {}}\n", 4, 10, ErrorKind::kUnknownName, "slum", "slurm"},
           {"grid: {tp: [1]}\nlaunch: {slurm: {partitoin: a}}\n", 4, 18, ErrorKind::kUnknownName, "partitoin",
            "partition"}})
    EXPECT_THAT(error_of(kHead + each.text), each.error()) << each.text;
  EXPECT_THAT(error_of("name: t\nmodel: lama3-8b\ngrid: {tp: [1]}\n"),
              AllOf(At(2, 8), IsError(ErrorKind::kUnknownName, "lama3-8b"), Suggests("llama3-8b")));
  EXPECT_THAT(error_of(kHead + "base: {hardware: h100-sxm-80g}\ngrid: {tp: [1]}\n"),
              AllOf(At(3, 18), IsError(ErrorKind::kInvalidValue, "h100-sxm-80g"), Suggests("h100-sxm-80gb")));
  EXPECT_THAT(error_of(kHead + "grid: {precision: [fp32, bf166]}\n"),
              AllOf(At(3, 26), IsError(ErrorKind::kInvalidValue, "bf166"), Suggests("bf16")));
}

TEST(GridRead, ExpressionErrorsPointIntoTheExpression) {
  const std::string head = kHead + "grid: {tp: [1]}\n";
  for (const Refused& each : std::vector<Refused>{
           {head + "where: [tp <= gpus_per_nod]\n", 4, 15, ErrorKind::kUnknownName, "gpus_per_nod"},
           {head + "where: [\"tp <= gpus_per_nod\"]\n", 4, 16, ErrorKind::kUnknownName, "gpus_per_nod"},
           {head + "where:\n  - precision == 'bf16' and\n      tpp == 2\n", 6, 7, ErrorKind::kUnknownName,
            "tpp"},
           {head + "where:\n  - 'precision == ''bf16'' and tpp == 2'\n", 5, 32, ErrorKind::kUnknownName,
            "tpp"},
           {head + "where:\n  - \"precision == \\\"bf16\\\" and tpp == 2\"\n", 5, 32, ErrorKind::kUnknownName,
            "tpp"},
           {head + "where:\n  - >\n    tp == 1\n    and tpp == 2\n", 7, 9, ErrorKind::kUnknownName, "tpp"},
           {head + "where: [tp + 1]\n", 4, 9, ErrorKind::kInvalidValue, "tp + 1"},
           {head + "where: [memory_cap_bytes > 1]\n", 4, 9, ErrorKind::kMissing, "memory_cap_bytes"},
           {head + "where: [model == 'llama3-80b']\n", 4, 18, ErrorKind::kInvalidValue, "llama3-80b",
            "llama3-8b"}})
    EXPECT_THAT(error_of(each.text), each.error()) << each.text;
}

TEST(GridRead, TextsThatAreNotNumbersAreRefused) {
  std::istringstream words(
      "nan .nan -1 0 1.5 1e3 0x10 010 \"8\" true null ~ [1] inf 1_000 + --1 1000001 "
      "99999999999999999999999 -99999999999999999999999");
  std::vector<std::string> all{"", "8 GPUs"};
  for (std::string word; words >> word;) all.push_back(word);
  for (const std::string& bad : all) {
    EXPECT_THAT(error_of(kHead + "base:\n  tp: " + bad + "\ngrid: {pp: [1]}\n"),
                IsError(ErrorKind::kInvalidValue, "tp"))
        << bad;
    EXPECT_THAT(error_of(kHead + "grid:\n  tp: [1, " + (bad.empty() ? "null" : bad) + "]\n"),
                AllOf(At(4, 11), IsError(ErrorKind::kInvalidValue, "tp")))
        << bad;
  }
  for (const std::string bad : {"nan", "-1", "0", "inf", "1e400", "many"}) {
    EXPECT_THAT(error_of(kHead + "grid: {tp: [1]}\nlimits: {gpu_hours: " + bad + "}\n"),
                AllOf(At(4, 21), IsError(ErrorKind::kInvalidValue, "gpu_hours")))
        << bad;
  }
  EXPECT_THAT(error_of(kHead + "grid: {packing: [yes]}\n"),
              AllOf(At(3, 18), IsError(ErrorKind::kInvalidValue, "packing")));
  EXPECT_THAT(error_of(kHead + "grid: {tp: [1]}\nmeasure: {steps: 0}\n"),
              AllOf(At(4, 18), IsError(ErrorKind::kInvalidValue, "steps")));
}

TEST(GridRead, HostsAreNamesEachOnce) {
  const auto with = [](const std::string& ssh) {
    return error_of(kHead + "grid: {tp: [1]}\nlaunch:\n  ssh:\n    hosts: " + ssh + "\n");
  };
  EXPECT_THAT(with("[a, b, {host: a}]"), AllOf(At(6, 26), IsError(ErrorKind::kConflict, "a")));
  EXPECT_THAT(with("[-oProxyCommand=x]"),
              AllOf(At(6, 13), IsError(ErrorKind::kInvalidValue, "-oProxyCommand=x")));
  EXPECT_THAT(with("['a b']"), AllOf(At(6, 13), IsError(ErrorKind::kInvalidValue, "a b")));
  EXPECT_THAT(with("[a]\n    port: 65536"), AllOf(At(7, 11), IsError(ErrorKind::kInvalidValue, "port")));
  EXPECT_THAT(with("[a]\n    lease_seconds: 0"),
              AllOf(At(7, 20), IsError(ErrorKind::kInvalidValue, "lease_seconds")));
  EXPECT_THAT(with("[a]\n    silence_seconds: 0.5"),
              AllOf(At(7, 22), IsError(ErrorKind::kInvalidValue, "silence_seconds")));
}

TEST(GridRead, EmptyAndOversizedFormsAreRefused) {
  EXPECT_THAT(error_of(kHead + "grid: {}\n"), AllOf(At(3, 1), IsError(ErrorKind::kInvalidValue, "grid")));
  EXPECT_THAT(error_of(kHead), AllOf(At(1, 1), IsError(ErrorKind::kMissing, "grid")));
  for (const Refused& each : std::vector<Refused>{
           {"grid: {tp: []}\n", 3, 12, ErrorKind::kInvalidValue, "tp"},
           {"grid: {tp: {pow2: [8, 1]}}\n", 3, 19, ErrorKind::kInvalidValue, "pow2"},
           {"grid: {tp: {pow2: [1, 12]}}\n", 3, 19, ErrorKind::kInvalidValue, "12"},
           {"grid: {tp: {range: [1, 8]}}\n", 3, 20, ErrorKind::kInvalidValue, "range"},
           {"grid: {tp: {range: [1, 8, 0]}}\n", 3, 27, ErrorKind::kInvalidValue, "the step of range"},
           {"grid: {seq_len: {range: [1, 90000000, 1]}}\n", 3, 25, ErrorKind::kInvalidValue, "seq_len"},
           {"grid: {precision: {pow2: [1, 2]}}\n", 3, 19, ErrorKind::kInvalidValue, "precision"},
           {"base: {tp: [1, 2]}\ngrid: {pp: [1]}\n", 3, 12, ErrorKind::kInvalidValue, "tp"},
           {"zip: [{tp: [1, 2], pp: [1]}]\n", 3, 20, ErrorKind::kConflict, "pp"},
           {"zip: [{tp: [1, 2]}]\n", 3, 7, ErrorKind::kInvalidValue, "zip"}})
    EXPECT_THAT(error_of(kHead + each.text), each.error()) << each.text;
  EXPECT_THAT(error_of("name: t\ngrid: {tp: [1]}\n"), AllOf(At(1, 1), IsError(ErrorKind::kMissing, "model")));
  EXPECT_THAT(error_of("model: llama3-8b\ngrid: {tp: [1]}\n"),
              AllOf(At(1, 1), IsError(ErrorKind::kMissing, "name")));
  EXPECT_THAT(error_of("name: a/b\nmodel: llama3-8b\ngrid: {tp: [1]}\n"),
              AllOf(At(1, 7), IsError(ErrorKind::kInvalidValue, "name")));
}

TEST(GridRead, AnAxisIsGivenOnce) {
  for (const Refused& each : std::vector<Refused>{
           {"base: {tp: 1}\ngrid: {tp: [1]}\n", 4, 8, ErrorKind::kConflict, "tp"},
           {"grid: {tp: [1]}\nzip: [{tp: [1], pp: [1]}]\n", 4, 8, ErrorKind::kConflict, "tp"},
           {"grid: {model: [gpt2]}\n", 3, 8, ErrorKind::kConflict, "model"},
           {"grid: {tp: [1]}\nderive: {tp: 2}\n", 3, 8, ErrorKind::kConflict, "tp"},
           {"grid: {pp: [1]}\nderive: {tp: 2}\ninclude: [{tp: 1}]\n", 5, 12, ErrorKind::kUnsupported, "tp"},
           {"grid: {world: [1]}\n", 3, 8, ErrorKind::kUnsupported, "world"},
           {"grid: {layers: [1]}\n", 3, 8, ErrorKind::kUnsupported, "layers"},
           {"grid: {tp: [1]}\nrepeats: 2\nmeasure: {repeats: 2}\n", 5, 20, ErrorKind::kConflict, "repeats"}})
    EXPECT_THAT(error_of(kHead + each.text), each.error()) << each.text;
}

TEST(GridRead, DeriveRefusesCyclesByName) {
  const std::string head = kHead + "grid: {pp: [1]}\n";
  for (const Refused& each :
       std::vector<Refused>{{head + "derive: {a: b + 1, b: c, c: a}\n", 4, 10, ErrorKind::kInvalidValue, "a"},
                            {head + "derive: {a: a}\n", 4, 10, ErrorKind::kInvalidValue, "a"},
                            {head + "derive:\n  tp: world\n", 5, 3, ErrorKind::kInvalidValue, "tp"},
                            {head + "derive: {precision: 1}\n", 4, 10, ErrorKind::kUnsupported, "precision"},
                            {head + "derive: {layers: 1}\n", 4, 10, ErrorKind::kUnsupported, "layers"},
                            {head + "derive: {and: 1}\n", 4, 10, ErrorKind::kInvalidValue, "and"}})
    EXPECT_THAT(error_of(each.text), each.error()) << each.text;
  for (const std::string column : {"step_ms", "outcome", "mfu"})
    EXPECT_THAT(error_of(head + "derive: {" + column + ": 1}\n"),
                AllOf(At(4, 10), IsError(ErrorKind::kInvalidValue, column)));
  EXPECT_THAT(error_of(head + "derive: {tp: 1.5}\n"),
              AllOf(At(4, 14), IsError(ErrorKind::kInvalidValue, "tp")));
  EXPECT_THAT(error_of(head + "derive: {tp: [1]}\n"),
              AllOf(At(4, 14), IsError(ErrorKind::kInvalidValue, "tp")));
}

TEST(GridRead, IncludeTakesTheGridsOwnLabels) {
  const std::string models =
      "grid: {model: [{base: gpt2, layers: 2, name: two}, {base: gpt2, layers: 4}], seq_len: [64]}\n";
  const auto e = expanded("name: t\n" + models +
                          "include: [{model: two, seq_len: 128}, {model: gpt2-layers-4, seq_len: 256}]\n");
  ASSERT_EQ(e.admitted().size(), 4u);
  EXPECT_EQ(e.entries[0].trial.spec.layers, 2);
  EXPECT_EQ(e.entries[0].trial.seq_len, 128);
  EXPECT_EQ(e.entries[1].trial.spec.layers, 4);
  EXPECT_THAT(error_of("name: t\n" + models + "include: [{model: too, seq_len: 128}]\n"),
              AllOf(At(3, 19), IsError(ErrorKind::kUnknownName, "too")));
}

class GridPaths : public ::testing::Test {
 protected:
  GridPaths()
      : folder_(std::filesystem::path(::testing::TempDir()) / ("grid-paths-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~GridPaths() override { std::filesystem::remove_all(folder_); }
  const std::filesystem::path folder_;
};

TEST_F(GridPaths, AreRefusedWithTheirCause) {
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(read_file(folder_ / "loop").error(),
              IsError(ErrorKind::kUnreadable, (folder_ / "loop").string()));
  EXPECT_THAT(read_file("/dev/zero").error(), IsError(ErrorKind::kUnreadable, "/dev/zero"));
  const auto model = [&](const std::string& path) {
    return error_in(read_text("name: t\nmodel: {config_json: " + path + "}\n", folder_ / "g.yaml"));
  };
  EXPECT_THAT(model("loop"), AllOf(At(2, 22), IsError(ErrorKind::kUnreadable, (folder_ / "loop").string())));
  EXPECT_THAT(model("."), AllOf(At(2, 22), IsError(ErrorKind::kUnreadable, (folder_ / "").string())));
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(model("pipe"), AllOf(At(2, 22), IsError(ErrorKind::kUnreadable, (folder_ / "pipe").string())));
}

TEST_F(GridPaths, APipeIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text = "name: t\nmodel: gpt2\nbase: {dp: 2}\n";
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  const auto grid = read_file("/dev/fd/" + std::to_string(ends[0]));
  ::close(ends[0]);
  ASSERT_TRUE(grid) << grid.error().message;
  EXPECT_TRUE(grid->from_stream);
  EXPECT_EQ(grid->text, text);
  EXPECT_EQ(grid->path, "<pipe>");
}

TEST(GridRead, Files) {
  EXPECT_THAT(read_file("/nowhere/g.yaml").error(), IsError(ErrorKind::kNotFound, "/nowhere/g.yaml"));
  EXPECT_THAT(read_file(::testing::TempDir()).error(), IsError(ErrorKind::kUnreadable, ::testing::TempDir()));
}

}  // namespace
}  // namespace sweep::grid

// Checkpoints of forked ranks, read back: every number of the model is there once, and is what the ranks hold; the
// bytes are those that the plan states.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "bench_kernels/parallel/checkpoint_file.h"
#include "bench_kernels/shape/around_step.h"
#include "bench_kernels/step/train_step.h"
#include "tests/parity/layouts.h"
#include "tests/parity/one_core.h"
#include "tests/unit/comm/forked_ranks.h"

namespace sweep::testing {
namespace {

using nlohmann::json;

// State and tensor; the whole of it, NaN where no rank saved a number.
using Saved = std::map<std::pair<std::string, std::string>, at::Tensor>;

struct SavedRun {
  Saved saved;
  std::map<std::string, at::Tensor> held;  // the weights as the ranks have them
  std::vector<std::string> faults;
  i64 bytes = 0, files = 0, most_on_host = 0, writers = 0;
};

// A rank tells words, with the number of values of each tensor and piece, and these values one after the other. The
// values are bytes: as JSON they would take longer than the steps.
struct SavedValues {
  json words;
  std::vector<at::Tensor> values;
  i64 add(const at::Tensor& t) {
    values.push_back(t.to(at::kDouble).reshape(-1).clone());
    return values.back().numel();
  }
};

SavedValues run_rank(const Trial& trial, const comm::GroupOptions& options) {
  const parallel::Mesh mesh = mesh_of(trial, options);
  step::TrainStep step(trial, at::kCPU, mesh, nullptr);
  for (int i = 0; i < 2; ++i) step.run();
  SavedValues told{{{"tensors", json::array()}, {"pieces", json::array()}}, {}};
  json& out = told.words;
  for (const auto& t : step.tensors())
    out["tensors"].push_back({{"name", t.name},
                              {"shape", t.value.sizes().vec()},
                              {"dimension", t.slice.dimension},
                              {"whole", t.slice.whole},
                              {"ranges", t.slice.ranges},
                              {"values", told.add(t.value)}});
  parallel::CheckpointFile file(step.states(), {.kind = trial.checkpoint, .folder = "/dev/shm"});
  file.begin();
  if (trial.checkpoint == CheckpointKind::kAsync) step.run();
  file.finish();
  for (const auto& entry : file.entries())
    out["pieces"].push_back({{"state", entry.piece.state},
                             {"tensor", entry.piece.tensor},
                             {"begin", entry.piece.begin},
                             {"values", told.add(file.read(entry))}});
  out["bytes"] = file.bytes(), out["file"] = file.file_size(), out["host"] = file.host_bytes();
  mesh[shape::Dimension::kWorld].barrier();
  return told;
}

// Writes a share's numbers into the whole where they are there.
void put_share(at::Tensor& whole, const json& tensor, const at::Tensor& share, SavedRun& run,
               const std::string& name) {
  auto shape = tensor["shape"].get<std::vector<i64>>();
  const i64 dimension = tensor["dimension"], size = tensor["whole"];
  auto ranges = tensor["ranges"].get<std::vector<std::pair<i64, i64>>>();
  if (size == 0) ranges = {{0, shape[0]}};
  const at::Tensor local = share.view(shape);
  if (size != 0) shape[static_cast<std::size_t>(dimension)] = size;
  if (!whole.defined()) whole = at::full(shape, NAN, at::kDouble);
  i64 at = 0;
  for (const auto& [begin, count] : ranges) {
    const at::Tensor from = local.narrow(dimension, at, count), there = whole.narrow(dimension, begin, count);
    at += count;
    if ((~from.isnan() & ~there.isnan()).any().item<bool>()) run.faults.push_back(name + " is saved twice");
    at::Tensor(there).copy_(at::where(from.isnan(), there, from));
  }
}

void add_rank(const json& rank, const at::Tensor& values, SavedRun& run) {
  i64 told = 0;
  const auto next = [&](const json& of) {
    const i64 count = of["values"];
    told += count;
    return values.narrow(0, told - count, count);
  };
  std::map<std::string, json> tensors;
  for (const json& tensor : rank["tensors"]) {
    tensors[tensor["name"]] = tensor;
    SavedRun copies;  // ranks may hold copies of a weight
    at::Tensor& whole = run.held[tensor["name"]];
    put_share(whole, tensor, next(tensor), copies, "");
  }
  std::map<std::pair<std::string, std::string>, at::Tensor> shares;
  for (const json& piece : rank["pieces"]) {
    const at::Tensor mine = next(piece);
    const std::string name = piece["tensor"];
    auto& share = shares[{piece["state"], name}];
    if (!share.defined()) share = at::full({tensors.at(name)["values"].get<i64>()}, NAN, at::kDouble);
    at::Tensor run_of_it = share.narrow(0, piece["begin"], mine.numel());
    if (!run_of_it.isnan().all().item<bool>()) run.faults.push_back(name + " is saved twice by a rank");
    run_of_it.copy_(mine);
  }
  for (const auto& [key, share] : shares)
    put_share(run.saved[key], tensors.at(key.second), share, run, key.second);
  run.bytes += rank["bytes"].get<i64>(), run.files += rank["file"].get<i64>();
  run.writers += rank["bytes"] > 0 ? 1 : 0;
  run.most_on_host = std::max(run.most_on_host, rank["host"].get<i64>());
}

SavedRun saved_by(Trial trial, CheckpointKind kind) {
  trial.checkpoint = kind;
  EXPECT_EQ(step::unsupported(trial, at::kCPU), std::nullopt);
  const ScratchFolder results;
  const auto file = [&](int rank) { return results.path() + "/" + std::to_string(rank); };
  const OneCore core;
  const auto statuses = run_ranks(static_cast<int>(trial.world()), [&](const comm::GroupOptions& options) {
    const SavedValues told = run_rank(trial, options);
    std::ofstream(file(options.rank) + ".words") << told.words;
    const at::Tensor values = at::cat(told.values);
    std::ofstream(file(options.rank), std::ios::binary)
        .write(static_cast<const char*>(values.const_data_ptr()),
               static_cast<std::streamsize>(values.nbytes()));
  });
  SavedRun run;
  for (int rank = 0; rank < static_cast<int>(statuses.size()); ++rank) {
    if (statuses[static_cast<std::size_t>(rank)] != 0) {
      run.faults.push_back("rank " + std::to_string(rank) + " failed");
      continue;
    }
    auto bytes = files::read(file(rank)).value_or("");
    const auto count = static_cast<i64>(bytes.size() / sizeof(double));
    add_rank(json::parse(files::read(file(rank) + ".words").value_or("")),
             at::from_blob(bytes.data(), {count}, at::kDouble), run);
  }
  return run;
}

std::vector<std::string> states_of(const Trial& t) {
  std::vector<std::string> states{"weight"};
  if (t.precision == Precision::kBf16Master) states.push_back("master");
  if (t.optimizer != OptimizerKind::kSgd) states.push_back("mean");
  if (t.optimizer != OptimizerKind::kSgd && t.optimizer != OptimizerKind::kSgdMomentum)
    states.push_back("square");
  return states;
}

void expect_whole(const Trial& trial, const SavedRun& run, const std::string& what) {
  SCOPED_TRACE(what);
  EXPECT_TRUE(run.faults.empty()) << run.faults.front();
  Trial asked = trial;
  asked.checkpoint = CheckpointKind::kSharded;
  EXPECT_EQ(run.bytes, shape::checkpoint_bytes(asked));
  EXPECT_EQ(run.files, run.bytes);
  for (const std::string& state : states_of(trial))
    for (const auto& [name, weights] : run.held) {
      const bool adapter = name.find("lora_") != std::string::npos;
      if (trial.lora_rank > 0 && !adapter) continue;
      const auto found = run.saved.find({state, name});
      ASSERT_NE(found, run.saved.end()) << state << " of " << name;
      EXPECT_FALSE(found->second.isnan().any().item<bool>()) << state << " of " << name << " has holes";
      EXPECT_TRUE(state != "weight" || found->second.equal(weights)) << name;
    }
}

void expect_same(const SavedRun& a, const SavedRun& b, const std::string& what) {
  ASSERT_EQ(a.saved.size(), b.saved.size()) << what;
  for (const auto& [key, values] : a.saved)
    EXPECT_TRUE(values.equal(b.saved.at(key))) << what << ": " << key.first << " of " << key.second;
}

Trial of_precision(Trial t, i64 zero, Precision precision, OptimizerKind optimizer = OptimizerKind::kFused) {
  t.zero = zero, t.precision = precision, t.optimizer = optimizer;
  return t;
}

// Over data-parallel ranks there are all three ways; they save the same.
TEST(Checkpoints, GatheredShardedAndAsyncAreTheSameNumbersUnderEveryZeroStage) {
  const Trial two = with_degrees(tiny_trial(), 2, 1, 1, 1);
  std::vector<Trial> trials{of_precision(two, 0, Precision::kFp32),
                            of_precision(two, 1, Precision::kBf16Master),
                            of_precision(two, 2, Precision::kBf16, OptimizerKind::kSgdMomentum),
                            of_precision(two, 3, Precision::kBf16Master),
                            of_precision(with_degrees(tiny_trial(), 1, 1, 1, 2), 3, Precision::kBf16Mixed)};
  trials.push_back(of_precision(with_degrees(tiny_trial(), 4, 1, 1, 1), 3, Precision::kFp32));
  trials.back().dp_shard = 2;
  for (const Offload offload : {Offload::kOptimizer, Offload::kParameters}) {
    trials.push_back(of_precision(two, 3, Precision::kFp32));
    trials.back().offload = offload;
  }
  trials.push_back(of_precision(two, 1, Precision::kFp32, OptimizerKind::kPagedAdamw));
  trials.push_back(of_precision(two, 3, Precision::kBf16));
  trials.back().lora_rank = 4;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const std::string what = "trial " + std::to_string(i);
    const SavedRun full = saved_by(trials[i], CheckpointKind::kFull);
    const SavedRun sharded = saved_by(trials[i], CheckpointKind::kSharded);
    const SavedRun async = saved_by(trials[i], CheckpointKind::kAsync);
    expect_whole(trials[i], full, what + " full");
    expect_whole(trials[i], sharded, what + " sharded");
    expect_whole(trials[i], async, what + " async");
    expect_same(sharded, full, what);
    expect_same(async, full, what);
    EXPECT_EQ(full.writers, 1) << what;
    EXPECT_EQ(full.most_on_host, full.bytes) << what << ": rank 0 holds all of it";
    EXPECT_EQ(sharded.writers, trials[i].world()) << what;
    EXPECT_EQ(sharded.most_on_host, 0) << what << ": numbers of the processor are written where they are";
    EXPECT_LT(async.most_on_host, full.bytes) << what;
  }
}

TEST(Checkpoints, EachNumberIsSavedOnceHoweverTheModelIsSplit) {
  const auto of = [](i64 dp, i64 tp, i64 pp, i64 zero) {
    return of_precision(with_degrees(tiny_trial(), dp, tp, pp, 1), zero, Precision::kBf16Master);
  };
  std::vector<Trial> trials{of(1, 2, 1, 0), of(2, 2, 1, 1), of(1, 4, 1, 0), of(2, 1, 2, 3), of(1, 2, 2, 0)};
  for (Trial& t : trials) t.spec.vocab_size = 94;  // padded on some ranks
  trials.push_back(of(1, 2, 1, 0)), trials.back().sp = true;
  trials.push_back(of(1, 2, 2, 0)), trials.back().spec.tie_embeddings = true;
  trials.push_back(of(1, 4, 1, 0)), trials.back().spec.kv_heads = 1;  // two ranks have the same head
  Trial experts = of_precision(with_degrees(tiny_trial(), 2, 1, 1, 1, 2), 1, Precision::kFp32);
  experts.spec.experts = 4, experts.spec.experts_per_token = 2;
  trials.push_back(experts), experts.zero = 0, trials.push_back(experts);
  for (const i64 zero : {1, 3}) {
    trials.push_back(with_degrees(experts, 8, 1, 1, 1, 2));
    trials.back().zero = zero, trials.back().dp_shard = 4;
  }
  for (std::size_t i = 0; i < trials.size(); ++i)
    expect_whole(trials[i], saved_by(trials[i], CheckpointKind::kSharded), "trial " + std::to_string(i));
}

// The file has no name from its first moment on: a rank that is killed while it writes leaves nothing.
TEST(Checkpoints, ARankThatIsKilledInTheMiddleLeavesNoFile) {
  const ScratchFolder folder;
  const auto statuses = run_ranks(1, [&](const comm::GroupOptions&) {
    const parallel::Mesh mesh = parallel::alone();
    const step::TrainStep step(tiny_trial(), at::kCPU, mesh, nullptr);
    int pieces = 0;
    parallel::CheckpointFile file(step.states(), {.folder = folder.path(), .beat = [&] {
                                                    if (++pieces == 3) raise(SIGKILL);
                                                  }});
    file.begin();
  });
  ASSERT_TRUE(WIFSIGNALED(statuses[0]));
  EXPECT_EQ(WTERMSIG(statuses[0]), SIGKILL);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace sweep::testing

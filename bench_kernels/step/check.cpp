#include "bench_kernels/step/check.h"

#include <ATen/ATen.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "base/files.h"
#include "bench_kernels/comm/forked_ranks.h"
#include "bench_kernels/model/stage.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/encoder.h"
#include "bench_kernels/step/safetensors.h"
#include "bench_kernels/step/train_step.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::step {

namespace {

namespace fs = std::filesystem;

using nlohmann::json;

constexpr i64 kMostRanks = 64;

struct Sequences {
  i64 length = 0;  // length of the inputs
  std::vector<std::vector<i64>> rows;
};

Expected<Sequences> read_tokens(const fs::path& file, i64 vocab) {
  SWEEP_GET(const auto text, files::read(file));
  const auto list = parse_json(text);
  if (!list) return fail(file.string() + ": " + list.error().message + ".");
  const auto wrong = [&](const std::string& why) { return fail(file.string() + ": " + why); };
  if (!list->is_array() || list->empty()) return wrong("a list of token lists is needed.");
  Sequences s;
  for (const auto& row : *list) {
    if (!row.is_array() || row.size() < 2) return wrong("each sequence is a list of at least two tokens.");
    if (s.length == 0) s.length = static_cast<i64>(row.size()) - 1;
    if (static_cast<i64>(row.size()) - 1 != s.length) return wrong("all sequences must be equally long.");
    for (const auto& token : row) {
      if (!token.is_number_unsigned() || token.get<std::uint64_t>() >= static_cast<std::uint64_t>(vocab)) {
        return wrong("tokens are whole numbers from 0 to " + std::to_string(vocab - 1) + ", not " +
                     dump(token) + ".");
      }
    }
    s.rows.push_back(row.get<std::vector<i64>>());
  }
  return s;
}

// The layout's degrees with the files' model and batch. A pipeline gets as many micro-batches as there are
// sequences.
Expected<Trial> trial_of(Trial t, const ModelSpec& spec, const Sequences& sequences) {
  t.spec = spec;
  t.backend = CommBackend::kShm, t.routing = Routing::kLearned;  // the files hold a router
  t.seq_len = sequences.length, t.lengths.clear(), t.packing = false;
  t.global_batch_size = static_cast<i64>(sequences.rows.size());
  t.nodes = 1, t.gpus_per_node = t.world();
  SWEEP_TRY(shape::ParallelDims::make(t));
  if (t.world() > kMostRanks)
    return fail("a check runs on at most " + std::to_string(kMostRanks) + " ranks of this machine, not on " +
                std::to_string(t.world()) + ".");
  if (t.global_batch_size % t.dp != 0)
    return fail(std::to_string(t.global_batch_size) +
                " sequences do not divide over dp = " + std::to_string(t.dp) + ".");
  t.micro_batch_size = t.pp > 1 ? 1 : t.global_batch_size / t.dp;
  t.grad_accum = t.global_batch_size / (t.dp * t.micro_batch_size);
  if (const auto sentence = unsupported(t, c10::DeviceType::CPU)) return fail(*sentence);
  return t;
}

// The names in the files, by the model's.
Expected<std::map<std::string, std::string>> names_of(const Checkpoint& checkpoint, const Trial& t) {
  model::Options options;
  options.device = at::kMeta;
  options.seq_len = t.seq_len;
  options.encoder_seq_len = shape::encoder_length(t);
  options.adapters = shape::adapters_of(t);
  model::AloneLayout layout;
  model::Stage whole(t.spec, options, layout.value(), {0, t.spec.layers, true, true});
  whole.parameters().layout({at::TensorOptions(at::kMeta).dtype(at::kFloat)});
  return checkpoint.names(whole.parameters());
}

// One step of one rank: its mean loss and tokens, and of each share of a tensor name, place and squared norm.
json step_of_rank(const Trial& t, const parallel::Mesh& mesh, const Given& given) {
  TrainStep step(t, at::kCPU, mesh, nullptr, {}, given);
  const StepTimes times = step.run();
  json shares = json::array();
  for (const auto& tensor : step.tensors()) {
    if (!tensor.gradient.defined()) continue;
    const double norm = tensor.gradient.to(at::kDouble).norm().item<double>();
    shares.push_back({tensor.name, tensor.slice.ranges, norm * norm});
  }
  return {{"loss", times.loss}, {"tokens", times.tokens}, {"shares", shares}};
}

json step_of_group(const Trial& t, const comm::GroupOptions& options, const Given& given) {
  const parallel::Mesh mesh(*shape::ParallelDims::make(t), options.rank,
                            [&](const parallel::Mesh::Meeting& met) {
                              comm::GroupOptions group = options;
                              group.name = met.name, group.rank = met.rank, group.world = met.size();
                              return comm::make_shm(group);
                            });
  json answer = step_of_rank(t, mesh, given);
  mesh[shape::Dimension::kWorld].barrier();
  return answer;
}

Expected<std::vector<json>> run_all(const Trial& t, const Given& given) {
  if (t.world() == 1) return std::vector<json>{step_of_rank(t, parallel::alone(), given)};
  const auto ends =
      comm::run_forked(static_cast<int>(t.world()), std::chrono::minutes(10),
                       [&](const auto& options) { return dump(step_of_group(t, options, given)); });
  std::vector<json> answers;
  for (const bool consequences : {false, true}) {
    for (std::size_t rank = 0; rank < ends.size(); ++rank)
      if (ends[rank].status != 0 && ends[rank].lost_peer == consequences)
        return fail("rank " + std::to_string(rank) + " of the check failed: " + ends[rank].text);
  }
  for (const auto& end : ends) answers.push_back(json::parse(end.text));
  return answers;
}

// Squares of the whole tensors: each share counts once, however many ranks hold it.
json merged(const std::vector<json>& ranks, const std::map<std::string, std::string>& names) {
  std::map<std::string, std::map<std::string, double>> squares;
  double loss = 0, tokens = 0;
  for (const json& rank : ranks) {
    loss += rank["loss"].get<double>() * rank["tokens"].get<double>();
    tokens += rank["tokens"].get<double>();
    for (const json& share : rank["shares"]) squares[share[0]][dump(share[1])] = share[2];
  }
  json norms = json::object();
  for (const auto& [name, shares] : squares) {
    double sum = 0;
    for (const auto& [place, square] : shares) sum += square;
    norms[names.at(name)] = std::sqrt(sum);
  }
  return {{"loss", loss / tokens}, {"grad_norms", norms}};
}

}  // namespace

Expected<std::string> check(const fs::path& checkpoint_dir, const fs::path& tokens_json,
                            const Trial& layout) {
  SWEEP_GET(const auto config, files::read(checkpoint_dir / "config.json"));
  const auto spec = shape::model_from_config_json(config);
  if (!spec) return fail((checkpoint_dir / "config.json").string() + ": " + spec.error().message);
  SWEEP_GET(const auto sequences, read_tokens(tokens_json, spec->vocab_size));
  SWEEP_GET(const auto trial, trial_of(layout, *spec, sequences));
  SWEEP_GET(const auto checkpoint, Checkpoint::open(checkpoint_dir));
  SWEEP_GET(const auto names, names_of(checkpoint, trial));
  const Given given{
      [&](const auto& part, const at::Tensor& share) { checkpoint.copy(part, share); },
      [&](const auto& part, const kernels::Nf4& whole) { return checkpoint.copy_codes(part, whole); },
      [&](i64 sequence, i64 position) {
        return sequences.rows[static_cast<std::size_t>(sequence)][static_cast<std::size_t>(position)];
      }};
  try {
    SWEEP_GET(const auto ranks, run_all(trial, given));
    return dump(merged(ranks, names));
  } catch (const std::exception& error) {
    return fail(std::string("the check failed: ") + error.what());
  }
}

}  // namespace sweep::step

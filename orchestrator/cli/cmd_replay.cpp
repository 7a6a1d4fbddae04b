// sweep replay: the trials that a strategy would have run of configurations that are measured already, in its
// order.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <tuple>

#include "base/input_file.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/profiles.h"
#include "orchestrator/import/configs.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/predict.h"
#include "orchestrator/search/replay.h"

namespace sweep::cli {
namespace {

constexpr std::size_t kMostReplayBytes = std::size_t{1} << 30;

struct ReplayCommand {
  std::string measured, hardware = "h100-sxm-80gb", profile, trainer, strategy = "search";
  Strategy settings;
};

struct Cell {
  std::vector<std::size_t> rows;
  std::vector<search::Candidate> before, answers;
};
// The key is model, nodes, GPUs of a node, sequence length.
using Cells = std::map<std::tuple<std::string, i64, i64, i64>, Cell>;

Cells cells_of(const imports::Configs& configs, const predict::TrainerProfile& profile,
               const shape::Hardware& hardware) {
  Cells out;
  predict::TrialPrediction predicted;
  for (std::size_t i = 0; i < configs.rows.size(); ++i) {
    const auto& row = configs.rows[i];
    const Trial& t = row.trial;
    Cell& cell = out[{t.model, t.nodes, t.gpus_per_node, t.seq_len}];
    predict::predict_trial(t, profile, hardware, plan::step_refusal, predicted);
    const auto& memory = predicted.memory;
    search::Candidate c;
    c.trial = &t;
    c.predicted_rate = predicted.time.tokens_per_s_gpu;
    c.fit_chance = predicted.refusal ? search::kLeastFit : search::chance_to_fit(memory.need, memory.limit);
    c.fit_chance = std::max(search::kLeastFit, c.fit_chance * (1 - predicted.layout.seen.fails));
    cell.rows.push_back(i);
    cell.before.push_back(c);
    const bool ran = row.tokens_per_s_gpu > 0 && row.outcome.value_or(Outcome::kOk) == Outcome::kOk;
    c.standing = ran                            ? search::Standing::kMeasured
                 : row.outcome == Outcome::kOom ? search::Standing::kOutOfMemory
                                                : search::Standing::kFailed;
    c.rate = ran ? row.tokens_per_s_gpu : 0;
    cell.answers.push_back(c);
  }
  return out;
}

int replay(Io& io, const ReplayCommand& o) {
  const auto hardware = shape::find_hardware(o.hardware);
  if (!hardware) return refuse(io, hardware.error());
  const auto profile = choose_profile(io.err, o.profile, o.trainer, o.hardware);
  if (!profile) return refuse(io, profile.error());
  const auto file = read_input(o.measured, kMostReplayBytes, Streams::kTaken);
  if (!file) return refuse(io, file.error());
  const auto configs = imports::read_configs(file->bytes, {file->shown_as, o.hardware, {}});
  if (!configs) return refuse(io, configs.error());
  Strategy strategy = o.settings;
  strategy.kind = *strategy_from(o.strategy);
  io.out << "model,nodes,seq_len,trial,row,predicted_tokens_per_s_gpu,tokens_per_s_gpu,share_of_best\n";
  for (const auto& [key, cell] : cells_of(*configs, *profile, *hardware)) {
    double best = 0;
    for (const auto& answer : cell.answers) best = std::max(best, answer.rate);
    i64 number = 0;
    for (const std::size_t i : search::replay(cell.before, cell.answers, strategy))
      io.out << fmt::format("{},{},{},{},{},{:.6g},{:.6g},{:.4f}\n", answers::safe_text(std::get<0>(key)),
                            std::get<1>(key), std::get<3>(key), ++number, cell.rows[i] + 2,
                            *cell.before[i].predicted_rate, cell.answers[i].rate,
                            best > 0 ? cell.answers[i].rate / best : 0);
  }
  return kAnswered;
}

}  // namespace

void add_replay(Registry r) {
  auto* c = r.app.add_subcommand(
      "replay", "which of measured configurations a strategy would have tried, in its order, as CSV");
  auto o = std::make_shared<ReplayCommand>();
  c->add_option("MEASURED", o->measured,
                "measured rows, with the columns of `predict --fit` (docs/search.md)")
      ->required()
      ->type_name("FILE.csv");
  c->add_option("--strategy", o->strategy, strategy_sentences())
      ->check(CLI::IsMember(strategy_words()))
      ->capture_default_str();
  c->add_option("--profile", o->profile,
                "trainer profile: a built-in or saved one, or a path; else that of the trainer");
  c->add_option("--trainer", o->trainer, "the trainer, by the name of its recipe; else the built-in step");
  c->add_option("--hardware", o->hardware, "hardware catalogue name")->capture_default_str();
  c->add_option("--max-trials", o->settings.max_trials,
                "the most trials of each model, number of nodes and sequence length")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c->add_option("--least-gain", o->settings.least_gain, "stop when less than this share is promised")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  c->callback([r, o] { r.chosen = [r, o] { return replay(r.io, *o); }; });
}

}  // namespace sweep::cli

#include "orchestrator/answers/tables/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/utf8.h"
#include "orchestrator/answers/json_values.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/predict.h"
#include "orchestrator/search/learner.h"
#include "schema/codec.h"

namespace sweep::answers {
namespace {

struct ReplayCell {
  std::vector<std::size_t> rows;
  std::vector<search::Candidate> before, answers;
};
// The key is model, nodes, GPUs of a node, sequence length.
using ReplayCells = std::map<std::tuple<std::string, i64, i64, i64>, ReplayCell>;

ReplayCells cells_of(std::span<const ConfigRow> rows, const predict::TrainerProfile& profile,
                     const shape::Hardware& hardware) {
  ReplayCells out;
  predict::TrialPrediction predicted;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    if (row.unanswered) continue;
    const Trial& t = row.trial;
    ReplayCell& cell = out[{t.model, t.nodes, t.gpus_per_node, t.seq_len}];
    predict::predict_trial(t, profile, hardware, plan::step_refusal, predicted);
    const auto& memory = predicted.memory;
    search::Candidate c;
    c.trial = &t;
    if (predicted.no_time.empty()) c.predicted_rate = predicted.time.tokens_per_s_gpu;
    c.fit_chance = predicted.refusal ? search::kLeastFit : search::chance_to_fit(memory.need, memory.limit);
    c.fit_chance = std::max(search::kLeastFit, c.fit_chance * (1 - predicted.layout.seen.fails));
    cell.rows.push_back(i);
    cell.before.push_back(c);
    c.status = row.ran()                      ? search::TrialStatus::kMeasured
               : row.outcome == Outcome::kOom ? search::TrialStatus::kOutOfMemory
                                              : search::TrialStatus::kFailed;
    c.rate = row.ran() ? row.tokens_per_s_gpu : 0;
    cell.answers.push_back(c);
  }
  return out;
}

}  // namespace

std::vector<ReplayedTrial> replayed(std::span<const ConfigRow> rows, const predict::TrainerProfile& profile,
                                    const shape::Hardware& hardware, const Strategy& strategy) {
  std::vector<ReplayedTrial> out;
  for (const auto& [key, cell] : cells_of(rows, profile, hardware)) {
    double best = 0;
    for (const auto& answer : cell.answers) best = std::max(best, answer.rate);
    i64 number = 0;
    for (const std::size_t i : search::replay(cell.before, cell.answers, strategy)) {
      const double rate = cell.answers[i].rate;
      out.push_back({cell.before[i].trial, ++number, rows[cell.rows[i]].line, cell.before[i].predicted_rate,
                     rate, best > 0 ? rate / best : 0});
    }
  }
  return out;
}

std::string replayed_csv(std::span<const ReplayedTrial> all) {
  std::string out =
      "model,nodes,seq_len,trial,row,predicted_tokens_per_s_gpu,tokens_per_s_gpu,share_of_best\n";
  for (const ReplayedTrial& each : all)
    out += fmt::format("{},{},{},{},{},{},{}\n", safe_text(each.trial->model), each.trial->nodes,
                       each.trial->seq_len, each.number, each.row,
                       each.predicted_rate ? fmt::format("{:.6g}", *each.predicted_rate) : "",
                       each.rate > 0 ? fmt::format("{:.6g},{:.4f}", each.rate, each.share) : ",");
  return out;
}

nlohmann::json replayed_json(std::span<const ReplayedTrial> all) {
  nlohmann::json out = nlohmann::json::array();
  for (const ReplayedTrial& each : all) {
    const bool ran = each.rate > 0;
    out.push_back({{"model", each.trial->model},
                   {"nodes", each.trial->nodes},
                   {"seq_len", each.trial->seq_len},
                   {"trial", each.number},
                   {"row", each.row},
                   {"configuration", to_json(*each.trial)},
                   {"predicted_tokens_per_s_gpu",
                    each.predicted_rate ? nlohmann::json(*each.predicted_rate) : nlohmann::json(nullptr)},
                   {"tokens_per_s_gpu", ran ? nlohmann::json(each.rate) : nlohmann::json(nullptr)},
                   {"share_of_best", ran ? nlohmann::json(each.share) : nlohmann::json(nullptr)}});
  }
  return out;
}

}  // namespace sweep::answers

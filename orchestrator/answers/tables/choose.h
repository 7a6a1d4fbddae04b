// Choose: which machines for a training run, by predicted rates and prices: the cheapest that meets a deadline, the
// fastest within a budget.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schema/plan_entry.h"

namespace sweep::answers {

struct ChooseRequest {
  double tokens = 0;  // tokens that the run trains on: documents, no padding
  std::optional<double> days, usd;
  i64 show = 5;
};
// A configuration that is predicted to fit, with the figures of the whole run.
struct Choice {
  const PlanEntry* entry = nullptr;
  double tokens_per_s = 0, useful_tokens_per_s = 0, hours = 0;
  std::optional<double> usd{};  // nullopt: the hardware has no price
  double days() const { return hours / 24; }
  // The whole model in fp32: what a rank 0 holds that loads or saves an unsplit checkpoint.
  double model_bytes() const;
};
struct Choices {
  std::vector<Choice> meeting;     // choices that meet the request, the best first
  std::optional<Choice> fastest;   // the fastest of all; nullopt: nothing is predicted to fit
  std::optional<Choice> cheapest;  // the cheapest of all that have a price
  bool by_time = false;            // the fastest is the best; else the cheapest
};
// `entries` must outlive the answer. Prices are by hardware; those that are not given are the catalogue's.
Choices choose(std::span<const PlanEntry> entries, const ChooseRequest&,
               const std::map<std::string, double>& usd_per_node_hour);

std::string choices_text(const Choices&, const ChooseRequest&);
// A sentence on what there is; `grid`: the file.
std::string choices_summary(const Choices&, const ChooseRequest&, const std::string& grid);
nlohmann::json choices_json(const Choices&, const ChooseRequest&);

}  // namespace sweep::answers

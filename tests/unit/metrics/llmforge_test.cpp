// The LLMForge guide's table for one p4de.24xlarge, recomputed from its own throughput, and docs/llmforge.md,
// which prints both. The figures are transcribed in tests/golden/llmforge_p4de.csv.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/metrics/derive.h"

namespace sweep::metrics {
namespace {

constexpr double kPrice = 40.77, kGpus = 8, kPeak = 312e12;

struct Guide {
  std::string model;
  double seq_len, batch, mt_per_hour, mfu, cost, billions;
  double recomputed_cost(double price = kPrice) const { return price / mt_per_hour; }
  double recomputed_mfu() const { return 6 * billions * 1e9 * mt_per_hour * 1e6 / 3600 / kGpus / kPeak; }
};

std::vector<std::string> cells_of(const std::string& line, char separator) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, separator);) {
    const auto first = cell.find_first_not_of(' ');
    out.push_back(first == std::string::npos ? ""
                                             : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return out;
}

std::vector<Guide> guide() {
  std::ifstream in(std::string(SWEEP_SOURCE_DIR) + "/tests/golden/llmforge_p4de.csv");
  std::vector<Guide> out;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const auto c = cells_of(line, ',');
    const auto n = [&](std::size_t i) { return std::stod(c.at(i)); };
    out.push_back({c.at(0), n(1), n(2), n(3), n(4), n(5), n(6)});
  }
  return out;
}

TEST(LlmForge, OurFormulasGiveItsThroughputItsCostAndItsMfu) {
  const std::map<std::string, std::string> catalogue = {{"Llama-2-7B", "llama2-7b"},
                                                        {"Llama-2-70B", "llama2-70b"}};
  int compared = 0;
  for (const Guide& row : guide()) {
    const auto name = catalogue.find(row.model);
    if (name == catalogue.end()) continue;  // Mixtral is a mixture of experts: by the formula below
    Trial t;
    t.spec = *shape::find_model(name->second);
    t.hardware = "a100-80gb", t.precision = Precision::kBf16, t.dp = t.gpus_per_node = 8;
    t.seq_len = i64(row.seq_len), t.micro_batch_size = i64(row.batch),
    t.global_batch_size = 8 * t.micro_batch_size;
    const double tokens = double(t.global_batch_size * t.seq_len),
                 seconds = tokens * 3600 / 1e6 / row.mt_per_hour;
    std::vector<RankRecord> records(8);
    for (std::size_t rank = 0; rank < records.size(); ++rank) {
      StepSample s;
      s.step_ns = std::llround(seconds * 1e9), s.forward_ns = s.step_ns / 3,
      s.backward_ns = s.step_ns - s.forward_ns;
      records[rank].rank = i64(rank), records[rank].outcome = Outcome::kOk, records[rank].samples = {s};
    }
    const Metrics m = derive(t, records, nullptr);
    const double price = shape::find_hardware(t.hardware)->price->usd_per_node_hour;
    EXPECT_NEAR(*m.mt_per_hour, row.mt_per_hour, 1e-5 * row.mt_per_hour);
    EXPECT_NEAR(*m.cost_per_mt, row.recomputed_cost(price), 1e-5 * *m.cost_per_mt);
    EXPECT_NEAR(*m.mfu_fwd_bwd, row.recomputed_mfu(), 1e-3 * *m.mfu_fwd_bwd);
    ++compared;
  }
  EXPECT_EQ(compared, 8);
}

// The largest relative error of price / throughput against the printed cost.
double worst_error(double price, bool reversed, bool swapped) {
  std::map<std::string, std::vector<Guide>> models;
  for (const Guide& row : guide()) models[row.model].push_back(row);
  double worst = 0;
  for (const auto& [model, rows] : models) {
    const std::string from = !swapped || model == "Llama-2-70B" ? model
                             : model == "Llama-2-7B"            ? "Mixtral-8x7B"
                                                                : "Llama-2-7B";
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double printed = models[from][reversed ? rows.size() - 1 - i : i].cost;
      worst = std::max(worst, std::fabs(rows[i].recomputed_cost(price) - printed) / printed);
    }
  }
  return worst;
}

TEST(LlmForge, PrintedCostsFitOnlyReversedAndSwapped) {
  EXPECT_GT(worst_error(kPrice, false, false), 0.8);
  EXPECT_GT(worst_error(kPrice, true, false), 0.7);
  EXPECT_GT(worst_error(kPrice, false, true), 0.19);
  EXPECT_LT(worst_error(kPrice, true, true), 0.031);
  EXPECT_LT(worst_error(40.97, true, true), 0.027);
}

TEST(LlmForge, TheDocumentPrintsBothColumns) {
  std::ifstream in(std::string(SWEEP_SOURCE_DIR) + "/docs/llmforge.md");
  std::map<std::string, std::vector<std::string>> lines;
  for (std::string line; std::getline(in, line);) {
    const auto c = cells_of(line, '|');
    if (c.size() > 8) lines[c[1] + " " + c[2]] = c;
  }
  for (const Guide& row : guide()) {
    const auto found = lines.find(row.model + " " + std::to_string(int(row.seq_len)));
    ASSERT_NE(found, lines.end()) << row.model << " " << row.seq_len;
    const auto n = [&](std::size_t i) { return std::stod(found->second.at(i)); };
    EXPECT_EQ(n(3), row.batch);
    EXPECT_EQ(n(4), row.mt_per_hour);
    EXPECT_EQ(n(5), row.mfu);
    EXPECT_NEAR(n(6), row.recomputed_mfu(), 0.0006);
    EXPECT_EQ(n(7), row.cost);
    EXPECT_NEAR(n(8), row.recomputed_cost(), 0.0006);
  }
}

}  // namespace
}  // namespace sweep::metrics

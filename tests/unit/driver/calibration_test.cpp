// The trials of a calibration, and the profile from what ranks report.
#include "orchestrator/driver/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "bench_kernels/shape/parallel_dims.h"
#include "schema/codec.h"
#include "tests/support/must.h"

namespace sweep::driver {
namespace {

using ::testing::ElementsAre;

CalibrationSetup setup(i64 nodes, i64 ranks) {
  CalibrationSetup out;
  out.nodes = nodes, out.ranks_per_node = ranks;
  return out;
}

TEST(Calibration, GroupsFillNodesOrDivideThem) {
  EXPECT_THAT(group_sizes(setup(1, 2)), ElementsAre(2));
  EXPECT_THAT(group_sizes(setup(1, 8)), ElementsAre(2, 4, 8));
  EXPECT_THAT(group_sizes(setup(4, 8)), ElementsAre(2, 4, 8, 16, 32));
  EXPECT_THAT(group_sizes(setup(1, 6)), ElementsAre(2, 6));
  EXPECT_THAT(group_sizes(setup(3, 4)), ElementsAre(2, 4, 12));
  EXPECT_THAT(group_sizes(setup(2, 1)), ElementsAre(2));
  EXPECT_TRUE(group_sizes(setup(1, 1)).empty());
}

TEST(Calibration, EachGroupAndBackendHasATrialOfItsOwnThatFillsTheNodes) {
  CalibrationSetup over = setup(2, 4);
  over.backends = {CommBackend::kGloo, CommBackend::kAuto};
  const auto trials = calibration_trials(over);
  EXPECT_EQ(trials.size(), 1u + 2 * (3 + 1));
  std::set<std::string> ids;
  for (const Trial& t : trials) {
    ids.insert(trial_id(t));
    EXPECT_EQ(t.world(), 8);
    EXPECT_EQ(t.workload, Workload::kCalibrate);
    EXPECT_TRUE(shape::ParallelDims::make(t));
    EXPECT_TRUE(calibration_request_from(t.program));
  }
  EXPECT_EQ(ids.size(), trials.size());
  EXPECT_EQ(calibration_title(trials.front()), "machine");
  EXPECT_EQ(calibration_title(trials.back()), "2 ranks on 2 nodes, auto");
  over.collectives = false;
  EXPECT_EQ(calibration_trials(over).size(), 1u);
}

RankRecord record(i64 rank, const CalibrationFindings& found) {
  RankRecord out;
  out.rank = rank;
  out.effective.backend = "gloo", out.effective.calibration = found;
  return out;
}

TEST(Calibration, TheSlowestRankCountsAndWrongElementsAreSummed) {
  const Trial t = calibration_trials(setup(2, 4))[3];  // all 8 ranks
  CalibrationFindings a, b;
  a.collectives = {{"send", 1024, 1e-5, 0}}, b.collectives = {{"send", 1024, 3e-5, 4}};
  shape::HardwareProfile p;
  ASSERT_TRUE(add_findings(p, t, {record(0, a), record(1, b)}));
  ASSERT_EQ(p.collectives.size(), 1u);
  EXPECT_EQ(p.collectives[0], (shape::CollectiveRow{"send", "gloo", 8, 2, 1024, 3e-5, 4}));
  CalibrationFindings own;
  own.matmul = {{"fp32", 32, 64, 64, 1e-5}}, own.copies = {{1024, 2e-6}}, own.launch_s = 1e-6;
  const Trial machine = calibration_trials(setup(1, 2)).front();
  ASSERT_TRUE(add_findings(p, machine, {record(0, own), record(1, own)}));
  EXPECT_EQ(p.matmul.size(), 1u);
  EXPECT_EQ(p.launch_s, 1e-6);
}

TEST(Calibration, KernelsAreMeasuredWhereAskedForAndTheSlowestRankCounts) {
  CalibrationSetup asked = setup(1, 2);
  asked.machine = asked.collectives = false, asked.kernels = true;
  const auto trials = calibration_trials(asked);
  ASSERT_EQ(trials.size(), 1u);
  const auto request = must(calibration_request_from(trials[0].program));
  EXPECT_TRUE(request.kernels);
  EXPECT_FALSE(request.machine);
  EXPECT_FALSE(calibration_request_from(calibration_trials(setup(1, 2))[0].program)->kernels);
  CalibrationFindings a, b;
  a.kernels = {{"attention", "4x64x16", "fp32", 2e-5}}, b.kernels = {{"attention", "4x64x16", "fp32", 3e-5}};
  shape::HardwareProfile p;
  ASSERT_TRUE(add_findings(p, trials[0], {record(0, a), record(1, b)}));
  ASSERT_EQ(p.kernels.size(), 1u);
  EXPECT_EQ(p.kernels[0].seconds, 3e-5);
  a.kernels[0].shape = "4x64y16";
  EXPECT_FALSE(add_findings(p, trials[0], {record(0, a)}));
}

TEST(Calibration, ARankThatReportsWhatCannotBeIsAnError) {
  const Trial t = calibration_trials(setup(1, 2)).front();
  shape::HardwareProfile p;
  RankRecord none;
  none.effective.backend = "shm";
  EXPECT_FALSE(add_findings(p, t, {none}));
  none.effective.calibration.emplace().copies = {{8, -1}};
  EXPECT_FALSE(add_findings(p, t, {none}));
}

TEST(CalibrationRequest, ReadsWhatItWritesAndRefusesWhatCannotBe) {
  CalibrationRequest r;
  r.group = "dp", r.precisions = {"fp32"}, r.largest_bytes = 4096;
  EXPECT_EQ(calibration_request_from(to_text(r)).value(), r);
  for (const char* text :
       {"", "{}", R"({"group": "pp", "smallest_bytes": 4, "largest_bytes": 4, "item_s": 1})",
        R"({"smallest_bytes": 8, "largest_bytes": 4, "item_s": 1})",
        R"({"smallest_bytes": 4, "largest_bytes": 4, "item_s": 0})"})
    EXPECT_FALSE(calibration_request_from(text)) << text;
}

}  // namespace
}  // namespace sweep::driver

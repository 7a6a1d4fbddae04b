// DriverTest: a SweepDriver over a real database and a FakeLauncher.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>

#include "orchestrator/driver/sweep_driver.h"
#include "schema/codec.h"
#include "schema/sweep_options.h"
#include "tests/support/fake_launcher.h"
#include "tests/support/temporary_folder.h"

namespace sweep::driver {

using testing::FakeLauncher;
using testing::FakeOutcome;

class DriverTest : public ::testing::Test {
 protected:
  static store::SweepRow row(const std::string& name = "test") {
    store::SweepRow out;
    out.name = name;
    out.options.measure = MeasurePlan{0, 2, 1};
    out.options.retries_crash = out.options.retries_infra = 0;
    return out;
  }
  static std::vector<PlanEntry> plan(i64 trials) {
    std::vector<PlanEntry> out;
    for (i64 i = 0; i < trials; ++i) {
      PlanEntry entry;
      entry.trial.model = "tiny", entry.trial.spec.layers = 1, entry.trial.seq_len = 64 + i;
      entry.predicted.seconds = 1;
      entry.id = trial_id(entry.trial);
      entry.order = i;
      out.push_back(entry);
    }
    return out;
  }
  // A driver with a sweep of its own; its folder is not there yet.
  SweepDriver open(const std::string& name = "test") {
    auto driver = SweepDriver::open(dir_ / "folder" / "d.db");
    EXPECT_TRUE(driver) << driver.error().message;
    const auto made = driver->make(row(name));
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*driver);
  }

  static bool leased(SweepDriver& driver) {
    const auto lease = driver.store().lease(driver.sweep().id);
    EXPECT_TRUE(lease) << lease.error().message;
    return lease && lease->has_value();
  }

  run::MakeLauncher launcher(FakeLauncher::Script script) {
    return [this, script = std::move(script)](boost::asio::io_context& io, launch::Launcher::Sink sink) {
      auto made = std::make_unique<FakeLauncher>(io, std::move(sink), script);
      made->requests_seen = &requests_;
      if (!named_.all.empty()) made->named = &named_;
      return made;
    };
  }
  Driven<RunReport> run_all(SweepDriver& driver, FakeOutcome outcome = FakeOutcome::kOk) {
    run::Settings settings;
    settings.measure = {0, 2, 1};
    settings.launcher = "fake";
    settings.allocate_per_shape = !named_.all.empty();
    return driver.run(settings, launcher([outcome](const Attempt&) { return outcome; }), observer_);
  }

  const TemporaryFolder dir_;
  std::vector<launch::AllocationRequest> requests_;
  testing::NamedHosts named_;
  QuietObserver observer_;
};

}  // namespace sweep::driver

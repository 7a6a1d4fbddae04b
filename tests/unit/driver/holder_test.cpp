// Taking over and watching, with a clock, a process table and a Slurm of the test's own.
#include "orchestrator/driver/holder.h"

#include "orchestrator/run/retry_policy.h"
#include "tests/support/must.h"
#include "tests/unit/driver/driver_fixture.h"

namespace sweep::driver {
namespace {

using store::JobWord, store::LeaseHolder;

class HolderTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    holder_ = as("n1", 77), other_ = as("l1", 0);
    sweep_ = *holder_->ensure_sweep(row());
    ASSERT_FALSE(holder_->take_lease(sweep_.id)->has_value());
  }
  void TearDown() override {
    holder_.reset(), other_.reset();
    DriverTest::TearDown();
  }
  std::unique_ptr<store::Store> as(const std::string& host, i64 job) {
    store::StoreDependencies dependencies;
    dependencies.decide_trial = run::decide_trial;
    dependencies.self = LeaseHolder{host, "boot-" + host, 1, 1, 0, job, job > 0 ? "main" : ""};
    dependencies.network_filesystem = [](const std::filesystem::path&) { return true; };
    dependencies.now_unix_ns = [this] { return 1'000'000'000'000'000'000 + static_cast<i64>(now_ * 1e9); };
    dependencies.steady_s = [this] { return now_ += 0.01; };
    return std::move(*store::Store::open(dir_ / "h.db", store::Mode::kReadWrite, dependencies));
  }
  // Slurm's answer to each question, and how much time it takes.
  run::AskJob slurm(JobWord word, double takes_s = 0) {
    return [this, word, takes_s](const LeaseHolder& holder) {
      EXPECT_EQ(holder.slurm_job, 77);
      ++asked_, now_ += takes_s;
      return word;
    };
  }
  Expected<Holder> obtain(JobWord word) {
    return obtain_lease(
        *other_, sweep_, dir_ / "h.db", false, [this](const std::string& line) { said_.push_back(line); },
        slurm(word));
  }

  double now_ = 0;
  int asked_ = 0;
  std::unique_ptr<store::Store> holder_, other_;
  store::SweepRow sweep_;
  std::vector<std::string> said_;
};

// It was watched all the while, and then Slurm is asked.
TEST_F(HolderTest, AWatchedHolderIsTakenOverOnceSlurmSaysThatItsJobIsOver) {
  for (const JobWord word : {JobWord::kOver, JobWord::kLost}) {
    ASSERT_TRUE(other_->lease(sweep_.id)->has_value());
    now_ += 61;
    const auto taken = must(obtain(word));
    EXPECT_FALSE(taken) << static_cast<int>(word);
    ASSERT_TRUE(other_->release_lease(sweep_.id));
    ASSERT_FALSE(holder_->take_lease(sweep_.id)->has_value());
  }
  EXPECT_EQ(asked_, 2);
}

TEST_F(HolderTest, AWatchedHolderOfWhichSlurmKnowsNothingIsAPersonsDecision) {
  ASSERT_TRUE(other_->lease(sweep_.id)->has_value());
  now_ += 61;
  const auto holder = obtain(JobWord::kUnknown);
  ASSERT_TRUE(holder && *holder);
  EXPECT_TRUE(uncertain(*holder));
  EXPECT_EQ(said_.size(), 2u);
}

TEST_F(HolderTest, AWatcherAsksSlurmAndEndsWhenTheJobIsOver) {
  ASSERT_TRUE(other_->lease(sweep_.id)->has_value());
  now_ += store::kQuietSeconds + 1;
  const auto end = must(run::watch(*other_, sweep_.id, observer_, slurm(JobWord::kOver)));
  EXPECT_EQ(end.end, run::End::kSilent);
  EXPECT_EQ(asked_, 1);
  const auto taken = must(obtain(JobWord::kOver));
  EXPECT_FALSE(taken);
}

TEST_F(HolderTest, AWatcherOfAJobWhoseNodeFailedWaitsUntilItsHolderIsSilent) {
  ASSERT_TRUE(other_->lease(sweep_.id)->has_value());
  now_ += store::kQuietSeconds + 1;
  const auto end = must(run::watch(*other_, sweep_.id, observer_, slurm(JobWord::kLost, 30)));
  EXPECT_EQ(end.end, run::End::kSilent);
  EXPECT_EQ(asked_, 2) << "46 s of silence were too few";
}

TEST(StillHolder, IsOneWhoseProcessLivesAndIsSilent) {
  LeaseHolder holder{"n1", "boot-n1", 1, 1, 0};
  holder.process = store::Process::kAlive, holder.beat = store::Beat::kQuiet, holder.silent_s = 30;
  EXPECT_FALSE(store::stands_still(holder));
  EXPECT_EQ(holder_text(holder).find("kill -CONT"), std::string::npos);
  holder.beat = store::Beat::kSilent, holder.pid = 631, holder.silent_s = 75;
  EXPECT_TRUE(store::stands_still(holder));
  EXPECT_NE(holder_text(holder).find("kill -CONT 631"), std::string::npos);
  holder.process = store::Process::kOutOfSight;
  EXPECT_FALSE(store::stands_still(holder));
}

TEST_F(HolderTest, AWatcherOfARunThatReleasedItsLeaseSeesItEnd) {
  ASSERT_TRUE(holder_->release_lease(sweep_.id));
  const auto end = must(run::watch(*other_, sweep_.id, observer_, slurm(JobWord::kOver)));
  EXPECT_EQ(end.end, run::End::kDone);
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace sweep::driver

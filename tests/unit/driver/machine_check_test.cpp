// The check of this machine: what is missing is a finding, and no reason to stop.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "orchestrator/driver/doctor_rules.h"

namespace sweep::driver {
namespace {

TEST(MachineCheck, ProgramsThatAreMissingAreFindingsAndTheRestIsCheckedAllTheSame) {
  const auto findings = check_this_machine(std::filesystem::temp_directory_path() / "d.db");
  const auto health = [&](const std::string& what) {
    const auto found = std::ranges::find(findings, what, &Finding::what);
    return found == findings.end() ? std::optional<Health>() : found->health;
  };
  EXPECT_EQ(health("sweep-agent"), Health::kBad) << "no program lies beside a test";
  EXPECT_EQ(health("sweep-rank"), Health::kWarning) << "commands run without it";
  ASSERT_TRUE(health("rehearsals").has_value());
  EXPECT_NE(health("rehearsals"), Health::kBad) << "a machine that cannot rehearse can still run";
  EXPECT_TRUE(health("/dev/shm").has_value());
  EXPECT_TRUE(health(std::filesystem::temp_directory_path()).has_value());
}

TEST(MachineCheck, AFolderThatIsNotThereIsNamed) {
  const auto findings = check_this_machine("/nonexistent/folder/d.db");
  const auto found = std::ranges::find(findings, std::string("/nonexistent/folder"), &Finding::what);
  ASSERT_NE(found, findings.end());
  EXPECT_EQ(found->health, Health::kBad);
}

}  // namespace
}  // namespace sweep::driver

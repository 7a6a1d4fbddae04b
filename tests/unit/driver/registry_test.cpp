// The registry and the table of grid keys name the same launchers, and each can be configured.
#include "orchestrator/driver/registry.h"

#include <gtest/gtest.h>

#include <set>

#include "schema/launch_settings.h"
#include "tests/support/must.h"

namespace sweep::driver {
namespace {

TEST(Registry, HasTheLaunchersThatAGridMayName) {
  std::set<std::string> registered, in_grids;
  for (const auto& name : launcher_names()) registered.insert(name);
  for_each_launcher([&](std::string_view name, auto) { in_grids.emplace(name); });
  EXPECT_EQ(registered, in_grids);
  EXPECT_EQ(find_launcher("pigeon"), nullptr);
}

TEST(Registry, EveryLauncherTakesSettingsWithoutAnyKey) {
  for (const auto& entry : launchers()) {
    ASSERT_EQ(find_launcher(entry.name), &entry);
    const auto config = entry.configure({}, 0);
    ASSERT_TRUE(config) << entry.name << ": " << config.error().message;
    const auto limit = (*config)->slot_limit(0);
    ASSERT_TRUE(limit) << entry.name;
    EXPECT_EQ(limit->slots, 1) << entry.name;
    EXPECT_EQ((*config)->confirm_gpu_hours(), 0) << entry.name;
  }
}

TEST(Registry, TheFirstLauncherUsesThisMachineAndNoOtherDoes) {
  for (const auto& entry : launchers()) {
    const auto config = must(entry.configure({}, 0));
    EXPECT_EQ(config->uses_this_machine(), &entry == &launchers().front()) << entry.name;
  }
}

TEST(Registry, ALauncherThatSubmitsScriptsHasThemToShow) {
  for (const auto& entry : launchers()) {
    const auto config = must(entry.configure({}, 0));
    EXPECT_EQ(config->cluster_size().has_value(), entry.has_scripts) << entry.name;
    if (!entry.has_scripts) {
      EXPECT_FALSE(config->preview({}, {})) << entry.name;
    }
  }
}

}  // namespace
}  // namespace sweep::driver

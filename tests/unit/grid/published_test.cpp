// Tests of what is published with the program: the example grids expand, and the JSON Schema knows what the
// reader knows.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "bench_kernels/shape/catalogue.h"
#include "grid_text.h"
#include "orchestrator/grid/keys.h"
#include "orchestrator/grid/scope.h"
#include "schema/axis_domain.h"
#include "schema/launch_settings.h"

namespace sweep::grid {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kSource = SWEEP_SOURCE_DIR;

TEST(GridPublished, EveryExampleExpandsAndAsksAQuestion) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(kSource / "sweeps")) {
    if (file.path().extension() != ".yaml") continue;
    ++files;
    const auto grid = must(read_file(file.path()));
    EXPECT_THAT(grid.question, ::testing::EndsWith("?")) << file.path();
    const auto counts = expand(grid, [](PlanEntry&&) { return true; });
    ASSERT_TRUE(counts) << counts.error().message;
    EXPECT_GT(counts->admitted, 0u) << file.path();
    EXPECT_EQ(counts->duplicates, 0u) << file.path();
  }
  EXPECT_GE(files, 5);
}

TEST(GridPublished, TheQuickstartHasSomethingOfEverything) {
  const auto grid = must(read_file(kSource / "sweeps" / "quickstart.yaml"));
  EXPECT_GE(grid.measure.steps, 6) << "fewer timed steps give no confidence interval";
  ASSERT_TRUE(grid.launch.local);
  EXPECT_EQ(*grid.launch.local->slots, 1) << "trials side by side slow each other down";
  const auto counts = expand(grid, [](PlanEntry&& entry) {
    EXPECT_LE(entry.trial.world(), 2);
    EXPECT_TRUE(entry.trial.memory_cap_bytes);
    return true;
  });
  ASSERT_TRUE(counts);
  EXPECT_GE(counts->admitted, 24u);
  EXPECT_LE(counts->admitted, 64u);
  EXPECT_GE(counts->pruned, 1u);
}

class GridSchemaTest : public ::testing::Test {
 protected:
  GridSchemaTest() { schema_ = Json::parse(std::ifstream(kSource / "schema" / "json" / "grid.schema.json")); }

  static std::set<std::string> keys(const Json& properties) {
    std::set<std::string> out;
    for (const auto& [key, value] : properties.items()) out.insert(key);
    return out;
  }
  template <class Range>
  static std::set<std::string> named(const Range& range) {
    return {range.begin(), range.end()};
  }
  template <LaunchTable T>
  static std::set<std::string> keys_of() {
    std::set<std::string> out;
    for_each_setting<T>([&](const LaunchKey& key, auto) { out.emplace(key.key); });
    return out;
  }
  template <LaunchTable T>
  void has_table() const {
    EXPECT_EQ(keys(schema_.at("$defs").at(fmt::format("launch_{}", T::kTable)).at("properties")),
              keys_of<T>())
        << T::kTable;
  }
  // Every map is closed, so that a misspelt key is underlined.
  static void closed(const Json& node, const std::string& at) {
    if (node.is_object() && node.contains("properties")) {
      EXPECT_EQ(node.value("additionalProperties", true), false) << at;
    }
    for (const auto& [key, value] : node.items()) {
      if (value.is_structured() && key != "then") closed(value, at + "/" + key);
    }
  }
  Json schema_;
};

TEST_F(GridSchemaTest, KnowsEveryKeyTheReaderAcceptsAndNoOther) {
  const Json& top = schema_.at("properties");
  EXPECT_EQ(keys(top), named(kTopKeys));
  EXPECT_EQ(keys(top.at("measure").at("properties")), named(kMeasureKeys));
  EXPECT_EQ(keys(top.at("limits").at("properties")), named(kLimitKeys));
  EXPECT_EQ(keys(top.at("strategy").at("anyOf").at(1).at("properties")), named(kStrategyKeys));
  const Json& launch = top.at("launch").at("properties");
  std::set<std::string> launchers;
  for_each_launcher([&](std::string_view launcher, auto member) {
    const std::string name = *launchers.emplace(launcher).first;
    using Table = typename std::remove_reference_t<decltype(LaunchSettings().*member)>::value_type;
    EXPECT_EQ(keys(launch.at(name).at("properties")), keys_of<Table>()) << name;
  });
  EXPECT_EQ(keys(launch), launchers);
  has_table<SshHostSettings>(), has_table<SlurmHardware>(), has_table<SlurmHead>(),
      has_table<SlurmContainer>();
  std::set<std::string> model;
  for (const Json& form : schema_.at("$defs").at("model").at("anyOf")) {
    if (form.contains("properties")) model.merge(keys(form.at("properties")));
  }
  EXPECT_EQ(model, named(kModelKeys));
  closed(schema_, "");
}

TEST_F(GridSchemaTest, KnowsEveryAxisWithItsValues) {
  const Scope scope;
  for (const char* form : {"one", "many"}) {
    EXPECT_EQ(keys(schema_.at("$defs").at(form).at("properties")), named(scope.axis_names())) << form;
  }
  for (const auto& [key, axis] : schema_.at("$defs").at("one").at("properties").items()) {
    const AxisDomain* domain = axis_domain(key);
    if (domain == nullptr) continue;
    if (!domain->words.empty()) {
      EXPECT_EQ(axis.at("enum").get<std::set<std::string>>(), named(domain->words)) << key;
    } else {
      const Json& number = axis.contains("anyOf") ? axis.at("anyOf").at(0) : axis;  // or `auto`
      EXPECT_EQ(number.at("minimum"), domain->min) << key;
      EXPECT_EQ(number.at("maximum"), domain->max) << key;
    }
  }
  std::set<std::string> hardware;
  for (const auto& h : shape::all_hardware()) hardware.insert(h.name);
  EXPECT_EQ(schema_.at("$defs")
                .at("one")
                .at("properties")
                .at("hardware")
                .at("anyOf")
                .at(0)
                .at("enum")
                .get<std::set<std::string>>(),
            hardware);
  EXPECT_EQ(keys(schema_.at("properties")
                     .at("launch")
                     .at("properties")
                     .at("slurm")
                     .at("properties")
                     .at("hardware")
                     .at("properties")),
            hardware);
}

// A number or text axis with any() is caught here, and a default outside of its domain.
TEST_F(GridSchemaTest, EveryAxisHasADomainThatHoldsItsDefault) {
  Trial trial;
  for_each_axis(trial, [](const FieldInfo& info, const auto& default_value, auto&) {
    const AxisDomain* domain = axis_domain(info.key);
    static const std::set<std::string_view> texts = {"hardware", "program", "lengths", "env", "stage_layers"};
    const bool text = texts.contains(info.key);
    ASSERT_EQ(domain == nullptr, text || info.type == "flag") << info.key;
    using T = std::remove_cvref_t<decltype(default_value)>;
    if constexpr (AxisChoice<T>) {
      EXPECT_THAT(domain->words, ::testing::Contains(to_string(default_value))) << info.key;
    } else if constexpr (!std::is_same_v<T, std::string>) {
      if (!domain) return;
      const std::optional<i64> number = default_value;
      EXPECT_TRUE(!number || (*number >= domain->min && *number <= domain->max)) << info.key;
    }
  });
}

}  // namespace
}  // namespace sweep::grid

// Configuration files for trainers: values keep their types when PyYAML, which knows YAML 1.1, reads them.
#include "orchestrator/grid/config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sweep::grid {
namespace {

ConfigTree tree_of(const std::string& yaml) {
  const auto document = Document::parse(yaml, "c.yaml");
  EXPECT_TRUE(document) << document.error().message;
  return config_tree(document->root());
}

std::string yaml_of(const ConfigTree& value) {
  return config_template({{"x", value}}, ConfigFormat::kYaml);
}

TEST(ConfigText, TextThatYaml11WouldReadAsSomethingElseIsInQuotes) {
  for (const char* text :
       {"no", "Yes", "ON",    "off",  "y",          "True", "FALSE", "Null", "~", "010", ".5",
        "5.", "+1",  "1_000", "0x10", "2024-01-01", "1e5",  "=",     "<<",   "-", "?"})
    EXPECT_EQ(yaml_of(text), "x: \"" + std::string(text) + "\"\n") << text;
  for (const char* text :
       {"adamw", "bf16", "none", "yesterday", "a-b", "nO", "llama3-8b", "path/to.file", "1f1b", "7B", "elu"})
    EXPECT_EQ(yaml_of(text), "x: " + std::string(text) + "\n") << text;
}

TEST(ConfigText, QuotedScalarsOfAFileStayText) {
  const auto tree = tree_of("a: 'no'\nb: \"010\"\nc: '.5'\nd: 'true'\n");
  EXPECT_EQ(tree, (ConfigTree{{"a", "no"}, {"b", "010"}, {"c", ".5"}, {"d", "true"}}));
  EXPECT_EQ(tree_of(config_template(tree, ConfigFormat::kYaml)), tree);
}

TEST(ConfigText, UnquotedScalarsOfAFileAreWhatPyYamlReadsButDatesAndExponents) {
  const auto tree = tree_of(
      "x: [True, FALSE, Null, ~, yes, Off, .5, 5., +3, 1_000, -1.5, 1e-5, 7B, 1.2.3, _1, nO, .inf, 0x1F, "
      "0b11, 0777, 08, 0x, "
      "2024-01-01]\n");
  const ConfigTree values{true,   false, nullptr, nullptr, true, false,   0.5,         5.0,
                          3,      1000,  -1.5,    1e-5,    "7B", "1.2.3", "_1",        "nO",
                          ".inf", 31,    3,       511,     "08", "0x",    "2024-01-01"};
  const ConfigTree expected{{"x", values}};
  EXPECT_EQ(tree, expected);
  EXPECT_EQ(tree_of(config_template(tree, ConfigFormat::kYaml)), expected);
}

TEST(ConfigText, AValueThatARowGivesMayBeWrittenAsPythonDoes) {
  EXPECT_EQ(config_value("True"), true);
  EXPECT_EQ(config_value("FALSE"), false);
  EXPECT_EQ(config_value("Null"), nullptr);
  EXPECT_EQ(config_value("~"), nullptr);
  EXPECT_EQ(config_value("no"), "no") << "a choice of many programs";
}

}  // namespace
}  // namespace sweep::grid

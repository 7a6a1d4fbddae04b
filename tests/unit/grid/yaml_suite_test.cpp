// The whole yaml-test-suite (tests/unit/grid/yaml_suite): what it marks invalid is refused with its place,
// what lies in the subset of grid files is read as its events say, and the rest is refused as what has no use
// here.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "orchestrator/grid/yaml.h"

namespace sweep::grid {
namespace {

using Json = nlohmann::json;

// A tree as JSON: lists as arrays, maps as arrays of pairs behind "map", scalars as ["plain" | "text", value].
Json dump_of(const Node& node) {
  if (node.is_list()) {
    Json items = {"list"};
    for (const NodePtr& item : node.items) items.push_back(dump_of(*item));
    return items;
  }
  if (node.is_map()) {
    Json pairs = {"map"};
    for (const Entry& entry : node.entries) pairs.push_back({entry.key, dump_of(*entry.value)});
    return pairs;
  }
  return {node.quoted ? "text" : "plain", node.text};
}

std::string unescaped(const std::string& text) {
  static const std::map<char, char> kEscapes{
      {'n', '\n'}, {'t', '\t'}, {'\\', '\\'}, {'r', '\r'}, {'b', '\b'}};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
    } else {
      out += kEscapes.at(text[++i]);
    }
  }
  return out;
}

// The events of one case: the tree they build, and what in them a grid file does not use.
struct Events {
  explicit Events(const std::string& text) : lines(text) {
    std::string line;
    while (std::getline(lines, line)) take(line);
  }
  void take(std::string line) {
    if (line.starts_with("+DOC")) ++documents;
    if (line.find(" <") != std::string::npos && line.find(" <") < line.find(" :")) outside = true;  // a tag
    if (line[0] == '+' && (line.starts_with("+SEQ") || line.starts_with("+MAP"))) {
      open.push_back({line[1] == 'S' ? Json{"list"} : Json{"map"}, anchor_in(line), Json()});
    } else if (line.starts_with("-SEQ") || line.starts_with("-MAP")) {
      Level level = std::move(open.back());
      open.pop_back();
      add(level.value, level.anchor, true, false);
    } else if (line.starts_with("=ALI")) {
      add(anchors[line.substr(6)], "", false, true);
    } else if (line.starts_with("=VAL")) {
      scalar(line);
    }
  }
  static std::string anchor_in(const std::string& line) {
    std::smatch found;
    return std::regex_search(line, found, std::regex(R"(^\S+ (?:\[\] |\{\} )?&(\S+))")) ? found[1].str() : "";
  }
  void scalar(const std::string& line) {
    static const std::regex kForm(R"(^=VAL (?:&\S+ )?(?:<[^>]*> ?)?([:"'|>])([^]*)$)");
    std::smatch found;
    ASSERT_TRUE(std::regex_match(line, found, kForm)) << line;
    add({found[1] == ":" ? "plain" : "text", unescaped(found[2])}, anchor_in(line), false, false);
  }
  void add(const Json& value, const std::string& anchor, bool collection, bool alias) {
    if (!anchor.empty()) anchors[anchor] = value;
    if (open.empty()) {
      root = value;
    } else if (open.back().value[0] == "list") {
      open.back().value.push_back(value);
    } else if (open.back().key.is_null()) {
      const bool empty = !collection && value[0] == "plain" && value[1] == "";
      outside = outside || collection || alias || empty;
      open.back().key = value.size() > 1 ? value[1] : Json("");  // an empty collection has no text
    } else {
      open.back().value.push_back({open.back().key, value});
      open.back().key = Json();
    }
  }

  struct Level {
    Json value;
    std::string anchor;
    Json key;
  };
  std::istringstream lines;
  std::vector<Level> open;
  std::map<std::string, Json> anchors;
  Json root;
  int documents = 0;
  bool outside = false;
};

Json suite() {
  std::ifstream in(SWEEP_SOURCE_DIR "/tests/unit/grid/yaml_suite/suite.json");
  return Json::parse(in);
}

std::string line_feeds(const std::string& text) {
  return std::regex_replace(text, std::regex("\r\n?"), "\n");
}

TEST(YamlSuite, WhatIsInvalidIsRefusedWithItsPlace) {
  int refused = 0;
  for (const Json& each : suite()) {
    if (!each.contains("error")) continue;
    const std::string text = line_feeds(each["yaml"]);
    const auto root = read_yaml(text);
    EXPECT_FALSE(root) << each["id"] << " " << each["name"] << "\n" << text;
    if (root) continue;
    ++refused;
    EXPECT_FALSE(root.error().message.empty()) << each["id"];
    EXPECT_LE(root.error().offset, text.size()) << each["id"];
  }
  EXPECT_EQ(refused, 94);
}

TEST(YamlSuite, TheSubsetIsReadAsItsEventsSayAndTheRestIsRefusedAsUnused) {
  static const std::regex kDirective("(^|\n)%"), kExplicitKey(R"((^|[\n\[{,-])[ \t]*(&\S+ )?\?[ \t\n])");
  int read = 0, unused = 0;
  for (const Json& each : suite()) {
    if (each.contains("error")) continue;
    const std::string text = line_feeds(each["yaml"]);
    const Events events(each["events"]);
    const bool outside = events.outside || events.documents > 1 || std::regex_search(text, kDirective) ||
                         std::regex_search(text, kExplicitKey);
    const auto root = read_yaml(text);
    if (outside && !root) {
      ++unused;
      EXPECT_EQ(root.error().kind, YamlProblem::Kind::kUnsupported)
          << each["id"] << " " << root.error().message << "\n"
          << text;
      continue;
    }
    EXPECT_TRUE(root) << each["id"] << " " << root.error().message << " at " << root.error().offset << "\n"
                      << text;
    if (!root) continue;
    ++read;
    EXPECT_EQ(*root ? dump_of(**root) : Json(), events.root) << each["id"] << "\n" << text;
  }
  EXPECT_EQ(read, 209);
  EXPECT_EQ(unused, 99);
}

}  // namespace
}  // namespace sweep::grid

// The whole yaml-test-suite (tests/unit/grid/yaml_suite) against the table of what is read and refused.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

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
  return {node.quoted ? "text" : "plain", node.kind == Node::Kind::kNull ? "" : node.text};
}

bool is_null(const std::string& text) {
  return text == "~" || text == "null" || text == "Null" || text == "NULL";
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

// The tree that the events of one case build: of its last document.
struct Events {
  explicit Events(const std::string& text) : lines(text) {
    std::string line;
    while (std::getline(lines, line)) take(line);
  }
  void take(std::string line) {
    if (line[0] == '+' && (line.starts_with("+SEQ") || line.starts_with("+MAP"))) {
      open.push_back({line[1] == 'S' ? Json{"list"} : Json{"map"}, anchor_in(line), Json()});
    } else if (line.starts_with("-SEQ") || line.starts_with("-MAP")) {
      Level level = std::move(open.back());
      open.pop_back();
      add(level.value, level.anchor);
    } else if (line.starts_with("=ALI")) {
      add(anchors[line.substr(6)], "");
    } else if (line.starts_with("=VAL")) {
      scalar(line);
    }
  }
  static std::string anchor_in(const std::string& line) {
    static const std::regex kAnchor(R"(^\S+ (?:\[\] |\{\} )?&(\S+))");
    if (line.find('&') == std::string::npos) return "";
    std::smatch found;
    return std::regex_search(line, found, kAnchor) ? found[1].str() : "";
  }
  void scalar(const std::string& line) {
    static const std::regex kForm(R"(^=VAL (?:&\S+ )?(?:<[^>]*> ?)?([:"'|>])([^]*)$)");
    std::smatch found;
    ASSERT_TRUE(std::regex_match(line, found, kForm)) << line;
    const bool plain = found[1] == ":";
    const std::string value = unescaped(found[2]);
    add({plain ? "plain" : "text", plain && is_null(value) ? "" : value}, anchor_in(line));
  }
  void add(const Json& value, const std::string& anchor) {
    if (!anchor.empty()) anchors[anchor] = value;
    if (open.empty()) {
      root = value;
    } else if (open.back().value[0] == "list") {
      open.back().value.push_back(value);
    } else if (open.back().key.is_null()) {
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
};

Json suite() {
  std::ifstream in(SWEEP_SOURCE_DIR "/tests/unit/grid/yaml_suite/suite.json");
  return Json::parse(in);
}

std::string line_feeds(const std::string& text) {
  static const std::regex kReturn("\r\n?");
  return text.find('\r') == std::string::npos ? text : std::regex_replace(text, kReturn, "\n");
}

// A reader's judgement of a case, in the words of answers.txt.
std::string judged(const Json& each, bool taken, const Json& root) {
  if (!taken) return "refused";
  if (each.contains("error")) return "taken";
  return root == Events(each["events"]).root ? "read" : "differs";
}

Json dump_of(const YAML::Node& node) {
  if (node.IsSequence()) {
    Json items = {"list"};
    for (const YAML::Node& item : node) items.push_back(dump_of(item));
    return items;
  }
  if (node.IsMap()) {
    Json pairs = {"map"};
    for (const auto& entry : node) {
      const Json key = dump_of(entry.first);
      pairs.push_back({key.size() > 1 ? key[1] : Json(""), dump_of(entry.second)});
    }
    return pairs;
  }
  return {node.Tag() == "!" ? "text" : "plain", node.IsNull() ? "" : node.Scalar()};
}

std::string judged_of_yaml_cpp(const Json& each, const std::string& text) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    return judged(each, true, documents.empty() ? Json() : dump_of(documents.back()));
  } catch (const YAML::Exception&) {
    return judged(each, false, Json());
  }
}

std::string judged_of_layer(const Json& each, const std::string& text) {
  const auto root = read_yaml(text);
  if (!root) {
    EXPECT_FALSE(root.error().message.empty()) << each["id"];
    EXPECT_LE(root.error().offset, text.size()) << each["id"];
  }
  return judged(each, root.has_value(), root && *root ? dump_of(**root) : Json());
}

TEST(YamlSuite, EachCaseIsReadAsTheTableSays) {
  std::ifstream in(SWEEP_SOURCE_DIR "/tests/unit/grid/yaml_suite/answers.txt");
  std::string row, id, valid, before, alone, layered;
  ASSERT_TRUE(std::getline(in, row)) << "the heading";
  int rows = 0;
  for (const Json& each : suite()) {
    ASSERT_TRUE(in >> id >> valid >> before >> alone >> layered) << each["id"];
    ASSERT_EQ(id, each["id"]);
    EXPECT_EQ(valid, each.contains("error") ? "invalid" : "valid") << id;
    const std::string text = line_feeds(each["yaml"]);
    EXPECT_EQ(judged_of_yaml_cpp(each, text), alone) << id << "\n" << text;
    EXPECT_EQ(judged_of_layer(each, text), layered) << id << "\n" << text;
    ++rows;
  }
  EXPECT_EQ(rows, 402);
}

}  // namespace
}  // namespace sweep::grid

// Tests of what yaml-cpp takes, drops or reads in its own way, and of the layer above it: most rows were
// found by a fuzzer that compared it with a reader by the specification.
#include "orchestrator/grid/yaml.h"

#include <gmock/gmock.h>

#include "grid_text.h"
#include "orchestrator/grid/document.h"

namespace sweep::grid {
namespace {

const Refused kRefused[] = {
    // A quote that is never closed: yaml-cpp ends it at the end of the file, or at the next quote.
    {"a: \"x\n", 1, 4, ErrorKind::kInvalidValue},
    {"a: \"x", 1, 4, ErrorKind::kInvalidValue},
    {"a: 'x\nb: 1\n", 2, 1, ErrorKind::kInvalidValue},
    {"a: \"x\nb: [c == \"y\"]\n", 2, 1, ErrorKind::kInvalidValue},
    {"a: [\"x, 2]\nb: 1\n", 2, 1, ErrorKind::kInvalidValue},
    // A bracket: at the end of the file yaml-cpp takes what is in it for keys.
    {"a: {b: 1, c:{ 10}\n", 1, 4, ErrorKind::kInvalidValue},
    {"a: [1,\n  [2\n", 2, 3, ErrorKind::kInvalidValue},
    {"[\n", 1, 1, ErrorKind::kInvalidValue},
    {"a: [1\nb: 2\n", 2, 1, ErrorKind::kInvalidValue},
    // Structure that is left out or added.
    {"a:\n  b: 1\nc\n", 3, 1, ErrorKind::kInvalidValue},
    {"a: 1\nb\n  c: [1]\n", 2, 1, ErrorKind::kInvalidValue},
    {"a: [1,, 2]\n", 1, 7, ErrorKind::kInvalidValue},
    {"a: [, 1]\n", 1, 5, ErrorKind::kInvalidValue},
    {"a: {, b: 1}\n", 1, 5, ErrorKind::kUnsupported},
    {"a: [1] 2\n", 1, 8, ErrorKind::kInvalidValue},
    {"a: [1]#c\n", 1, 7, ErrorKind::kInvalidValue},
    {"a: \"x\"#c\n", 1, 7, ErrorKind::kInvalidValue},
    {"a: |#c\n  x\n", 1, 5, ErrorKind::kInvalidValue},
    {"a:\n&b\nc: 1\n", 2, 1, ErrorKind::kInvalidValue},
    {"a:\n&b\n- 1\n", 2, 1, ErrorKind::kInvalidValue},
    {"a:\n\"x\"\n", 2, 1, ErrorKind::kInvalidValue},
    {"a: 1\n... b: 2\n", 2, 5, ErrorKind::kUnsupported},
    {"a: 1\n...\nb: 2\n", 3, 1, ErrorKind::kUnsupported},
    {"\xEF\xBB\xBF\xEF\xBB\xBF"
     "a: 1\n",
     1, 1, ErrorKind::kInvalidValue},
    // Lines of a list or a text that are indented too little.
    {"a:\n  b: [1,\n  2]\n", 3, 3, ErrorKind::kInvalidValue},
    {"a:\n  b: \"x\n  y\"\n", 3, 3, ErrorKind::kInvalidValue},
    {"a: 1\n\t\nb: 2\n", 2, 1, ErrorKind::kInvalidValue},
    // Bytes that are not UTF-8, and an escape that YAML does not know.
    {"a: \"x\\_y\"\n", 1, 6, ErrorKind::kInvalidValue},
    {"a: \"x\\Ny\"\n", 1, 6, ErrorKind::kInvalidValue},
    {"a: \"x\\'y\"\n", 1, 6, ErrorKind::kInvalidValue},
    // Blank lines before the closing quote become one.
    {"a: 'x\n\n\n  '\n", 1, 6, ErrorKind::kInvalidValue},
    // A '?' within brackets begins a key.
    {"a: [b ? c : d]\n", 1, 7, ErrorKind::kInvalidValue},
    {"a: [why?]\n", 1, 8, ErrorKind::kInvalidValue},
    {"a: [? b : c]\n", 1, 5, ErrorKind::kUnsupported},
    {"a: !t b\n", 1, 4, ErrorKind::kUnsupported},
    {"a: *b\n", 1, 4, ErrorKind::kInvalidValue},
    {"a: &b [1, *b]\n", 1, 11, ErrorKind::kInvalidValue},
};

// "{key: value}", a quoted text as "value" and nothing as ~.
std::string shown(const Node& node) {
  std::string out;
  if (node.kind == Node::Kind::kNull) return "~";
  if (node.is_scalar()) return node.quoted ? '"' + node.text + '"' : node.text;
  for (const NodePtr& item : node.items) out += (out.empty() ? "" : ", ") + shown(*item);
  for (const Entry& entry : node.entries)
    out += (out.empty() ? "" : ", ") + entry.key + ": " + shown(*entry.value);
  return node.is_list() ? "[" + out + "]" : "{" + out + "}";
}

std::string read(const std::string& text) {
  const auto document = Document::parse(text, "g.yaml");
  return document ? shown(document->root()) : document.error().message;
}

TEST(GridYaml, WhatYamlCppTakesOrMisplacesIsRefusedWhereItStands) {
  for (const Refused& row : kRefused) {
    const auto document = Document::parse(row.text, "g.yaml");
    ASSERT_FALSE(document) << row.text << shown(document->root());
    EXPECT_THAT(document.error(), row.error()) << row.text;
  }
}

TEST(GridYaml, WhatIsLeftIsReadAsItStands) {
  const std::pair<std::string, std::string> rows[] = {
      {"a:\n  b:\n  c: 1\n", "{a: {b: ~, c: 1}}"},
      {"  a:\n  b: x\n", "{a: ~, b: x}"},
      {"a:\n- 1\n-\n- - 2\n  - b: ~\n    c: null\n", "{a: [1, ~, [2, {b: ~, c: ~}]]}"},
      {"a:\nnull: 1\n", "{a: ~, null: 1}"},
      {"a: {b, c: , null: d, e: f}\n", "{a: {b: ~, c: ~, null: d, e: f}}"},
      {"a: [b: 1, {c: 2}, \"d\": 3, [e]]\n", "{a: [{b: 1}, {c: 2}, {d: 3}, [e]]}"},
      {"a: &x {b: \"8\"}\nc: *x\n&y d: &z e\nf: [*y, *z]\n",
       "{a: {b: \"8\"}, c: {b: \"8\"}, d: e, f: [d, e]}"},
      {"a: &x\n  b: &x c\nd: *x\n", "{a: {b: c}, d: c}"},  // the last anchor of that name before it
      {"a: &x\n  b: 1\nc: &y\n- *x\n", "{a: {b: 1}, c: [{b: 1}]}"},
      {"a: b\n  c\n\n  d # e\nf: 'it''s\n  g'\n", "{a: b c\nd, f: \"it's g\"}"},
      {"a: \"x \\\n  y\\n\\x41\\u00e9 \\\" \\t\"\n", "{a: \"x y\nA\u00e9 \" \t\"}"},
      {"a: |\n  x\n   y\n\n  z\nb: >-\n  u\n  v\n\n  w", "{a: \"x\n y\n\nz\n\", b: \"u v\nw\"}"},
      {"a: |\n  the last line needs no end", "{a: \"the last line needs no end\n\"}"},
      {"a: [\n  1, # one\n  2,\n  ]\n", "{a: [1, 2]}"},
      {"# c\n---\na: x#y\n...\n# d\n", "{a: x#y}"},
      {"a: [-, -1]\nb: http://x?y=z\n", "{a: [-, -1], b: http://x?y=z}"},
  };
  for (const auto& [text, tree] : rows) EXPECT_EQ(read(text), tree) << text;
}

// In time that grows with the file: yaml-cpp looks ahead for the end of a key.
TEST(GridYaml, AQuarterOfAMebibyteOfAnySignIsRefused) {
  for (const std::string part :
       {"[", "{", "- ", "? ", ": ", "[a,", "{a: ", "&a ", "*a ", "!a", "\"a", "'", "[[a]: b,", "a\n"}) {
    std::string text;
    while (text.size() + part.size() <= kMaxFileBytes / 4) text += part;
    EXPECT_FALSE(Document::parse(text, "g.yaml")) << part;
  }
}

}  // namespace
}  // namespace sweep::grid

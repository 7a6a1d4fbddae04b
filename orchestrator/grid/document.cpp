#include "orchestrator/grid/document.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "orchestrator/grid/yaml.h"

namespace sweep::grid {
namespace {

// Byte of the first thing that is not UTF-8 or that YAML does not allow in a text (YAML 1.2.2, 5.1: control
// characters and noncharacters); npos: none.
std::size_t first_bad_byte(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const CodePoint c = decode_utf8(s, i);
    const bool blank = c.code == '\t' || c.code == '\n' || c.code == '\r' || c.code == 0x85;
    const bool control = (c.code < 0x20 || (c.code >= 0x7F && c.code < 0xA0)) && !blank;
    if (c.length == 0 || control || c.code == 0xFFFE || c.code == 0xFFFF) return i;
    i += c.length;
  }
  return std::string_view::npos;
}

// Says what is wrong with the byte, and the way out.
std::string why_bad(unsigned char byte) {
  if (byte == 0) return "a NUL byte; a grid file is text (was it saved as UTF-16?)";
  if (byte == 0x1B) return "an ESC byte (0x1b); write \"\\e\" in double quotes, or remove it";
  if (byte < 0x20 || byte == 0x7F)
    return fmt::format("the control character 0x{0:02x}; write \"\\x{0:02x}\" in double quotes, or remove it",
                       byte);
  if (byte == 0xC2 || byte == 0xEF)
    return fmt::format("a control character of Unicode, or a broken one, at byte 0x{:02x}; remove it", byte);
  return fmt::format("byte 0x{:02x} is not UTF-8 text; save the file as UTF-8", byte);
}

// "\r\n" and a lone "\r" are line breaks too.
void use_line_feeds(std::string& text) {
  std::size_t to = 0;
  for (std::size_t from = 0; from < text.size(); ++from) {
    if (text[from] == '\r' && from + 1 < text.size() && text[from + 1] == '\n') continue;
    text[to++] = text[from] == '\r' ? '\n' : text[from];
  }
  text.resize(to);
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// First byte of a scalar's own text: behind the header of a block scalar.
std::size_t content_start(std::string_view text, std::size_t at) {
  if (at < text.size() && (text[at] == '|' || text[at] == '>'))
    return std::min(text.find('\n', at), text.size());
  return at;
}

}  // namespace

const Entry* Node::entry(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const Node* Node::find(std::string_view key) const {
  const Entry* found = entry(key);
  return found == nullptr ? nullptr : found->value.get();
}

std::string_view Node::kind_name() const {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kScalar:
      return "a single value";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
  }
  return "";
}

tl::unexpected<Error> Document::refuse(Place at, Fault fault, std::string_view message) const {
  return tl::unexpected(Error{fmt::format("{}:{}:{}: {}", shown_as_, at.line, at.column, message), fault.kind,
                              std::string(fault.subject), shown_as_, at.line, at.column});
}

Place Document::place_of(std::size_t offset) const {
  Place place;
  for (std::size_t i = 0; i < offset && i < text_.size(); ++i) {
    place.column++;
    if (text_[i] == '\n') place = {place.line + 1, 1};
  }
  return place;
}

// Walks value and file side by side; blanks of the value stand for any run of blanks (folding), '' and \" for
// one quote.
Place Document::place_in(const Node& scalar, std::size_t index) const {
  std::size_t at = content_start(text_, scalar.offset);
  char quote = 0;
  if (at < text_.size() && scalar.quoted && (text_[at] == '\'' || text_[at] == '"')) quote = text_[at++];
  const auto skip_blanks = [&] {
    while (at < text_.size() && is_space(text_[at])) ++at;
  };
  for (std::size_t i = 0;; ++i) {
    const bool done = i >= index || i >= scalar.text.size();
    const bool blank = i < scalar.text.size() && is_space(scalar.text[i]);
    if (!blank && i < scalar.text.size()) skip_blanks();
    if (done) return place_of(at);
    if (blank) {
      if (at < text_.size() && is_space(text_[at])) ++at;
      continue;
    }
    if (quote == '"' && at < text_.size() && text_[at] == '\\') ++at;
    if (quote == '\'' && scalar.text[i] == '\'') ++at;
    if (at >= text_.size() || text_[at] != scalar.text[i]) return scalar.place;
    ++at;
  }
}

Expected<Document> Document::parse(std::string text, std::string shown_as) {
  Document document;
  document.shown_as_ = std::move(shown_as);
  if (text.size() > kMaxFileBytes) {
    return document.refuse({}, {ErrorKind::kInvalidValue, ""},
                           "the file is {} bytes; a grid file has at most {}", text.size(), kMaxFileBytes);
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  use_line_feeds(text);
  document.text_ = std::move(text);
  if (const auto bad = first_bad_byte(document.text_); bad != std::string_view::npos) {
    return document.refuse(document.place_of(bad), {ErrorKind::kInvalidValue, ""},
                           why_bad(static_cast<unsigned char>(document.text_[bad])));
  }
  auto root = read_yaml(document.text_);
  if (!root) {
    const YamlProblem& problem = root.error();
    const bool invalid = problem.kind == YamlProblem::Kind::kInvalid;
    return document.refuse(document.place_of(problem.offset), {problem.error, problem.subject}, "{}{}",
                           invalid ? "not valid YAML: " : "", problem.message);
  }
  document.root_ = std::move(*root);
  if (!document.root_ || !document.root_->is_map()) {
    return document.refuse({}, {ErrorKind::kInvalidValue, ""},
                           "a grid file is a map of keys (name, model, grid, ...), this one holds {}",
                           document.root_ ? document.root_->kind_name() : "nothing");
  }
  return document;
}

}  // namespace sweep::grid

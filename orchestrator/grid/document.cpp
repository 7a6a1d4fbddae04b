#include "orchestrator/grid/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <optional>
#include <sstream>

namespace sweep::grid {
namespace {

struct Refused {  // leaves yaml-cpp's parser; never leaves this file
  Place at;
  std::string message;
};

Place place_from(const YAML::Mark& mark) {
  return mark.is_null() ? Place{} : Place{mark.line + 1, mark.column + 1};
}

// Builds the tree from yaml-cpp's events: its own node tree has no bound on depth and silently keeps repeated
// keys.
class Builder : public YAML::EventHandler {
 public:
  NodePtr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) throw Refused{place_from(mark), "a second document starts here; a grid file holds one"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(leaf(Node::Kind::kNull, mark), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw Refused{place_from(mark), "an alias stands inside its own anchor; spell the values out"};
    }
    attach(found->second, place_from(mark));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(tag, mark);
    auto node = leaf(Node::Kind::kScalar, mark);
    node->text = value;
    node->quoted = tag == "!";
    add(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_tag(tag, mark);
    open(Node::Kind::kList, mark, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_tag(tag, mark);
    open(Node::Kind::kMap, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    std::shared_ptr<Node> node;
    YAML::anchor_t anchor;
    std::optional<Entry> pending;  // a key waiting for its value
  };

  static void refuse_tag(const std::string& tag, const YAML::Mark& mark) {
    if (tag == "?" || tag == "!" || tag.empty()) return;  // plain, quoted
    throw Refused{place_from(mark), fmt::format("the tag '{}' is not used in grid files; remove it", tag)};
  }
  static std::shared_ptr<Node> leaf(Node::Kind kind, const YAML::Mark& mark) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->place = place_from(mark);
    node->offset = mark.is_null() ? 0 : static_cast<std::size_t>(mark.pos);
    return node;
  }
  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (frames_.size() >= kMaxNesting) {
      throw Refused{
          place_from(mark),
          fmt::format("nested deeper than {} levels; a grid file needs fewer than 10", kMaxNesting)};
    }
    frames_.push_back({leaf(kind, mark), anchor, std::nullopt});
  }
  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    add(std::move(frame.node), frame.anchor);
  }
  void add(std::shared_ptr<Node> node, YAML::anchor_t anchor) {
    const Place at = node->place;
    NodePtr made = std::move(node);
    if (anchor != 0) anchors_[anchor] = made;
    attach(std::move(made), at);
  }
  void attach(NodePtr node, Place at) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    frame.node->weight += node->weight;  // each is at most kMaxYamlNodes: no overflow
    if (frame.node->weight > kMaxYamlNodes) {
      throw Refused{
          at, fmt::format("more than {} values once aliases are spelt out; use ranges, or fewer aliases",
                          kMaxYamlNodes)};
    }
    if (frame.node->is_list()) {
      frame.node->items.push_back(std::move(node));
    } else if (!frame.pending) {
      set_key(frame, *node, at);
    } else {
      frame.pending->value = std::move(node);
      frame.node->entries.push_back(std::move(*frame.pending));
      frame.pending.reset();
    }
  }
  void set_key(Frame& frame, const Node& key, Place at) {
    if (!key.is_scalar()) throw Refused{at, fmt::format("a key must be a word, not {}", key.kind_name())};
    if (const auto [first, fresh] = keys_[frame.node.get()].emplace(key.text, at); !fresh) {
      throw Refused{at, fmt::format("the key '{}' is already given at line {}; keep one of them", key.text,
                                    first->second.line)};
    }
    frame.pending = Entry{key.text, at, nullptr};
  }

  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, NodePtr> anchors_;
  std::map<const Node*, std::map<std::string, Place>> keys_;
  NodePtr root_;
};

// Byte of the first thing that is not UTF-8 or is a control character; npos: none (RFC 3629, table 3-7 of
// Unicode).
std::size_t first_bad_byte(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto byte = [&](std::size_t k) { return k < s.size() ? static_cast<unsigned char>(s[k]) : 0u; };
    const auto tail = [&](std::size_t k) { return (byte(k) & 0xC0u) == 0x80u; };
    const unsigned c = byte(i), d = byte(i + 1);
    if (c < 0x80) {
      if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) return i;
      i += 1;
    } else if (c >= 0xC2 && c <= 0xDF && tail(i + 1)) {
      i += 2;
    } else if (c >= 0xE0 && c <= 0xEF && tail(i + 1) && tail(i + 2) && !(c == 0xE0 && d < 0xA0) &&
               !(c == 0xED && d >= 0xA0)) {
      i += 3;
    } else if (c >= 0xF0 && c <= 0xF4 && tail(i + 1) && tail(i + 2) && tail(i + 3) &&
               !(c == 0xF0 && d < 0x90) && !(c == 0xF4 && d >= 0x90)) {
      i += 4;
    } else {
      return i;
    }
  }
  return std::string_view::npos;
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// First byte of a scalar's own text: behind its anchor, and behind its quote or block header.
std::size_t content_start(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == '&' || text[at] == '!')) {
    while (at < text.size() && !is_space(text[at])) ++at;
    while (at < text.size() && is_space(text[at])) ++at;
  }
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

Error Document::error(Place at, std::string_view message) const {
  return Error{fmt::format("{}:{}:{}: {}", shown_as_, at.line, at.column, message)};
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
    return tl::unexpected(document.error(
        {}, fmt::format("the file is {} bytes; a grid file has at most {}", text.size(), kMaxFileBytes)));
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  document.text_ = std::move(text);
  if (const auto bad = first_bad_byte(document.text_); bad != std::string_view::npos) {
    return tl::unexpected(document.error(
        document.place_of(bad), fmt::format("byte 0x{:02x} is not UTF-8 text; save the file as UTF-8",
                                            static_cast<unsigned char>(document.text_[bad]))));
  }
  try {
    std::istringstream stream(document.text_);
    YAML::Parser parser(stream);
    Builder builder;
    while (parser.HandleNextDocument(builder)) {
    }
    document.root_ = builder.root();
  } catch (const Refused& refused) {
    return tl::unexpected(document.error(refused.at, refused.message));
  } catch (const YAML::Exception& e) {
    return tl::unexpected(document.error(place_from(e.mark), fmt::format("not valid YAML: {}", e.msg)));
  }
  if (!document.root_ || !document.root_->is_map()) {
    return tl::unexpected(document.error(
        {}, fmt::format("a grid file is a map of keys (name, model, grid, ...), this one holds {}",
                        document.root_ ? document.root_->kind_name() : "nothing")));
  }
  return document;
}

}  // namespace sweep::grid

// Document: a YAML file as a bounded tree that knows where everything stands. Owns the text; refuses what is
// too big, too deep, not UTF-8, tagged, repeated (keys) or exploding (aliases), so that readers above never
// meet it.
#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace sweep::grid {

using Status = tl::expected<void, Error>;

// The error in a grid file, a recipe or a site profile: a kind and the key, axis or value that is wrong.
struct Fault {
  Fault(ErrorKind a_kind, std::string_view a_subject) : kind(a_kind), subject(a_subject) {}
  // The kind and the subject of another error.
  Fault(const Error& error) : kind(error.kind), subject(error.subject) {}
  ErrorKind kind;
  std::string_view subject;
};

inline constexpr std::size_t kMaxFileBytes = 1u << 20;
inline constexpr int kMaxNesting = 32;
inline constexpr std::uint64_t kMaxYamlNodes = 200'000;  // nodes with every alias spelt out

struct Place {
  int line = 1, column = 1;  // counted from 1; columns in bytes
};

struct Node;
using NodePtr = std::shared_ptr<const Node>;

struct Entry {
  std::string key;
  Place place;
  NodePtr value;
};

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string text;     // the text of a scalar
  bool quoted = false;  // a quoted or block scalar is text, never a number
  Place place;
  std::size_t offset = 0;      // byte of the text where it starts
  std::vector<NodePtr> items;  // the items of a list
  std::vector<Entry> entries;  // the entries of a map, in file order, keys distinct
  std::uint64_t weight = 1;    // nodes in it, aliases spelt out

  bool is_map() const { return kind == Kind::kMap; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  const Entry* entry(std::string_view key) const;  // nullptr: no such key
  const Node* find(std::string_view key) const;
  std::string_view kind_name() const;  // "a list", "a map", ... for messages
};

class Document {
 public:
  static Expected<Document> parse(std::string text, std::string shown_as);

  const Node& root() const { return *root_; }
  const std::string& text() const { return text_; }
  // "file:line:column: message"
  tl::unexpected<Error> refuse(Place at, Fault fault, std::string_view message) const;
  template <class First, class... Rest>
  tl::unexpected<Error> refuse(Place at, Fault fault, fmt::format_string<First, Rest...> message,
                               First&& first, Rest&&... rest) const {
    return refuse(at, fault, fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  // The same error, with its place in the file.
  tl::unexpected<Error> refuse(Place at, const Error& why) const { return refuse(at, why, why.message); }
  // The place in the file of byte `index` of a scalar's value (quotes, escapes and folded lines counted).
  Place place_in(const Node& scalar, std::size_t index) const;

 private:
  Place place_of(std::size_t offset) const;

  std::string shown_as_, text_;
  NodePtr root_;
};

}  // namespace sweep::grid

#include "base/template.h"

#include <algorithm>

#include "base/expected.h"

namespace sweep::templates {
namespace {

bool is_word(std::string_view name) {
  const auto of_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::ranges::all_of(name, of_word);
}

// Reports the parts of a template in order. Listener: plain(text), brace('{' or '}') for a doubled one,
// name(text) -> Expected<void>.
template <class Listener>
Expected<void> walk(std::string_view text, Listener&& listener) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = text.find_first_of("{}", at);
    listener.plain(text.substr(at, next - at));
    if (next == std::string_view::npos) break;
    const char brace = text[next];
    if (next + 1 < text.size() && text[next + 1] == brace) {
      listener.brace(brace);
      at = next + 2;
      continue;
    }
    const std::size_t end = brace == '{' ? text.find('}', next) : std::string_view::npos;
    const std::string_view name = end == std::string_view::npos ? "" : text.substr(next + 1, end - next - 1);
    if (!is_word(name))
      return fail(ErrorKind::kUnknownName, text.substr(next, 40),
                  "'" + std::string(text.substr(next, 40)) +
                      "' is no name in braces; a brace that is meant is written twice");
    SWEEP_TRY(listener.name(name));
    at = end + 1;
  }
  return {};
}

std::string with_doubled_braces(const std::string& value) {
  std::string out;
  for (const char c : value) out.append(c == '{' || c == '}' ? 2 : 1, c);
  return out;
}

struct Names {
  std::vector<std::string> out;
  void plain(std::string_view) {}
  void brace(char) {}
  Expected<void> name(std::string_view name) {
    out.emplace_back(name);
    return {};
  }
};

struct Filled {
  const ValueOf& value_of;
  std::string out;
  void plain(std::string_view text) { out += text; }
  void brace(char c) { out.append(2, c); }
  Expected<void> name(std::string_view name) {
    const auto value = value_of(name);
    out += value ? with_doubled_braces(*value) : "{" + std::string(name) + "}";
    return {};
  }
};

struct Finished {
  const ValueOf& value_of;
  std::string out;
  void plain(std::string_view text) { out += text; }
  void brace(char c) { out += c; }
  Expected<void> name(std::string_view name) {
    const auto value = value_of(name);
    if (!value)
      return fail(ErrorKind::kUnknownName, name, "there is no value for {" + std::string(name) + "}");
    out += *value;
    return {};
  }
};

}  // namespace

Expected<std::vector<std::string>> names_in(std::string_view text) {
  Names names;
  SWEEP_TRY(walk(text, names));
  return std::move(names.out);
}

Expected<std::string> fill(std::string_view text, const ValueOf& value_of) {
  Filled filled{value_of, {}};
  SWEEP_TRY(walk(text, filled));
  return std::move(filled.out);
}

Expected<std::string> finish(std::string_view text, const ValueOf& value_of) {
  Finished finished{value_of, {}};
  SWEEP_TRY(walk(text, finished));
  return std::move(finished.out);
}

}  // namespace sweep::templates

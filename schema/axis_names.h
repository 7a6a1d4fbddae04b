// The spellings of an axis and of its words: the current one, and the stored one that trial ids hash and that
// databases and spools hold. They differ where fields.def says that something was renamed.
#pragma once
#include <string_view>

namespace sweep {

struct RenamedAxis {
  std::string_view stored, key;
};
struct RenamedWord {
  std::string_view key, stored, word;
};
inline constexpr RenamedAxis kRenamedAxes[] = {
#define RENAMED_AXIS(before, key) {#before, #key},
#include "schema/fields.def"
#undef RENAMED_AXIS
};
inline constexpr RenamedWord kRenamedWords[] = {
#define RENAMED_WORD(key, before, word) {#key, before, word},
#include "schema/fields.def"
#undef RENAMED_WORD
};

constexpr std::string_view stored_key(std::string_view key) {
  for (const RenamedAxis& axis : kRenamedAxes)
    if (axis.key == key) return axis.stored;
  return key;
}
// The current key of a name in either spelling; a name that is no axis comes back unchanged.
constexpr std::string_view current_key(std::string_view name) {
  for (const RenamedAxis& axis : kRenamedAxes)
    if (axis.stored == name) return axis.key;
  return name;
}
// The key of both is the current one.
constexpr std::string_view stored_word(std::string_view key, std::string_view word) {
  for (const RenamedWord& renamed : kRenamedWords)
    if (renamed.key == key && renamed.word == word) return renamed.stored;
  return word;
}
constexpr std::string_view current_word(std::string_view key, std::string_view word) {
  for (const RenamedWord& renamed : kRenamedWords)
    if (renamed.key == key && renamed.stored == word) return renamed.word;
  return word;
}

}  // namespace sweep

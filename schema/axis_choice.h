// The enums of the axes that take one of a list of words (CHOICE of fields.def), and the one codec between
// word and value.
#pragma once
#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

// SWEEP_EACH(macro, (a, b), (c, d)) is macro(a, b) macro(c, d).
#define SWEEP_PARENTHESES ()
#define SWEEP_EXPAND(...) SWEEP_EXPAND_2(SWEEP_EXPAND_2(SWEEP_EXPAND_2(__VA_ARGS__)))
#define SWEEP_EXPAND_2(...) SWEEP_EXPAND_3(SWEEP_EXPAND_3(SWEEP_EXPAND_3(__VA_ARGS__)))
#define SWEEP_EXPAND_3(...) __VA_ARGS__
#define SWEEP_EACH(macro, ...) SWEEP_EXPAND(SWEEP_EACH_NEXT(macro, __VA_ARGS__))
#define SWEEP_EACH_NEXT(macro, item, ...) \
  macro item __VA_OPT__(SWEEP_EACH_AGAIN SWEEP_PARENTHESES(macro, __VA_ARGS__))
#define SWEEP_EACH_AGAIN() SWEEP_EACH_NEXT

namespace sweep {

#define AXIS(...)
#define SWEEP_ENUMERATOR(name, ...) name,
#define CHOICE(Enum, key, def, unit, title, sentence, ...) \
  enum class Enum : std::uint8_t { SWEEP_EACH(SWEEP_ENUMERATOR, __VA_ARGS__) };
#include "schema/fields.def"
#undef CHOICE
#undef AXIS
#undef SWEEP_ENUMERATOR

// The key of an enum's axis, its words in the order of the enumerators, and how many of them a grid
// may ask for.
template <class Enum>
struct ChoiceWords;
template <class T>
concept AxisChoice = requires {
  ChoiceWords<T>::kKey;
};

#define AXIS(...)
#define SWEEP_WORD(name, word, ...) std::string_view(word),
// NOLINTNEXTLINE(bugprone-macro-parentheses): terms of one sum
#define SWEEP_OPEN(name, word, ...) +1 __VA_OPT__(-1)
#define CHOICE(Enum, key, def, unit, title, sentence, ...)                                   \
  template <>                                                                                \
  struct ChoiceWords<Enum> {                                                                 \
    static constexpr std::string_view kKey = #key;                                           \
    static constexpr std::array kWords = {SWEEP_EACH(SWEEP_WORD, __VA_ARGS__)};              \
    static constexpr std::size_t kOpen = std::size_t{0 SWEEP_EACH(SWEEP_OPEN, __VA_ARGS__)}; \
  };
#include "schema/fields.def"
#undef CHOICE
#undef AXIS
#undef SWEEP_OPEN
#undef SWEEP_WORD

template <AxisChoice Enum>
constexpr std::string_view to_string(Enum value) {
  return ChoiceWords<Enum>::kWords[static_cast<std::size_t>(value)];
}
// Reads a word; nullopt: not a value of this axis.
template <AxisChoice Enum>
constexpr std::optional<Enum> choice_from(std::string_view word) {
  for (std::size_t i = 0; i < ChoiceWords<Enum>::kWords.size(); ++i)
    if (ChoiceWords<Enum>::kWords[i] == word) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace sweep

template <sweep::AxisChoice Enum>
struct fmt::formatter<Enum> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(Enum value, Context& context) const {
    return fmt::formatter<std::string_view>::format(sweep::to_string(value), context);
  }
};

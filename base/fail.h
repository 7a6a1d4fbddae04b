// fail() with the values of its message. Not for sources with LibTorch, whose headers bring another version of fmt.
#pragma once
#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "base/expected.h"

namespace sweep {

template <class First, class... Rest>
tl::unexpected<Error> fail(fmt::format_string<First, Rest...> message, First&& first, Rest&&... rest) {
  return fail(fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
}

template <class First, class... Rest>
tl::unexpected<Error> fail(ErrorKind kind, std::string_view subject,
                           fmt::format_string<First, Rest...> message, First&& first, Rest&&... rest) {
  return fail(kind, subject, fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
}

}  // namespace sweep

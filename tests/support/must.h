// must() gives the value of a call that has to succeed.
#pragma once
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace sweep {

// Takes an Expected or an optional. It throws if there is no value, which ends a test: what() has the place of the call.
template <class Result>
typename Result::value_type must(Result result, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
  if (!result) {
    std::string why = "there is no value";
    if constexpr (requires { result.error().message; }) why = result.error().message;
    throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + why);
  }
  if constexpr (!std::is_void_v<typename Result::value_type>) return *std::move(result);
}

}  // namespace sweep

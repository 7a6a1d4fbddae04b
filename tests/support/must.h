// must() gives the value of a call that has to succeed.
#pragma once
#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace sweep {

// Takes an Expected or an optional. It throws if there is no value, which ends a test: what() has the line of the call.
template <class Result>
typename Result::value_type must(Result result, std::source_location at = std::source_location::current()) {
  if (!result) {
    std::string why = "there is no value";
    if constexpr (requires { result.error().message; }) why = result.error().message;
    throw std::runtime_error(std::string(at.file_name()) + ":" + std::to_string(at.line()) + ": " + why);
  }
  if constexpr (!std::is_void_v<typename Result::value_type>) return *std::move(result);
}

}  // namespace sweep

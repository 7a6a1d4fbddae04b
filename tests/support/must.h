// must() gives the value of a call that has to succeed.
#pragma once
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace sweep {

// Takes an Expected or an optional. It throws if there is no value, which ends a test.
template <class Result>
typename Result::value_type must(Result result) {
  if constexpr (requires { result.error().message; }) {
    if (!result) throw std::runtime_error(result.error().message);
  }
  if (!result) throw std::runtime_error("there is no value");
  if constexpr (!std::is_void_v<typename Result::value_type>) return *std::move(result);
}

}  // namespace sweep

// Why ssh did not reach a host, read from its messages: one sentence with the way out. Pure text.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace sweep::launch {

enum class SshRefusal { kHostKeyChanged, kHostKeyUnknown, kLoginRefused, kNoWayThroughProxy, kOther };
// Finds the cause in the text that ssh printed.
SshRefusal ssh_refusal_of(std::string_view said);

// `host`: the words a person writes behind `ssh` to try the same (by_hand). nullopt: the cause is not one of
// those known.
std::optional<std::string> explain_ssh_failure(const std::string& host, std::string_view said);
// The same; if the cause is not known, the last line of ssh.
std::string why_ssh_failed(const std::string& host, std::string_view said);

}  // namespace sweep::launch

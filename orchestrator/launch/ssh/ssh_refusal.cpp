#include "orchestrator/launch/ssh/ssh_refusal.h"

#include <fmt/format.h>

#include "orchestrator/launch/commands.h"

namespace sweep::launch {
namespace {

bool says(std::string_view said, std::string_view what) {
  return said.find(what) != std::string_view::npos;
}

std::string_view line_with(std::string_view said, std::string_view what) {
  const auto at = said.find(what);
  if (at == std::string_view::npos) return {};
  return said.substr(at, said.find_first_of("\r\n", at) - at);
}

}  // namespace

SshRefusal ssh_refusal_of(std::string_view said) {
  if (says(said, "IDENTIFICATION HAS CHANGED")) return SshRefusal::kHostKeyChanged;
  if (says(said, "Host key verification failed") || says(said, "host key is known"))
    return SshRefusal::kHostKeyUnknown;
  if (says(said, "Permission denied")) return SshRefusal::kLoginRefused;
  // How ssh names the other end of a ProxyCommand.
  return says(said, "UNKNOWN port 65535") ? SshRefusal::kNoWayThroughProxy : SshRefusal::kOther;
}

std::optional<std::string> explain_ssh_failure(const std::string& host, std::string_view said) {
  switch (ssh_refusal_of(said)) {
    case SshRefusal::kHostKeyChanged: {
      const auto where = line_with(said, "Offending ");
      return fmt::format(
          "its host key is not the one that is known{}{}. If the host was set up anew, take the old key away "
          "(ssh-keygen -R, as `ssh {}` says) and log in once by hand; if not, another machine may answer "
          "there",
          where.empty() ? "" : ": ", where, host);
    }
    case SshRefusal::kHostKeyUnknown:
      return fmt::format(
          "its host key is not known: log in once by hand (`ssh {}`) and compare it, or have it added to "
          "known_hosts",
          host);
    case SshRefusal::kLoginRefused:
      return fmt::format(
          "no login without being asked ({}): `ssh -o BatchMode=yes {} true` must work; put a key into "
          "an ssh-agent or name it with IdentityFile",
          last_line(said), host);
    case SshRefusal::kNoWayThroughProxy:
      return fmt::format(
          "nothing came through the jump host or the proxy command that ssh's configuration names for it: "
          "`ssh -o BatchMode=yes {} true` says why",
          host);
    case SshRefusal::kOther:
      break;
  }
  return std::nullopt;
}

std::string why_ssh_failed(const std::string& host, std::string_view said) {
  if (auto known = explain_ssh_failure(host, said)) return *known;
  return said.empty() ? "ssh ended without a word" : last_line(said);
}

}  // namespace sweep::launch

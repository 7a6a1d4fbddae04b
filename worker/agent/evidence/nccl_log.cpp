#include "worker/agent/evidence/nccl_log.h"

#include <algorithm>
#include <charconv>

namespace sweep::agent {
namespace {

constexpr std::size_t kMostWarnings = 5, kMostNames = 32, kLongestName = 80;

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::string_view behind(std::string_view text, std::string_view mark) {
  const auto at = text.find(mark);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + mark.size());
}

std::string_view word(std::string_view text) {
  return text.substr(0, std::min(text.find_first_of(" \t\r"), std::min(text.size(), kLongestName)));
}

// The whole number that stands before `mark`, as in "2 coll channels".
i64 number_before(std::string_view text, std::string_view mark) {
  const auto end = text.find(mark);
  if (end == std::string_view::npos) return 0;
  auto begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  i64 value = 0;
  std::from_chars(text.data() + begin, text.data() + end, value);
  return value;
}

void add(std::set<std::string>& names, std::string name) {
  if (!name.empty() && names.size() < kMostNames) names.insert(std::move(name));
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    parts.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

// NET/IB/1/GDRDMA -> NET/IB/GDRDMA: which adapter it was is left out. P2P/IPC/read -> P2P/IPC.
std::string transport_of(std::string_view path) {
  const auto parts = parts_of(path);
  if (parts.size() < 2) return std::string(path);
  std::string name = std::string(parts[0]) + "/" + std::string(parts[1]);
  if (parts[0] == "NET" && std::find(parts.begin(), parts.end(), "GDRDMA") != parts.end()) name += "/GDRDMA";
  return name;
}

// Numbers of NCCL before 2.23 (nccl_common.h); later ones print the names.
std::string algorithm_name(std::string_view algorithm) {
  constexpr std::string_view kNames[] = {"TREE",          "RING", "COLLNET_DIRECT",
                                         "COLLNET_CHAIN", "NVLS", "NVLS_TREE"};
  if (algorithm.size() == 1 && algorithm[0] >= '0' && algorithm[0] <= '5')
    return std::string(kNames[algorithm[0] - '0']);
  return std::string(algorithm);
}
std::string protocol_name(std::string_view protocol) {
  constexpr std::string_view kNames[] = {"LL", "LL128", "SIMPLE"};
  if (protocol.size() == 1 && protocol[0] >= '0' && protocol[0] <= '2')
    return std::string(kNames[protocol[0] - '0']);
  return std::string(protocol);
}

// "AllReduce: 4096 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..7}", or without a name and by numbers.
void read_choice(NcclLog& out, std::string_view said) {
  std::string_view choice = behind(said, " Bytes -> Algo ");
  const std::string_view algorithm = word(choice), protocol = word(behind(choice, " proto "));
  if (algorithm.empty() || protocol.empty()) return;
  const auto colon = said.substr(0, std::min(kLongestName, said.size())).find(": ");
  const std::string function =
      colon == std::string_view::npos ? "" : std::string(said.substr(0, colon)) + " ";
  add(out.algorithms, function + algorithm_name(algorithm) + "/" + protocol_name(protocol));
}

void read_info(NcclLog& out, std::string_view said) {
  if (said.starts_with("Channel ") || said.starts_with("Ring ")) {
    if (const auto via = behind(said, " via "); !via.empty()) add(out.transports, transport_of(word(via)));
    return;
  }
  if (std::string_view rest = said; take(rest, "Using network "))
    out.network = std::string(rest.substr(0, std::min(rest.find('\r'), std::min(rest.size(), kLongestName))));
  if (said.find(" coll channels") != std::string_view::npos) {
    out.channels = std::max(out.channels, number_before(said, " coll channels"));
    out.nvls_channels = std::max(out.nvls_channels, number_before(said, " nvls channels"));
  }
  if (said.find("+ NVL[") != std::string_view::npos) out.nvlink = true;
  if (said.find(" Bytes -> Algo ") != std::string_view::npos) read_choice(out, said);
}

}  // namespace

bool is_empty(const NcclLog& log) {
  return log.network.empty() && log.transports.empty() && log.channels == 0 && log.warnings.empty();
}

NcclLog read_nccl_log(std::string_view text) {
  NcclLog out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (const auto said = behind(line, "NCCL INFO "); !said.empty()) {
      read_info(out, said);
    } else if (const auto warned = behind(line, "NCCL WARN "); !warned.empty()) {
      if (out.warnings.size() < kMostWarnings) out.warnings.emplace_back(warned.substr(0, 400));
    } else if (std::string_view rest = line; take(rest, "NCCL version ")) {
      out.version = std::string(word(rest.substr(0, rest.find('+'))));
    }
  }
  out.sockets = out.transports.contains("NET/Socket");
  out.gpu_direct =
      std::ranges::any_of(out.transports, [](const auto& name) { return name.ends_with("/GDRDMA"); });
  return out;
}

}  // namespace sweep::agent

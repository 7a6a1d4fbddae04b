#include "worker/agent/net/interface.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <cstdlib>
#include <sstream>
#include <vector>

#include "base/fail.h"

namespace sweep::agent {
namespace {

struct Found {
  Endpoint at;
  bool loopback = false, v4 = false;
};

// Addresses of interfaces that are up; IPv6 ones of link scope left out: they mean nothing elsewhere.
std::vector<Found> addresses() {
  std::vector<Found> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[NI_MAXHOST];
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(each->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    if (std::string(text).find('%') != std::string::npos) continue;
    out.push_back({{text, each->ifa_name}, (each->ifa_flags & IFF_LOOPBACK) != 0, family == AF_INET});
  }
  ::freeifaddrs(list);
  return out;
}

bool is_loopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1";
}

std::string ssh_server_address() {  // SSH_CONNECTION: client address, its port, our address, our port
  const char* connection = std::getenv("SSH_CONNECTION");
  std::istringstream words(connection == nullptr ? "" : connection);
  std::string client, port, server;
  words >> client >> port >> server;
  return server;
}

}  // namespace

std::string interface_of(const std::string& address) {
  std::string loopback;
  for (const Found& each : addresses()) {
    if (each.at.address == address) return each.at.interface;
    if (each.loopback && loopback.empty()) loopback = each.at.interface;
  }
  return is_loopback(address) ? loopback : std::string();  // all of 127/8 is the loopback's
}

Expected<Endpoint> choose_endpoint(const std::string& wanted) {
  const auto all = addresses();
  std::string names;
  for (const bool v4 : {true, false})
    for (const Found& each : all) {
      if (each.v4 == v4 && each.at.interface == wanted) return each.at;
      if (each.v4 == v4)
        names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", each.at.interface, each.at.address);
    }
  if (!wanted.empty()) {
    if (const auto name = interface_of(wanted); !name.empty()) return Endpoint{wanted, name};
    return fail("no interface '{}' that is up here; there are {}", wanted, names);
  }
  if (const auto address = ssh_server_address(); !address.empty())
    if (const auto name = interface_of(address); !name.empty()) return Endpoint{address, name};
  for (const bool v4 : {true, false})
    for (const Found& each : all)
      if (each.v4 == v4 && !each.loopback) return each.at;
  return Endpoint{"127.0.0.1", interface_of("127.0.0.1")};
}

}  // namespace sweep::agent

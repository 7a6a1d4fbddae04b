// The network address that an agent uses: the one it was told, or the one it can be reached at for sure.
#pragma once
#include <string>

#include "base/expected.h"

namespace sweep::agent {

struct Endpoint {
  std::string address, interface;
};

// `wanted`: an interface's name, an address of this machine, or empty: the address by which the launcher's
// ssh connection came in, else the first interface that is up and no loopback, else the loopback.
Expected<Endpoint> choose_endpoint(const std::string& wanted);
// The interface that has this address; empty: none.
std::string interface_of(const std::string& address);

}  // namespace sweep::agent

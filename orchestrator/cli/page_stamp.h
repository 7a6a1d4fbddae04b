// PageStamp: when a page is made, and by which version.
#pragma once
#include <string>

namespace sweep::cli {

struct PageStamp {
  std::string at, version;  // "2026-01-31T12:00", "1.2.0 (build)"
  std::string sentence() const { return "Made " + at + " by sweep " + version + "."; }
};
PageStamp page_stamp();

}  // namespace sweep::cli

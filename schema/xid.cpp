#include "schema/xid.h"

#include <array>

namespace sweep {
namespace {

struct Xid {
  std::int64_t number;
  bool hardware;
  std::string_view meaning;
};

constexpr std::array kXids{Xid{13, false, "a kernel raised an exception"},
                           Xid{31, false, "a kernel used an address that is not mapped"},
                           Xid{43, false, "the GPU stopped this program's work"},
                           Xid{45, false, "the program's work was cleared after an earlier error"},
                           Xid{48, true, "an ECC error of two bits, which cannot be corrected"},
                           Xid{62, true, "the GPU's micro-controller halted"},
                           Xid{63, false, "a faulty row of memory was remapped"},
                           Xid{64, true, "a faulty row of memory could not be remapped"},
                           Xid{74, true, "an error of an NVLink"},
                           Xid{79, true, "the GPU has fallen off the bus"},
                           Xid{92, false, "many ECC errors of one bit"},
                           Xid{94, true, "an ECC error, contained to this program"},
                           Xid{95, true, "an ECC error, not contained"},
                           Xid{119, true, "the GPU's system processor did not answer"},
                           Xid{120, true, "the GPU's system processor failed"},
                           Xid{140, true, "an ECC error that was not recovered from"}};

const Xid* find(std::int64_t number) {
  for (const Xid& xid : kXids)
    if (xid.number == number) return &xid;
  return nullptr;
}

}  // namespace

bool is_hardware_fault(std::int64_t xid) {
  const Xid* found = find(xid);
  return found != nullptr && found->hardware;
}

std::string_view meaning_of_xid(std::int64_t xid) {
  const Xid* found = find(xid);
  return found != nullptr ? found->meaning : "";
}

}  // namespace sweep

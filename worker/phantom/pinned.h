// Pinned host memory. A large piece has addresses but no content of its own: all of it shows the same few
// megabytes, so that the offloaded states of a rehearsal need no memory of this machine. Small pieces are
// true memory.
#pragma once
#include <cstddef>

namespace sweep::phantom {

// nullptr: the system refuses.
void* make_pinned(std::size_t bytes);
void drop_pinned(void* at, std::size_t bytes);  // frees what make_pinned gave, with the same size

}  // namespace sweep::phantom

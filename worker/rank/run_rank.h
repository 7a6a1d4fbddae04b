// One rank of one attempt, from its attempt file to its record. It owns the device, the group and the step for
// that long; how the process came to be (exec or zygote) does not matter to it.
#pragma once
#include "schema/rank_launch.h"

namespace sweep::rank {

// Once at the start of every process that will run ranks or fork them: the counting allocator, one thread,
// the GPU plug-in where there is a GPU, and on a machine without one a tiny step, so that later ranks find
// everything touched.
void prepare_process();
// Returns the exit code of schema/rank_launch.h. REQUIRES: prepare_process() was
// called here or in the process this one was forked from.
int run_rank(const RankLaunch&);

// The zygote: this program, loaded and warm, that forks ranks on request (schema/rank_launch.h tells the
// protocol). It stays single-threaded, opens no socket beyond its channel, and never touches a GPU.
// Serves requests on the channel until its other end closes; returns the zygote's exit code. A forked rank
// never returns. REQUIRES: prepare_process() was called; no other threads.
int serve_zygote(int channel);

}  // namespace sweep::rank

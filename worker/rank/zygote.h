// The zygote: this program, loaded and warm, that forks ranks on request (schema/rank_launch.h tells the
// protocol). It stays single-threaded, opens no socket beyond its channel, and never touches a GPU.
#pragma once

namespace sweep::rank {

// Serves requests on the channel until its other end closes; returns the zygote's exit code. A forked rank
// never returns. REQUIRES: prepare_process() was called; no other threads.
int serve_zygote(int channel);

}  // namespace sweep::rank

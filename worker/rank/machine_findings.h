// What a rank measures of its machine: for a hardware profile, and before the first trial of a node.
#pragma once
#include "bench_kernels/comm/channel.h"
#include "bench_kernels/parallel/mesh.h"
#include "runtime/progress_writer.h"
#include "schema/records.h"
#include "worker/rank/device.h"

namespace sweep::rank {

// Calibrate: what a rank measures of its machine, or of a group of ranks, for a hardware profile. The trial's
// axis `program` says what (CalibrationRequest in JSON). It measures and checks; who keeps the numbers and
// fits them is the orchestrator.
// Returns what it found. A collective with a wrong result makes the record invalid and names the first one;
// the others are measured nevertheless, because the peers go on.
CalibrationFindings calibrate(const Trial&, const Device&, const parallel::Mesh&, ProgressWriter&,
                              RankRecord&);

// Screen: what a node can do, in some hundred milliseconds before its first trial: matmul, memory bandwidth,
// and transport to the ranks of other nodes. It measures this rank and judges none.
// A collective of all ranks.
ScreenFindings screen(const Device&, comm::Channel& world);

}  // namespace sweep::rank

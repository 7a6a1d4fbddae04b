// LaunchLog: a line for each launch in the file that SWEEP_PHANTOM_LAUNCHES names, and for each block that cudaMalloc gave
// or cudaFree took: what a step launches and holds, in order.
#pragma once

namespace sweep::phantom {

// name: the kernel's symbol, or what the library was asked for. bytes: that it moves as far as it tells; 0: it does not.
// Nothing without the variable.
void log_launch(const char* name, double threads, double bytes);
bool logs_launches();
// bytes: that were asked for; 0: the block is freed.
void log_block(const void* at, double bytes);

}  // namespace sweep::phantom

// LaunchLog: a line for each launch in the file that SWEEP_PHANTOM_LAUNCHES names: what a step launches, in order.
#pragma once

namespace sweep::phantom {

// name: the kernel's symbol, or what the library was asked for. bytes: that it moves as far as it tells; 0: it does not.
// Nothing without the variable.
void log_launch(const char* name, double threads, double bytes);
bool logs_launches();

}  // namespace sweep::phantom

// The GPUs of this machine as far as no driver need be asked: device files, and CUDA_VISIBLE_DEVICES.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace sweep {

// Files nvidia0, nvidia1, ... of the folder, in any numbering: a container often has the one GPU nvidia3 alone.
int gpu_device_files(const std::filesystem::path& folder = "/dev");

// The GPUs, of `count`, that this process may use: as CUDA_VISIBLE_DEVICES lists them (numbers or UUIDs), else all by their
// numbers. As for CUDA, a number below zero ends the list.
std::vector<std::string> visible_gpus(int count);

}  // namespace sweep

// fake_nvml: a libnvidia-ml that a test describes in FAKE_NVML: a word for each GPU,
// "UUID:UTILISATION[:PID...]", or "denied" for one that this process may not use. FAKE_NVML_NAME is the name of all. fake_nvml_xid() reports an
// Xid of one.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "worker/agent/evidence/nvml_abi.h"

namespace {

struct Gpu {
  std::string uuid;
  unsigned utilisation = 0;
  std::vector<unsigned> pids;
  bool denied = false;
};

std::vector<Gpu>& gpus() {
  static std::vector<Gpu> all;
  return all;
}
std::atomic<int> asked{0};
std::vector<sweep::agent::nvml_abi::Event> events;
std::vector<void*> watched;

constexpr int kSuccess = 0, kNoPermission = 4, kTimeout = 10;

}  // namespace

extern "C" {
int nvmlInit_v2() {
  gpus().clear();
  const char* told = std::getenv("FAKE_NVML");
  std::istringstream words(told == nullptr ? "" : told);
  for (std::string word; words >> word;) {
    Gpu gpu;
    gpu.denied = word == "denied";
    std::istringstream fields(word);
    std::string field;
    std::getline(fields, gpu.uuid, ':');
    if (std::getline(fields, field, ':')) gpu.utilisation = static_cast<unsigned>(std::atoi(field.c_str()));
    while (std::getline(fields, field, ':'))
      gpu.pids.push_back(static_cast<unsigned>(std::atoi(field.c_str())));
    gpus().push_back(gpu);
  }
  return kSuccess;
}
int nvmlShutdown() {
  return kSuccess;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(gpus().size());
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (gpus()[index].denied) return kNoPermission;
  *device = &gpus()[index];
  return kSuccess;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::strncpy(text, static_cast<Gpu*>(device)->uuid.c_str(), size - 1);
  return kSuccess;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  const char* name = std::getenv("FAKE_NVML_NAME");
  if (name == nullptr) return kNoPermission;
  std::strncpy(text, name, size - 1);
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void*, sweep::agent::nvml_abi::Memory* memory) {
  *memory = {80ull << 30, 70ull << 30, 10ull << 30};
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* device, sweep::agent::nvml_abi::Utilisation* rates) {
  ++asked;
  *rates = {static_cast<Gpu*>(device)->utilisation, 0};
  return kSuccess;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count,
                                            sweep::agent::nvml_abi::Process* out) {
  const auto& pids = static_cast<Gpu*>(device)->pids;
  *count = std::min<unsigned>(*count, static_cast<unsigned>(pids.size()));
  for (unsigned i = 0; i < *count; ++i) out[i] = {pids[i], 1ull << 30, 0, 0};
  return kSuccess;
}
int nvmlEventSetCreate(void** set) {
  watched.clear();
  *set = &watched;
  return kSuccess;
}
int nvmlEventSetFree(void*) {
  return kSuccess;
}
int nvmlDeviceRegisterEvents(void* device, unsigned long long, void*) {
  watched.push_back(device);
  return kSuccess;
}
int nvmlEventSetWait_v2(void*, sweep::agent::nvml_abi::Event* out, unsigned) {
  for (auto event = events.begin(); event != events.end(); ++event) {
    if (std::find(watched.begin(), watched.end(), event->device) == watched.end()) continue;
    *out = *event;
    events.erase(event);
    return kSuccess;
  }
  return kTimeout;
}
// For the test itself.
void fake_nvml_xid(int gpu, unsigned long long xid) {
  events.push_back({&gpus()[static_cast<std::size_t>(gpu)], sweep::agent::nvml_abi::kXidEvent, xid, 0, 0});
}
// For the test itself: how often a load was asked for.
int fake_nvml_asked() {
  return asked;
}
}

// The NVML functions used, by their stable C names (nvml.h of the CUDA toolkit, API 12).
#include "worker/agent/evidence/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "worker/agent/evidence/nvml_abi.h"

namespace sweep::agent {

namespace {
constexpr unsigned kClockSm = 1;  // NVML_CLOCK_SM
}  // namespace

struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, void**) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*name)(void*, char*, unsigned) = nullptr;
  int (*memory)(void*, nvml_abi::Memory*) = nullptr;
  int (*utilisation)(void*, nvml_abi::Utilisation*) = nullptr;
  int (*power)(void*, unsigned*) = nullptr;
  int (*clock)(void*, unsigned, unsigned*) = nullptr;
  int (*max_clock)(void*, unsigned, unsigned*) = nullptr;
  int (*throttle)(void*, unsigned long long*) = nullptr;
  int (*driver_cuda)(int*) = nullptr;
  int (*capability)(void*, int*, int*) = nullptr;
  int (*uuid)(void*, char*, unsigned) = nullptr;
  int (*processes)(void*, unsigned*, nvml_abi::Process*) = nullptr;
  int (*ecc)(void*, unsigned kind, unsigned counter, unsigned long long*) = nullptr;
  int (*event_set)(void**) = nullptr;
  int (*free_event_set)(void*) = nullptr;
  int (*register_events)(void*, unsigned long long types, void* set) = nullptr;
  int (*wait_for_event)(void* set, nvml_abi::Event*, unsigned milliseconds) = nullptr;
};

std::unique_ptr<Nvml> Nvml::load(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  std::unique_ptr<Nvml> out(new Nvml);
  out->library_ = handle;
  out->call_ = std::make_unique<Functions>();
  Functions& f = *out->call_;
  const auto find = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, symbol));
  };
  find(f.init, "nvmlInit_v2");
  find(f.shutdown, "nvmlShutdown");
  find(f.count, "nvmlDeviceGetCount_v2");
  find(f.handle, "nvmlDeviceGetHandleByIndex_v2");
  find(f.driver, "nvmlSystemGetDriverVersion");
  find(f.name, "nvmlDeviceGetName");
  find(f.memory, "nvmlDeviceGetMemoryInfo");
  find(f.utilisation, "nvmlDeviceGetUtilizationRates");
  find(f.power, "nvmlDeviceGetPowerUsage");
  find(f.clock, "nvmlDeviceGetClockInfo");
  find(f.max_clock, "nvmlDeviceGetMaxClockInfo");
  find(f.throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
  find(f.driver_cuda, "nvmlSystemGetCudaDriverVersion_v2");
  find(f.capability, "nvmlDeviceGetCudaComputeCapability");
  find(f.uuid, "nvmlDeviceGetUUID");
  find(f.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  find(f.ecc, "nvmlDeviceGetTotalEccErrors");
  find(f.event_set, "nvmlEventSetCreate");
  find(f.free_event_set, "nvmlEventSetFree");
  find(f.register_events, "nvmlDeviceRegisterEvents");
  find(f.wait_for_event, "nvmlEventSetWait_v2");
  unsigned devices = 0;
  if (!f.init || !f.shutdown || !f.count || !f.handle || f.init() != 0) {
    f.shutdown = nullptr;
    return nullptr;
  }
  if (f.count(&devices) != 0) return nullptr;
  for (unsigned i = 0; i < devices; ++i) {
    void* device = nullptr;
    if (f.handle(i, &device) == 0 && device != nullptr)
      out->devices_.push_back(device);  // else not ours to use
  }
  return out;
}

Nvml::~Nvml() {
  if (call_ && call_->shutdown) call_->shutdown();
  if (library_ != nullptr) ::dlclose(library_);
}

std::optional<int> Nvml::named(const std::string& name) const {
  if (name.empty()) return std::nullopt;
  if (name.find_first_not_of("0123456789") == std::string::npos) {
    const int number = name.size() > 4 ? count() : std::atoi(name.c_str());
    return number < count() ? std::optional(number) : std::nullopt;
  }
  std::optional<int> found;
  for (int i = 0; i < count(); ++i) {
    if (uuid(i).rfind(name, 0) != 0) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

std::string Nvml::uuid(int gpu) const {
  std::array<char, 96> text{};
  void* device = devices_[static_cast<std::size_t>(gpu)];
  return call_->uuid && call_->uuid(device, text.data(), text.size()) == 0 ? text.data() : "";
}

std::vector<std::int64_t> Nvml::processes(int gpu) const {
  std::array<nvml_abi::Process, 256> found{};
  unsigned count = found.size();
  void* device = devices_[static_cast<std::size_t>(gpu)];
  std::vector<std::int64_t> pids;
  if (call_->processes == nullptr || call_->processes(device, &count, found.data()) != 0) return pids;
  for (unsigned i = 0; i < count && i < found.size(); ++i) pids.push_back(found[i].pid);
  return pids;
}

std::string Nvml::driver_cuda() const {
  int version = 0;  // 1000 x major + 10 x minor
  if (!call_->driver_cuda || call_->driver_cuda(&version) != 0) return "";
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string Nvml::compute_capability(int gpu) const {
  int major = 0, minor = 0;
  void* device = devices_[static_cast<std::size_t>(gpu)];
  if (!device || !call_->capability || call_->capability(device, &major, &minor) != 0) return "";
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string Nvml::driver() const {
  std::array<char, 96> text{};
  return call_->driver && call_->driver(text.data(), text.size()) == 0 ? text.data() : "";
}

std::string Nvml::name(int gpu) const {
  std::array<char, 96> text{};
  void* device = devices_[static_cast<std::size_t>(gpu)];
  return device && call_->name && call_->name(device, text.data(), text.size()) == 0 ? text.data() : "";
}

namespace {
// One number of a device, NULL when the function is missing or refuses.
template <class Raw>
std::optional<Raw> ask(int (*function)(void*, Raw*), void* device) {
  Raw out{};
  if (function == nullptr || device == nullptr || function(device, &out) != 0) return std::nullopt;
  return out;
}
std::optional<double> ask_clock(int (*function)(void*, unsigned, unsigned*), void* device) {
  unsigned mhz = 0;
  if (function == nullptr || device == nullptr || function(device, kClockSm, &mhz) != 0) return std::nullopt;
  return mhz;
}
}  // namespace

std::optional<std::uint64_t> Nvml::memory_total(int gpu) const {
  const auto memory = ask<nvml_abi::Memory>(call_->memory, devices_[static_cast<std::size_t>(gpu)]);
  return memory ? std::optional<std::uint64_t>(memory->total) : std::nullopt;
}

std::optional<std::uint64_t> Nvml::memory_used(int gpu) const {
  const auto memory = ask<nvml_abi::Memory>(call_->memory, devices_[static_cast<std::size_t>(gpu)]);
  return memory ? std::optional<std::uint64_t>(memory->used) : std::nullopt;
}

std::optional<double> Nvml::utilisation(int gpu) const {
  const auto rates = ask<nvml_abi::Utilisation>(call_->utilisation, devices_[static_cast<std::size_t>(gpu)]);
  return rates ? std::optional<double>(rates->gpu) : std::nullopt;
}

std::optional<double> Nvml::power_w(int gpu) const {
  const auto milliwatts = ask<unsigned>(call_->power, devices_[static_cast<std::size_t>(gpu)]);
  return milliwatts ? std::optional<double>(*milliwatts / 1000.0) : std::nullopt;
}

std::optional<double> Nvml::sm_clock_mhz(int gpu) const {
  return ask_clock(call_->clock, devices_[static_cast<std::size_t>(gpu)]);
}

std::optional<double> Nvml::max_sm_clock_mhz(int gpu) const {
  return ask_clock(call_->max_clock, devices_[static_cast<std::size_t>(gpu)]);
}

std::optional<std::uint64_t> Nvml::ecc_uncorrected(int gpu) const {
  constexpr unsigned kUncorrected = 1, kSinceLoaded = 0;  // nvmlMemoryErrorType_t, nvmlEccCounterType_t
  void* device = devices_[static_cast<std::size_t>(gpu)];
  unsigned long long errors = 0;
  if (!device || !call_->ecc || call_->ecc(device, kUncorrected, kSinceLoaded, &errors) != 0)
    return std::nullopt;
  return errors;
}

std::unique_ptr<Nvml::Xids> Nvml::xids_of(const std::vector<int>& gpus) const {
  void* set = nullptr;
  if (!call_->event_set || !call_->free_event_set || !call_->register_events || !call_->wait_for_event ||
      call_->event_set(&set) != 0)
    return nullptr;
  std::unique_ptr<Xids> out(new Xids(*this, set));
  for (const int gpu : gpus)  // one that refuses reports nothing
    (void)call_->register_events(devices_[static_cast<std::size_t>(gpu)], nvml_abi::kXidEvent, set);
  return out;
}

Nvml::Xids::~Xids() {
  nvml_.call_->free_event_set(set_);
}

std::vector<Nvml::Xids::One> Nvml::Xids::take() {
  constexpr std::size_t kMost = 64;  // a GPU in a bad state may report without end
  std::vector<One> out;
  for (nvml_abi::Event event{}; out.size() < kMost && nvml_.call_->wait_for_event(set_, &event, 0) == 0;) {
    const auto gpu = std::find(nvml_.devices_.begin(), nvml_.devices_.end(), event.device);
    if (event.type == nvml_abi::kXidEvent && gpu != nvml_.devices_.end())
      out.push_back({static_cast<int>(gpu - nvml_.devices_.begin()), static_cast<std::int64_t>(event.data)});
  }
  return out;
}

std::uint64_t Nvml::throttle_reasons(int gpu) const {
  return ask<unsigned long long>(call_->throttle, devices_[static_cast<std::size_t>(gpu)]).value_or(0);
}

std::string throttle_names(std::uint64_t reasons) {
  static constexpr std::pair<std::uint64_t, const char*> kNames[] = {
      {0x04, "sw_power_cap"},          {0x08, "hw_slowdown"},         {0x10, "sync_boost"},
      {0x20, "sw_thermal_slowdown"},   {0x40, "hw_thermal_slowdown"}, {0x80, "hw_power_brake_slowdown"},
      {0x100, "display_clock_setting"}};
  std::string out;
  for (const auto& [bit, name] : kNames)
    if ((reasons & bit) != 0) out += (out.empty() ? "" : "+") + std::string(name);
  return out;
}

}  // namespace sweep::agent

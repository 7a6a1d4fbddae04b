// Nvml: NVIDIA's management library, loaded at run time; absent on machines without a GPU. Only what the
// agent reads.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sweep::agent {

class Nvml {
 public:
  // Null where the library is absent or finds no driver.
  static std::unique_ptr<Nvml> load(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // The GPUs that this process may use, in the order of their PCI addresses: as CUDA numbers them for the
  // ranks.
  int count() const { return static_cast<int>(devices_.size()); }
  // The one that CUDA_VISIBLE_DEVICES names: by number, or by the beginning of its UUID. None: no such GPU,
  // or several.
  std::optional<int> named(const std::string& name) const;
  // "GPU-..."; empty: unknown.
  std::string uuid(int gpu) const;
  std::string driver() const;
  // Newest CUDA the driver supports, "13.0"; empty: unknown.
  std::string driver_cuda() const;
  // "9.0"; empty: unknown.
  std::string compute_capability(int gpu) const;
  std::string name(int gpu) const;
  std::optional<std::uint64_t> memory_total(int gpu) const;
  // The memory that all processes hold of it.
  std::optional<std::uint64_t> memory_used(int gpu) const;
  // Percent.
  std::optional<double> utilisation(int gpu) const;
  std::optional<double> power_w(int gpu) const;
  std::optional<double> sm_clock_mhz(int gpu) const;
  std::optional<double> max_sm_clock_mhz(int gpu) const;
  // Since the driver was loaded.
  std::optional<std::uint64_t> ecc_uncorrected(int gpu) const;
  // Process ids that hold memory of it; none: the driver does not say.
  std::vector<std::int64_t> processes(int gpu) const;
  // Bits of nvmlClocksEventReasons; 0: none, or unknown.
  std::uint64_t throttle_reasons(int gpu) const;

  // Xids that the driver reports for these GPUs from its making on. NVML must outlive it.
  class Xids {
   public:
    struct One {
      int gpu = 0;
      std::int64_t xid = 0;
    };
    ~Xids();
    Xids(const Xids&) = delete;
    Xids& operator=(const Xids&) = delete;
    // The events since the last call; it does not wait.
    std::vector<One> take();

   private:
    friend class Nvml;
    Xids(const Nvml& nvml, void* set) : nvml_(nvml), set_(set) {}
    const Nvml& nvml_;
    void* set_;
  };
  // Null where the driver has no such events.
  std::unique_ptr<Xids> xids_of(const std::vector<int>& gpus) const;

 private:
  Nvml() = default;
  struct Functions;
  void* library_ = nullptr;
  std::unique_ptr<Functions> call_;
  std::vector<void*> devices_;
};

// Names of the throttle reasons that slow a run down, joined by +; idle and user-set clocks are no
// reasons.
std::string throttle_names(std::uint64_t reasons);

}  // namespace sweep::agent

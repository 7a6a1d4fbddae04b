// MemoryParts: bytes of one rank by what holds them; and Moments, which follows them through a stretch of a
// step and remembers the fullest moment. Pure; allocates nothing.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>

namespace sweep::shape {

// kBuffers: gathered or cast copies of values, whole gradients on their way to shards, rows of other ranks,
// messages. kLibrary: what the libraries take from the allocator and keep (cuBLAS's workspace).
enum class MemoryPart {
  kWeights,
  kGradients,
  kOptimizer,
  kActivations,
  kLogits,
  kBuffers,
  kTemporary,
  kLibrary
};
inline constexpr std::size_t kMemoryParts = 8;
inline constexpr std::array<const char*, kMemoryParts> kMemoryPartNames{
    "weights", "gradients", "optimizer", "activations", "logits", "buffers", "temporary", "library"};

struct PartBytes {
  std::array<double, kMemoryParts> of{};
  double& operator[](MemoryPart part) { return of[static_cast<std::size_t>(part)]; }
  double operator[](MemoryPart part) const { return of[static_cast<std::size_t>(part)]; }
  // Adds in pairs: the sum is taken often, and would wait for a chain of eight additions.
  double total() const {
    static_assert(kMemoryParts == 8);
    return ((of[0] + of[1]) + (of[2] + of[3])) + ((of[4] + of[5]) + (of[6] + of[7]));
  }
  PartBytes& operator+=(const PartBytes& other) {
    for (std::size_t i = 0; i < kMemoryParts; ++i) of[i] += other.of[i];
    return *this;
  }
  PartBytes times(double n) const {
    PartBytes out = *this;
    for (double& bytes : out.of) bytes *= n;
    return out;
  }
  friend PartBytes operator+(PartBytes a, const PartBytes& b) { return a += b; }
};

// The larger by its total.
inline void keep_larger(PartBytes& most, const PartBytes& other) {
  if (other.total() > most.total()) most = other;
}

// A tensor of so many bytes as the allocator counts it: in blocks of 512.
inline double block(double bytes) {
  return 512 * std::ceil(bytes / 512);
}

class Moments {
 public:
  void take(MemoryPart part, double bytes) {
    now_[part] += block(bytes);
    note({});
  }
  void give(MemoryPart part, double bytes) { now_[part] -= block(bytes); }
  // There for a moment, beside all that is there.
  void moment(std::initializer_list<std::pair<MemoryPart, double>> taken) { note(taken); }
  void moment(MemoryPart part, double bytes) { note({{part, bytes}}); }
  // Begins with all that is there now, and finds the fullest moment from here on.
  Moments from_here() const {
    Moments m;
    m.now_ = now_;
    m.note({});
    return m;
  }
  const PartBytes& now() const { return now_; }
  const PartBytes& top() const { return top_; }

 private:
  void note(std::initializer_list<std::pair<MemoryPart, double>> taken) {
    double total = now_.total();
    for (const auto& [part, bytes] : taken) total += block(bytes);
    if (total <= most_) return;
    most_ = total, top_ = now_;
    for (const auto& [part, bytes] : taken) top_[part] += block(bytes);
  }

  PartBytes now_, top_;
  double most_ = 0;
};

}  // namespace sweep::shape

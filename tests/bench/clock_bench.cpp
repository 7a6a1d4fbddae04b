// clock_bench: what one reading of the steady clock costs; on CPU ranks a step's timers are a handful of
// them. Prints JSON.
#include <chrono>
#include <cstdio>

int main() {
  using Clock = std::chrono::steady_clock;
  constexpr int kReadings = 2'000'000;
  const auto begin = Clock::now();
  auto last = begin;
  for (int i = 0; i < kReadings; ++i) last = Clock::now();
  const double ns = std::chrono::duration<double, std::nano>(last - begin).count() / kReadings;
  std::printf("{\"reading_ns\": %.2f, \"readings\": %d}\n", ns, kReadings);
  return 0;
}

#include "orchestrator/driver/rehearsal_check.h"

#include <fmt/format.h>

#include "base/expected.h"
#include "base/proc.h"
#include "orchestrator/driver/machine.h"
#include "orchestrator/launch/programs.h"
#include "schema/codec.h"

namespace sweep::driver {
namespace {

namespace fs = std::filesystem;
constexpr double kMiB = 1 << 20;
// An estimate with a margin: LibTorch is loaded once and shared, and a rank adds some tens of MiB. Small
// payloads of NCCL lie in /dev/shm.
constexpr double kMemory = 512 * kMiB, kMemoryOfRank = 128 * kMiB, kShm = 64 * kMiB, kShmOfRank = 8 * kMiB;

std::optional<Error> too_little(std::string_view what, const std::optional<double>& has, double needs,
                                i64 ranks, std::string_view way_out) {
  if (!has || *has >= needs) return std::nullopt;
  return Error{fmt::format("{} has {:.0f} MiB free, and {} ranks need {:.0f} MiB: {}", what, *has / kMiB,
                           ranks, needs / kMiB, way_out),
               ErrorKind::kRefused, std::string(what)};
}

// Why this sweep-rank cannot run the built-in step on phantom GPUs.
std::optional<Error> rank_lacks(const Expected<RankFacts>& rank) {
  if (!rank)
    return Error{"sweep-rank does not answer: " + rank.error().message, ErrorKind::kFailed, "sweep-rank"};
  if (rank->cuda.empty())
    return Error{
        "sweep-rank is built with a LibTorch without CUDA; install the CUDA wheel of torch and build with "
        "-DSWEEP_TORCH naming it",
        ErrorKind::kUnsupported};
  if (!rank->gpu_plugin)
    return Error{"libsweep_cuda.so, the GPU plug-in, is not beside sweep-rank; build the target sweep_cuda",
                 ErrorKind::kNotFound};
  return std::nullopt;
}

}  // namespace

fs::path phantom_dir() {
  return program_dir().parent_path() / "phantom";
}

RehearsalFacts rehearsal_facts(const fs::path& rank_program) {
  RehearsalFacts out;
  std::error_code ec;
  out.phantoms = phantom_dir();
  out.built_in = !rank_program.empty();
  for (const char* library : {"libsweep_phantom.so", "libcuda.so.1", "libnvidia-ml.so.1"})
    if (out.missing.empty() && !fs::exists(out.phantoms / library, ec)) out.missing = library;
  if (out.missing.empty() && out.built_in)  // asking loads LibTorch
    out.rank = launch::capture(rank_program, {"facts"}).and_then(from_text<RankFacts>);
  if (const auto shm = fs::space("/dev/shm", ec); !ec)
    out.shm_free_bytes = static_cast<double>(shm.available);
  if (const auto bytes = proc::memory_available()) out.memory_free_bytes = static_cast<double>(*bytes);
  return out;
}

std::optional<Error> cannot_rehearse(const RehearsalFacts& facts, i64 ranks) {
  if (const std::string file = (facts.phantoms / facts.missing).string(); !facts.missing.empty())
    return Error{
        fmt::format("{}: not found, so there are no phantom GPUs; the wheel that scripts/release makes "
                    "has them; a checkout gets them by scripts/quickstart, or by ninja -C build/release "
                    "sweep_cuda sweep_phantom_cuda sweep_phantom_nvidia-ml, with the headers of a CUDA "
                    "wheel of torch",
                    file),
        ErrorKind::kNotFound, file};
  if (const std::string folder = facts.phantoms.string();
      folder.find_first_of(" \t\n:;") != std::string::npos)
    return Error{
        fmt::format("{}: LD_PRELOAD and LD_LIBRARY_PATH cannot name a path with blanks, ':' or ';', so its "
                    "phantom GPUs are not found; build or install in another folder",
                    folder),
        ErrorKind::kUnsupported, folder};
  if (facts.built_in)
    if (auto why = rank_lacks(facts.rank)) return why;
  const auto count = static_cast<double>(ranks);
  if (auto why = too_little("/dev/shm", facts.shm_free_bytes, kShm + kShmOfRank * count, ranks,
                            "free some, mount it larger (docker: --shm-size), or lower --rehearse-ranks"))
    return why;
  return too_little("memory", facts.memory_free_bytes, kMemory + kMemoryOfRank * count, ranks,
                    "free some, or lower --rehearse-ranks");
}

}  // namespace sweep::driver

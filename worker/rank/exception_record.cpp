#include "worker/rank/exception_record.h"

#include <c10/util/Exception.h>

#include <new>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::rank {
namespace {

constexpr int kCudaMemoryAllocation = 2;       // cudaErrorMemoryAllocation
constexpr i64 kLibraryNeeds = i64{256} << 20;  // a communicator's buffers, or cuBLAS with its kernels

void say(RankRecord& record, Outcome outcome, std::string message) {
  record.outcome = outcome;
  record.message = std::move(message);
}

void say_oom(RankRecord& record, OomKind kind, std::string message) {
  say(record, Outcome::kOom, std::move(message));
  record.oom_kind = kind;
}

void judge_communication(RankRecord& record, const FailureFacts& facts, std::string message) {
  const int nccl = facts.status.nccl;
  if (nccl == kNcclUnhandledCudaError && facts.memory_scarce())
    return say_oom(record, OomKind::kDevice, std::move(message));
  say(record, Outcome::kCrash, std::move(message));
  const bool own_gpu = nccl == kNcclUnhandledCudaError && !facts.driver_answers;
  record.consequential = !own_gpu && nccl != kNcclInvalidArgument && nccl != kNcclInvalidUsage;
}

bool cublas_lacked_memory(const FailureFacts& facts) {
  const int cublas = facts.status.cublas;
  if (cublas == kCublasAllocFailed) return true;
  if (!facts.memory_scarce()) return false;
  // Kernels that are loaded when they are first launched, and find no room for their code.
  const bool no_kernel = cublas == kCublasExecutionFailed || cublas == kCublasInternalError;
  return no_kernel || (cublas == kCublasNotInitialized && !facts.cublas);
}

}  // namespace

bool FailureFacts::memory_scarce() const {
  return on_gpu && driver_answers && free_bytes < kLibraryNeeds;
}

void record_exception(RankRecord& record, const FailureFacts& facts) {
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    say_oom(record, OomKind::kDevice, error.what_without_backtrace());
  } catch (const memory::HostMemoryRefused& error) {
    say_oom(record, OomKind::kHost, error.what());
    record.oom_asked_bytes = error.asked();
  } catch (const std::bad_alloc&) {
    say_oom(record, OomKind::kHost, "the host has no memory left for this rank");
  } catch (const c10::NotImplementedError& error) {
    say(record, Outcome::kUnsupported, error.what_without_backtrace());
  } catch (const c10::DistError& error) {
    judge_communication(record, facts, error.what_without_backtrace());
  } catch (const c10::AcceleratorError& error) {
    if (error.get_error_code() == kCudaMemoryAllocation)
      say_oom(record, OomKind::kDevice, error.what_without_backtrace());
    else
      say(record, Outcome::kCrash, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    if (cublas_lacked_memory(facts))
      say_oom(record, OomKind::kDevice, error.what_without_backtrace());
    else
      say(record, Outcome::kCrash, error.what_without_backtrace());
  } catch (const std::exception& error) {
    say(record, Outcome::kCrash, error.what());
  } catch (...) {
    say(record, Outcome::kCrash, "an exception of an unknown type");
  }
}

}  // namespace sweep::rank

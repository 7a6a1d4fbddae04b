#include "worker/rank/run_rank.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "base/files.h"
#include "base/time.h"
#include "bench_kernels/comm/cuda_plugin.h"
#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/optim/optimizer.h"
#include "bench_kernels/parallel/mesh.h"
#include "bench_kernels/shape/around_step.h"
#include "bench_kernels/step/selftest.h"
#include "runtime/rank_process.h"
#include "schema/codec.h"
#include "schema/spool.h"
#include "worker/rank/agent_store.h"
#include "worker/rank/around.h"
#include "worker/rank/calibrate.h"
#include "worker/rank/exception_record.h"
#include "worker/rank/flight_door.h"
#include "worker/rank/library_status.h"
#include "worker/rank/measure.h"
#include "worker/rank/screen.h"
#include "worker/rank/short_steps.h"
#include "worker/rank/uncaught.h"

namespace sweep::rank {
namespace {

constexpr std::uint64_t kSeed = 20'260'101;

// Injected faults apply from the first CUDA call, before a communicator tells the phantom GPUs which rank this is.
void tell_phantoms_the_rank(i64 rank) {
  if (std::getenv("SWEEP_PHANTOM") != nullptr)
    ::setenv("SWEEP_PHANTOM_RANK", std::to_string(rank).c_str(), 1);
}

// A rehearsal puts the ranks of all nodes on this one. Those of each node then see a phantom node of their own.
i64 local_rank_on_phantoms(const Attempt& attempt, i64 rank) {
  const Trial& trial = attempt.trial;
  const char* base = std::getenv("SWEEP_PHANTOM_NODE");
  if (trial.nodes > 1 && base != nullptr)
    ::setenv("SWEEP_PHANTOM_NODE",
             (std::string(base) + "." + std::to_string(rank / trial.gpus_per_node)).c_str(), 1);
  return rank % trial.gpus_per_node;
}

// The number of nodes of a group's ranks of which not all are started; 0: all of them are.
int mirrored_on_nodes(const Attempt& attempt, const std::vector<i64>& members) {
  if (std::ranges::all_of(members, [&](i64 rank) { return attempt.starts(rank); })) return 0;
  std::set<i64> nodes;
  for (const i64 rank : members) nodes.insert(rank / attempt.trial.gpus_per_node);
  return static_cast<int>(nodes.size());
}

// One attempt on this rank, from its launch message to its record. The mesh outlives run(), so that a failure can be told
// to the peers.
class RankRun {
 public:
  RankRun(const RankLaunch& launch, RankRecord& record)
      : launch_(launch),
        record_(record),
        progress_(spool::rank_progress(launch.attempt_dir, launch.rank).string()) {}

  void run();
  void record_failure(const FailureFacts&);
  FailureFacts facts();
  void report_usage();
  void tell_peers();
  bool on_gpu() const { return device_ && device_->is_cuda(); }
  ProgressWriter& progress() { return progress_; }

 private:
  void join(const Attempt&);
  void keep_nccl_words(const Trial&) const;
  void train(const Attempt&);
  void look_at_node(const Trial&);
  void leave_together();
  c10::intrusive_ptr<c10d::Store> meet_over_store(const std::string& name, bool says = false);  // all ranks
  bool any_rank(bool says);  // whether one of them says so
  std::string part_that_failed() const;
  Proof proof_of(const Attempt&, step::TrainStep&);
  void describe(EffectiveSettings&) const;

  const RankLaunch& launch_;
  RankRecord& record_;
  ProgressWriter progress_;
  std::optional<Device> device_;
  std::optional<DeviceStats> at_failure_;
  i64 processes_ = 0;           // ranks that are started
  comm::GroupOptions meeting_;  // how this rank's groups find each other
  std::optional<FlightDoor> flight_door_;
  std::optional<parallel::Mesh> mesh_;
};

void RankRun::join(const Attempt& attempt) {
  const Trial& trial = attempt.trial;
  TORCH_CHECK(trial.world() == launch_.world, "the trial wants ", trial.world(), " ranks, the agent started ",
              launch_.world);
  const bool on_cpu = trial.hardware == "cpu";
  const auto refusal = step::unsupported(trial, on_cpu ? c10::DeviceType::CPU : c10::DeviceType::CUDA);
  TORCH_CHECK_NOT_IMPLEMENTED(!refusal, *refusal);
  at::set_num_threads(static_cast<int>(threads_of(trial, usable_cores())));
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_current_seed(kSeed);
  device_.emplace(
      trial, attempt.is_rehearsal() ? local_rank_on_phantoms(attempt, launch_.rank) : launch_.local_rank);
  processes_ = attempt.processes();
  comm::GroupOptions& options = meeting_;
  options.directory = launch_.rendezvous_dir;
  options.address = launch_.address;
  // The agent judges earlier, in a rehearsal by a clock that may run at a tenth of this one (ProcessorClock).
  const double limit_ms = attempt.deadlines.total_s * (attempt.is_rehearsal() ? 1e4 : 1e3);
  options.timeout = std::chrono::milliseconds(std::llround(limit_ms));
  if (!launch_.store.empty())
    options.rendezvous = c10::make_intrusive<AgentStore>(launch_.store, options.timeout);
  keep_nccl_words(trial);
  options.on_cuda = device_->is_cuda();
  options.device = device_->place().index();
  const CommBackend backend = comm::resolved_backend(trial, options.on_cuda);
  // Without a GPU there is no plug-in, and make_backend refuses NCCL.
  if (backend == CommBackend::kNccl && options.on_cuda)
    flight_door_.emplace(launch_, comm::cuda_plugin()->trace);
  const auto dims = shape::ParallelDims::make(trial);
  if (!dims) throw std::invalid_argument(dims.error().message);
  mesh_.emplace(
      *dims, launch_.rank,
      [&](const parallel::Mesh::Meeting& group) {
        options.name = group.name;
        options.label = group.label;
        options.rank = group.rank;
        options.world = group.size();
        options.members = group.members;
        options.mirrored_on_nodes = mirrored_on_nodes(attempt, group.members);
        comm::GroupOptions wanted = options;
        if (!group.by_all) wanted.parent.reset();
        auto made = comm::make_backend(backend, wanted);
        if (group.size() == launch_.world && processes_ == launch_.world) options.parent = made;
        return made;
      },
      progress_.page());
}

// NCCL's own account of transports and algorithms goes to a file of this rank, which the agent reads afterwards; its flight
// recorder is kept for when the agent asks (FlightDoor). A user's own settings stand. TUNING writes a line for
// each collective, which a measured step must not pay for.
void RankRun::keep_nccl_words(const Trial& trial) const {
  ::setenv("NCCL_DEBUG", "INFO", 0);
  const bool measures = trial.workload == Workload::kStep || trial.workload == Workload::kCalibrate;
  ::setenv("NCCL_DEBUG_SUBSYS", measures ? "INIT,GRAPH,ENV,NET,P2P,SHM" : "INIT,GRAPH,ENV,NET,P2P,SHM,TUNING",
           0);
  ::setenv("NCCL_DEBUG_FILE", spool::nccl_log(launch_.attempt_dir, launch_.rank).c_str(), 0);
  ::setenv("TORCH_FR_BUFFER_SIZE", "2000", 0);
  // NCCL's watchdog writes no dump of its own (the agent asks for the flight recorder) and does not wait a minute for one
  // before it reports an error: that would be a hang to the agent.
  ::setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", 0);
  ::setenv("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "0", 0);
  // LibTorch connects groups of more ranks than this (128 unless it is told) through several of their ranks, and waits for them.
  // In a rehearsal by roles they may not be there.
  if (processes_ < launch_.world)
    ::setenv("TORCH_NCCL_RANKS_PER_ROOT", std::to_string(launch_.world).c_str(), 1);
  // NCCL opens sockets of its own: on the interface that the agents use, unless the user says otherwise.
  if (!launch_.interface.empty()) ::setenv("NCCL_SOCKET_IFNAME", ("=" + launch_.interface).c_str(), 0);
}

void RankRun::describe(EffectiveSettings& effective) const {
  effective.device = device_->place().str();
  if (const auto& world = (*mesh_)[shape::Dimension::kWorld].backend())
    effective.backend = world->getBackendName();
  effective.threads = at::get_num_threads();
}

void RankRun::train(const Attempt& attempt) {
  const bool proof = attempt.trial.workload == Workload::kProof;
  step::TrainStep step(attempt.trial, device_->place(), *mesh_, [this](Part part) { progress_.part(part); },
                       proof ? step::kProofOptimizer : optim::OptimizerOptions(),
                       {.data_folder = attempt.checkpoint_folder, .reads_data = !attempt.is_rehearsal()});
  EffectiveSettings& used = record_.effective = step.effective();
  describe(used);
  const auto counted = [&] {
    return from_text<PhantomCounts>(device_->is_cuda() ? comm::cuda_plugin()->phantom() : "");
  };
  const auto at_build = counted();
  if (at_build) used.phantom.emplace().build = *at_build;
  AroundStep nothing;
  AroundStep& around = shape::surrounds(attempt.trial) ? used.around.emplace() : nothing;
  const auto meet = [this] { (*mesh_)[shape::Dimension::kWorld].barrier(); };
  load_weights(attempt, launch_.rank == 0, step, meet, progress_, around);
  record_.outcome = Outcome::kOk;
  const auto run_micros = [&](i64 micros) {
    mesh_->reset_traffic();
    const auto before = counted();
    SeenStep seen{step.run(micros), {}, mesh_->sent()};
    if (const auto after = before ? counted() : before) seen.counts = difference(*before, *after);
    return seen;
  };
  SeenStep last;
  auto shorter = short_steps_of(attempt, run_micros, [this](bool bent) { return any_rank(bent); });
  const auto run_step = [&] {
    return (last = shorter ? shorter->step() : run_micros(attempt.trial.grad_accum)).times;
  };
  StopTogether stop(attempt, launch_.rank, meeting_);
  measure(attempt.measure, run_step, stop, *device_, progress_, record_);
  record_.sent = last.sent;
  if (shorter) used.report = shorter->said();
  if (const auto whole = counted(); last.counts && whole && used.phantom)
    used.phantom = PhantomUse{*whole, used.phantom->build, last.counts};
  evaluate(attempt, step, *device_, meet, progress_, around);
  write_checkpoint(attempt, step, progress_, around);
  if (!proof) return;
  used.proof = proof_of(attempt, step);
}

Proof RankRun::proof_of(const Attempt& attempt, step::TrainStep& step) {
  step::ProofInput in{attempt.trial, device_->place(), *mesh_, step, {}, 0};
  for (const StepSample& sample : record_.samples) in.losses.emplace_back(sample.loss, sample.tokens);
  in.peak_bytes = device_->stats().peak - record_.baseline_bytes.value_or(0);
  return step::prove(in);
}

// Nothing is trained: no samples, and the record says so by its outcome ok alone.
void RankRun::look_at_node(const Trial& trial) {
  progress_.phase(Phase::kStep);
  describe(record_.effective);
  record_.outcome = Outcome::kOk;
  if (trial.workload == Workload::kCalibrate)
    record_.effective.calibration = calibrate(trial, *device_, *mesh_, progress_, record_);
  else
    record_.effective.screen = screen(*device_, (*mesh_)[shape::Dimension::kWorld]);
}

void RankRun::run() {
  progress_.phase(Phase::kInit);
  const auto read = read_attempt(launch_);
  if (!read) throw std::runtime_error(read.error().message);
  const Attempt& attempt = *read;
  record_.attempt = attempt.id;
  tell_phantoms_the_rank(launch_.rank);
  join(attempt);
  progress_.phase(Phase::kBuild);
  device_->begin(attempt.trial);
  record_.baseline_bytes = device_->stats().current;
  const Workload workload = attempt.trial.workload;
  const bool trains = workload == Workload::kStep || workload == Workload::kProof;
  trains ? train(attempt) : look_at_node(attempt.trial);
  progress_.phase(Phase::kReport);
  if (record_.outcome == Outcome::kOk) record_.phase = Phase::kDone;
  leave_together();
}

// No rank leaves while a peer still reads from it. Over the store where groups are NCCL's: a collective of all ranks would
// take memory and time of the GPU for nothing but this.
void RankRun::leave_together() {
  comm::Channel& world = (*mesh_)[shape::Dimension::kWorld];
  if (world.alone()) return;
  if (world.backend()->getBackendName() != "nccl") return world.barrier();
  meet_over_store("leave");
}

c10::intrusive_ptr<c10d::Store> RankRun::meet_over_store(const std::string& name, bool says) {
  meeting_.name = name;
  meeting_.world = static_cast<int>(processes_);
  const auto store = comm::group_store(meeting_, "end");
  progress_.page()->awaited.put(CollectiveName::of(Collective::kBarrier, 1, "world"));
  if (says) store->add("said", 1);
  if (store->add("ready", 1) == processes_) store->set("all", std::vector<std::uint8_t>{1});
  store->wait({"all"}, meeting_.timeout);
  progress_.page()->awaited.put({});
  return store;
}

bool RankRun::any_rank(bool says) {
  return processes_ <= 1 ? says : meet_over_store("any", says)->add("said", 0) > 0;
}

std::string RankRun::part_that_failed() const {
  const Phase phase = progress_.current();
  if (phase == Phase::kBuild || phase > Phase::kDone) return std::string(to_string(phase));
  if (phase < Phase::kBuild) return name_of(Part::kCommunication);  // it was joining its groups
  const Part part = progress_.part();
  return part == Part::kNone ? std::string() : name_of(part);
}

// The allocator's numbers come first: asking for the other facts may make a cuBLAS workspace, and be refused one.
FailureFacts RankRun::facts() {
  if (!device_) return {};
  at_failure_ = device_->stats();
  return device_->facts();
}

// Called inside the catch block. The stamp comes first: peers fail because of this rank, and theirs must be later.
void RankRun::record_failure(const FailureFacts& facts) {
  record_.ended_unix_ns = unix_ns_now();
  record_.phase = progress_.current();
  record_exception(record_, facts);
  if (record_.outcome != Outcome::kOom) return;
  record_.part = part_that_failed();
  if (record_.oom_kind == OomKind::kDevice && !record_.oom_asked_bytes && at_failure_)
    record_.oom_asked_bytes = at_failure_->asked;
}

// Peers of the CPU's backends wait in this process for the rank that failed. On a GPU the agent ends them: a one-sided abort
// of NCCL may hang itself.
void RankRun::tell_peers() {
  if (mesh_ && !on_gpu()) mesh_->abort();
}

void RankRun::report_usage() {
  if (record_.ended_unix_ns == 0) record_.ended_unix_ns = unix_ns_now();
  if (!record_.phase) record_.phase = Phase::kStep;
  if (const i64 rss = host_peak_rss_bytes(); rss > 0) record_.host_peak_rss_bytes = rss;
  if (!device_ || !record_.baseline_bytes) return;
  const DeviceStats stats = at_failure_ ? *at_failure_ : device_->stats();
  record_.peak_allocated_bytes = stats.peak;
  record_.peak_reserved_bytes = stats.peak_reserved;
  record_.ooms = stats.ooms;
}

// A GPU whose plug-in cannot be loaded is of no use, but is no reason to refuse trials on the CPU: a trial that needs it
// says so itself.
bool gpu_here() {
  try {
    return comm::cuda_plugin() != nullptr;
  } catch (const c10::NotImplementedError&) {
    return false;
  }
}

void warm_up() {
  Trial trial;
  trial.spec.layers = 1;
  trial.spec.hidden_size = 16;
  trial.spec.heads = trial.spec.kv_heads = 2;
  trial.spec.head_dim = 8;
  trial.spec.intermediate_size = 32;
  trial.spec.vocab_size = 32;
  trial.seq_len = 8;
  const parallel::Mesh mesh = parallel::alone();
  step::TrainStep(trial, c10::Device(c10::kCPU), mesh, nullptr).run();
}

// Exit code of the process.
int leave_record(const RankLaunch& launch, RankRecord& record, RankRun& run, bool failed) {
  run.report_usage();
  const bool knows_its_attempt = record.attempt != 0;
  if (!knows_its_attempt) record.attempt = spool::attempt_of(launch.attempt_dir);
  const auto path = spool::rank_record(launch.attempt_dir, launch.rank);
  const auto written = files::write_atomically(path, dump(to_json(record)));
  if (failed) run.tell_peers();
  if (record.outcome != Outcome::kOk) std::fprintf(stderr, "sweep-rank: %s\n", record.message.c_str());
  if (!written) std::fprintf(stderr, "sweep-rank: %s\n", written.error().message.c_str());
  run.progress().phase(Phase::kDone);
  return written && !knows_its_attempt ? kNoAttempt : exit_code_of(written);
}

}  // namespace

void prepare_process() {
  memory::install(c10::kCPU);
  at::set_num_threads(1);
  if (!gpu_here()) warm_up();
}

int run_rank(const RankLaunch& launch) {
  RankRecord record;
  record.rank = launch.rank;
  RankRun run(launch, record);
  UncaughtExceptions uncaught([&] {
    FailureFacts facts;  // the device is not asked: it might not answer
    facts.status = last_library_status();
    run.record_failure(facts);
    return leave_record(launch, record, run, /*failed=*/true);
  });
  bool failed = false;
  try {
    run.run();
    uncaught.claim();
  } catch (...) {
    uncaught.claim();
    failed = true;
    run.record_failure(run.facts());
  }
  const int code = leave_record(launch, record, run, failed);
  if (!run.on_gpu()) return code;
  std::fflush(nullptr);
  _exit(code);  // no destructors: those of NCCL's groups wait for peers that may be gone
}

}  // namespace sweep::rank

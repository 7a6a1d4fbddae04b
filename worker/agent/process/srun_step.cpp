#include "worker/agent/process/srun_step.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/fail.h"
#include "base/process.h"
#include "schema/agent_call.h"
#include "worker/agent/process/process.h"
#include "worker/agent/process/spawn.h"

namespace sweep::agent {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> srun_words(const std::string& srun, i64 other_nodes) {
  const std::string others = std::to_string(other_nodes);
  // A heterogeneous job has its first node in a component of its own, and the others in its second.
  const bool heterogeneous = std::getenv("SLURM_HET_SIZE") != nullptr;
  std::vector<std::string> words;
  // In a step, SLURM_JOB_NODELIST may name that step's node alone, and srun prefers it to what the job says.
  if (!heterogeneous) words = {"/usr/bin/env", "-u", "SLURM_JOB_NODELIST"};
  // --export=ALL passes on what the prologue set, too.
  for (const std::string& word :
       {srun, std::string("--overlap"), std::string("--export=ALL"),
        std::string(heterogeneous ? "--het-group=1" : "--relative=1"), "--nodes=" + others,
        "--ntasks=" + others, std::string("--ntasks-per-node=1"), std::string("--mpi=none"),
        std::string("--cpu-bind=none"), std::string("--kill-on-bad-exit=0"), std::string("--wait=0"),
        std::string("--no-kill")})
    words.push_back(word);
  return words;
}

AgentCall call_of_node_agents(const Options& options) {
  AgentCall call;
  call.join = true;
  call.spool = options.spool;
  call.allocation = options.allocation;
  call.incarnation = options.incarnation;
  call.slots = options.slots;
  call.rank_program = options.rank_program;
  call.lease_s = options.lease_s;
  call.bind = options.bind;
  call.zygote = options.zygote;
  call.pid_namespace = options.pid_namespace;
  return call;
}

}  // namespace

Expected<fs::path> program_for_peers(const fs::path& self, const fs::path& spool) {
  std::error_code ec;
  const fs::path path = fs::read_symlink(self, ec);
  if (!ec && fs::exists(path)) return path;
  const fs::path copy = spool / "sweep-agent";
  fs::copy_file(self, copy, fs::copy_options::overwrite_existing, ec);
  if (!ec) fs::permissions(copy, fs::perms::owner_all, ec);
  if (ec) return fail("{}: a copy of the agent's program cannot be made: {}", copy.string(), ec.message());
  return copy;
}

Expected<pid_t> start_srun_step(const Options& options, const JoinLine& where_to_join) {
  SWEEP_GET(const auto program, program_for_peers("/proc/self/exe", options.spool));
  const auto srun = find_program("srun");
  if (!srun) return fail("srun is not on PATH: the agents of the other nodes cannot be started");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail("no pipe for srun");
  Spawn step;
  step.argv = srun_words(srun->string(), options.nodes - 1);
  step.argv.push_back(program.string());
  for (auto& word : agent_words(call_of_node_agents(options))) step.argv.push_back(std::move(word));
  step.input = ends[0];
  const auto pid = spawn(step);
  ::close(ends[0]);
  if (pid)
    tell_launcher(ends[1], AgentReady{where_to_join});
  else
    ::close(ends[1]);
  return pid;
}

}  // namespace sweep::agent

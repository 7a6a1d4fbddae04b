#include "orchestrator/launch/slurm/orchestrator_script.h"

#include "base/text.h"
#include "orchestrator/launch/batch/batch_script.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "runtime/attempt_token.h"

namespace sweep::launch {
namespace {

// The variable tells the orchestrator which job it is: any signal then ends it alone, since
// proctrack/linuxproc signals every process of a job. Where the signal reaches only this script, SIGKILL does
// the same. Nothing of this job's own surroundings may reach the jobs it submits.
constexpr const char* kLife = R"(
job=$SLURM_JOB_ID again=
[ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] || again=--take-over
export SWEEP_ORCHESTRATOR_JOB="$job@$SLURM_CLUSTER_NAME"
for name in $(compgen -e); do
  case $name in SLURM_CONF) ;; SLURM_* | SLURMD_* | SBATCH_*) unset "$name" ;; esac
done
leave() { kill -KILL "$sweep" 2>/dev/null; wait "$sweep" 2>/dev/null; }
trap 'leave; echo "ended by Slurm; what this sweep holds lives on" >&2; exit 143' TERM
requeue() {
  leave
  scontrol requeue "$job" || {
    echo "near its time limit, and Slurm does not take job $job back into the queue: go on with sweep resume" >&2
    exit 1
  }
  echo "near its time limit: back in the queue" >&2
  exit 0
}
trap requeue USR1
)";

}  // namespace

std::string orchestrator_job_name(const std::filesystem::path& absolute_db, const std::string& sweep) {
  return "sweep-run-" + allocation_key(sweep, absolute_db);
}

Expected<std::string> orchestrator_script(const OrchestratorJob& job) {
  std::vector<std::string> lines{slurm_directive("job-name", job.name),
                                 slurm_directive("partition", job.partition)};
  for (const auto& [name, value] : job.asks) lines.push_back(slurm_directive(name, value));
  for (const char* line : {"--nodes=1", "--ntasks=1", "--cpus-per-task=1", "--mem=1G", "--requeue",
                           "--open-mode=append", "--signal=B:USR1@120"})
    lines.emplace_back(line);
  lines.push_back(slurm_directive("output", slurm_file_name(job.log)));
  auto head = batch_script_head("#SBATCH", lines);
  if (!head) return head;
  std::string out = std::move(*head);
  out +=
      "# The orchestrator of a sweep: asks for allocations, hands out trials, stores results; it computes "
      "nothing.";
  out += kLife;
  for (const auto& word : job.words) out += shell_word(word) + " ";
  return out + "$again &\nsweep=$!\nwait \"$sweep\"\n";
}

}  // namespace sweep::launch

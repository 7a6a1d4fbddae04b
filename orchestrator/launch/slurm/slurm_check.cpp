// The checks of `sweep doctor --on slurm`: the controller, the partition, sbatch, and one task on each node.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/time.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/probe_answer.h"
#include "orchestrator/launch/slurm/slurm_config.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/slurm/slurm_state.h"
#include "schema/version.h"

namespace sweep::launch {
namespace {

constexpr double kCheckLimit = 20, kSrunLimit = 120;  // seconds

Finding check_controller() {
  const auto answer = run_alone({"scontrol", "ping"}, kCheckLimit);
  const std::string line = first_line(answer.out + answer.err);
  if (answer.ok() && answer.out.find("UP") != std::string::npos) return {"slurmctld", Health::kGood, line};
  return {"slurmctld", Health::kBad,
          fmt::format("{}: this must be a machine from which sbatch works (PATH, SLURM_CONF, a login node)",
                      line.empty() ? "no answer" : line)};
}

Finding check_partition(const SlurmOptions& options, i64 nodes) {
  const std::string& partition = *options.partition;
  const auto answer = run_alone(sinfo_of(partition), kCheckLimit);
  const std::string what = partition.empty() ? "partition" : "partition " + partition;
  const auto facts = read_sinfo(answer.out);
  if (!answer.ok() || facts.nodes == 0)
    return {what, Health::kBad,
            fmt::format("Slurm has none of that name: {}; `sinfo -s` lists them",
                        first_line(answer.err.empty() ? "no nodes in it" : answer.err))};
  if (!facts.up)
    return {what, Health::kBad, "it is not up: choose another one with launch: {slurm: {partition: NAME}}"};
  if (facts.working < nodes)
    return {what, Health::kBad,
            fmt::format("{} of its {} nodes work{}, {} are wanted: `sinfo -R` says why the others do not",
                        facts.working, facts.nodes, facts.others.empty() ? "" : " (" + facts.others + ")",
                        nodes)};
  return {what, Health::kGood, fmt::format("up, {} of {} nodes work", facts.working, facts.nodes)};
}

// The script that a run would submit, shown to sbatch without submitting it.
Finding check_submission(const CheckRequest& request, const SlurmOptions& options) {
  AllocationRequest allocation;
  allocation.id = "a0001-00000000";
  allocation.spool = request.db.string() + ".spool/" + allocation.id;
  allocation.nodes = request.nodes, allocation.hardware = request.hardware, allocation.seconds = 600;
  const auto preview =
      slurm_script(allocation, options, request.programs).and_then([](const std::string& script) {
        return test_submission(script);
      });
  if (!preview) return {"submission", Health::kBad, preview.error().message};
  if (preview->accepted) return {"submission", Health::kGood, "sbatch would take it"};
  return {"submission", Health::kBad,
          fmt::format("{}: `sweep plan GRID --sbatch` shows what was asked", first_line(preview->answer))};
}

// One task of the agent's probe on each node.
std::vector<std::string> srun_words(const CheckRequest& request, const SlurmOptions& options,
                                    const std::string& file) {
  std::vector<std::string> words{"srun", fmt::format("--nodes={}", request.nodes), "--ntasks-per-node=1",
                                 "--quiet", "--mpi=none"};
  if (options.existing_job > 0) {
    words.push_back(fmt::format("--jobid={}", options.existing_job));
    words.emplace_back("--overlap");
  } else {
    words.insert(words.end(), {"--immediate=60", "--time=5", "--job-name=sweep-doctor"});
    for (const auto& [name, value] : sbatch_options_for(request.hardware, options))
      words.push_back(fmt::format("--{}={}", name, value));
  }
  for (const auto& word : {request.programs.agent.string(), std::string("--probe"),
                           request.db.parent_path().string(), request.programs.rank.string()})
    words.push_back(word);
  for (const auto& path : {file, request.working_folder})
    if (!path.empty()) words.push_back(path);
  return words;
}

// A file of a name of its own beside the database; removed with it.
class FileBesideDatabase {
 public:
  explicit FileBesideDatabase(const std::filesystem::path& db)
      : path_((db.parent_path() / ".sweep-doctor-XXXXXX").string()), fd_(::mkstemp(path_.data())) {}
  ~FileBesideDatabase() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(path_.c_str());
  }
  FileBesideDatabase(const FileBesideDatabase&) = delete;
  FileBesideDatabase& operator=(const FileBesideDatabase&) = delete;
  // Empty: it could not be made, and the check of the folder says so.
  std::string path() const { return fd_ < 0 ? std::string() : path_; }

 private:
  std::string path_;
  int fd_;
};

std::vector<Finding> check_nodes(const CheckRequest& request, const SlurmOptions& options) {
  const FileBesideDatabase file(request.db);
  const auto asked = unix_ns_now();
  const auto answer = run_alone(srun_words(request, options, file.path()), kSrunLimit);
  const auto answered = unix_ns_now();
  const auto probes = probes_in(answer.out);
  if (probes.empty())
    return {{"nodes", Health::kBad,
             fmt::format("srun of sweep-agent: {}; the program must lie on a filesystem that all nodes "
                         "share, and {} nodes must be free within a minute (or stand in an allocation: "
                         "--jobid)",
                         answer.timed_out ? "no answer in time" : first_line(answer.err), request.nodes)}};
  std::vector<Finding> out;
  for (const auto& probe : probes) {
    const NodeWants wants{probe.host.empty() ? "a node" : probe.host,
                          kVersion,
                          request.db.parent_path().string(),
                          file.path(),
                          request.programs.rank.string(),
                          request.hardware,
                          request.working_folder,
                          true,
                          asked,
                          answered};
    for (auto& finding : request.judge(probe, wants)) out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace

std::vector<Finding> check_slurm(const SlurmOptions& options, const CheckRequest& request) {
  std::vector<Finding> findings{check_controller()};
  if (!any_bad(findings) && options.existing_job == 0) {
    findings.push_back(check_partition(options, request.nodes));
    findings.push_back(check_submission(request, options));
  }
  if (!any_bad(findings))
    for (auto& finding : check_nodes(request, options)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace sweep::launch

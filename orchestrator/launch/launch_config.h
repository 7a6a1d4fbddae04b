// LaunchConfig: one way to obtain allocations (this machine, hosts over ssh, a batch system), with its
// settings parsed once. It makes the Launcher of a run, and answers what plan, doctor and clean ask.
// A new launcher implements this and Launcher (launcher.h) in a folder of this room, and gets one line in
// orchestrator/driver/registry.cpp.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "orchestrator/launch/finding.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/programs.h"
#include "schema/launch_settings.h"
#include "schema/plan_entry.h"

namespace sweep::launch {

// The request of a run to its launcher before it starts.
struct RunRequest {
  i64 slots = 0;      // slots of a node, by the command line; 0: by the settings
  i64 own_slots = 1;  // slots of this machine
};

// Limits of what a run may request from its launcher.
struct RunLimits {
  // Allocations by what trials need of nodes and hardware; else one allocation of this machine takes them
  // all.
  bool allocate_per_shape = false;
  i64 slots = 1;            // CPU ranks or GPUs of a node at once; 1: every trial has its nodes to itself
  i64 max_nodes = 0;        // held at once, all allocations together; 0: what the largest trial needs
  i64 max_allocations = 1;  // held at once
  std::optional<double> time_s;  // the longest that an allocation may be asked for
  // Nodes of one allocation, unless a trial needs more; 0: what max_nodes leaves.
  i64 allocation_nodes = 0;
  bool all_nodes = false;  // an allocation takes whatever max_nodes leaves: those nodes are held anyway
  i64 idle_nodes = 0;      // the scheduler's idle nodes when it was asked; 0: none, or not known
  std::optional<double> spread_s;                   // predicted work that is worth a further idle node
  std::optional<double> min_work_per_node_s;        // predicted work that is worth a node of its own
  std::map<std::string, double> usd_per_node_hour;  // key: hardware for which the settings name prices
};

// The largest number of trials side by side on a node, and the setting that says so.
struct SlotLimit {
  i64 slots = 1;
  std::string setting;
};

// GPUs of a node, and which setting says so.
struct KnownGpus {
  i64 count = 0;
  std::string setting;
};

// Bounds of a simulated cluster; nullopt: the settings do not name them.
struct ClusterSize {
  std::optional<i64> max_nodes, max_allocations, allocation_nodes;
  std::optional<double> time_s;
  double spread_s = 0;
};

// The script of an allocation as a run would submit it, and what the scheduler answers to a trial submission.
struct Preview {
  std::string script;
  bool accepted = false;
  std::string answer;
};

// One allocation of the database that may have left something.
struct AllocationPlace {
  AllocationId id;
  std::filesystem::path spool;
  bool open = false;  // the database does not know that it ended
};

// Leftovers of ended runs: jobs of a scheduler, processes and folders of other hosts.
class Leftovers {
 public:
  virtual ~Leftovers() = default;
  // One line for each; none: nothing is left.
  virtual std::vector<std::string> lines() const = 0;
  // "<host>: <why>" of hosts that did not answer: what they have is not known.
  virtual std::vector<std::string> unanswered() const { return {}; }
  // Ends all of it. One sentence for each that did not end.
  virtual std::vector<std::string> end() = 0;
};

class LaunchConfig {
 public:
  virtual ~LaunchConfig() = default;

  // Trials compute on the cores and GPUs of this machine.
  virtual bool uses_this_machine() const { return false; }
  // The treatment of slow nodes: "show", "leave_out", or empty.
  virtual std::string screen() const { return {}; }
  // A plan predicted to take more GPU-hours needs a confirmation; 0: none does.
  virtual double confirm_gpu_hours() const { return 0; }
  // Options of the job that runs the orchestrator: who pays for allocations pays for it.
  virtual std::map<std::string, std::string> orchestrator_options() const { return {}; }

  // Error: settings that no run takes.
  virtual Expected<SlotLimit> slot_limit(i64 requested) const = 0;
  // GPUs of a node that the settings ask for; nullopt: they do not say.
  virtual std::optional<KnownGpus> gpus_of_node(const std::string& hardware) const {
    (void)hardware;
    return std::nullopt;
  }
  // Why some trials would stay pending for lack of hosts; nullopt: none would.
  virtual std::optional<std::string> lacking_hosts(std::span<const PlanEntry>) const { return std::nullopt; }
  // The cluster's size, for simulations. nullopt: it is no cluster with a queue.
  virtual std::optional<ClusterSize> cluster_size() const { return std::nullopt; }

  // Asks the system what bounds a run. Error: no run is possible with these settings.
  virtual Expected<RunLimits> prepare(const RunRequest&) = 0;
  // REQUIRES: prepare() succeeded.
  virtual std::unique_ptr<Launcher> make(boost::asio::io_context&, const Programs&, Launcher::Sink) const = 0;

  // REQUIRES: prepare() succeeded. Error: this launcher submits no scripts, or not this one.
  virtual Expected<Preview> preview(const AllocationRequest&, const Programs&) const {
    return fail("this launcher submits no scripts: there is nothing to show");
  }
  // Checks what a run relies on, in the order in which it would fail. Error: settings that no run takes.
  virtual Expected<std::vector<Finding>> check(const CheckRequest&) const {
    return fail("this launcher has no nodes to check: `sweep doctor` without --on checks this machine");
  }
  // Nodes of the trial that doctor runs over the nodes.
  virtual i64 nodes_to_check(i64 requested) const { return requested; }
  // Leftovers of these allocations of this launcher; none: it leaves nothing but processes of this machine.
  // Error: they are not known.
  virtual Expected<std::unique_ptr<Leftovers>> leftovers(std::span<const AllocationPlace>) const {
    return std::unique_ptr<Leftovers>();
  }
};

// The launchers, one folder each. `existing_job`: a job whose nodes are used; 0: none.
Expected<std::unique_ptr<LaunchConfig>> configure_local(const LaunchSettings&, i64 existing_job);
Expected<std::unique_ptr<LaunchConfig>> configure_slurm(const LaunchSettings&, i64 existing_job);
Expected<std::unique_ptr<LaunchConfig>> configure_gridengine(const LaunchSettings&, i64 existing_job);
Expected<std::unique_ptr<LaunchConfig>> configure_ssh(const LaunchSettings&, i64 existing_job);

}  // namespace sweep::launch

// The head agent's other nodes: who starts them, joins, is lost, and is told what.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "base/time.h"
#include "schema/agent_call.h"
#include "schema/codec.h"
#include "schema/version.h"
#include "worker/agent/node/agent.h"
#include "worker/agent/process/spawn.h"

namespace sweep::agent {
namespace {

namespace fs = std::filesystem;

constexpr double kRanksEndWithin = 2;  // of a node agent that ends its ranks by itself, after the lease

// The program of this name on PATH; empty: there is none.
std::string on_path(const char* name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const fs::path file = fs::path(folder) / name; ::access(file.c_str(), X_OK) == 0) return file;
  return {};
}

}  // namespace

void tell_launcher(int fd, const nlohmann::json& line) {
  if (fd < 0) return;
  const std::string text = dump(line) + "\n";
  (void)!::write(fd, text.data(), text.size());
  ::close(fd);
}

Expected<void> Agent::open_hub() {
  const auto here = choose_endpoint(options_.interface);
  if (!here) return tl::unexpected(here.error());
  crew_.set_endpoint(*here);
  hub_ = std::make_unique<HeadServer>(
      io_, options_.nodes, options_.lease_s,
      HeadServer::Events{[this](i64 node, const nlohmann::json& hello) { node_joined(node, hello); },
                         [this](i64 node, Frame frame) { node_said(node, std::move(frame)); },
                         [this](i64 node, const std::string& why) { node_lost(node, why); }});
  address_ = here->address;
  spdlog::info("waiting for {} node agents on {} ({})", options_.nodes - 1, here->address, here->interface);
  return hub_->listen(*here);
}

void Agent::say_ready() {
  nlohmann::json line = {{"ready", true}, {"version", kVersion}, {"pid", outside_pid(inside_, ::getpid())}};
  if (hub_ && options_.peers == "launcher") {
    line["address"] = address_;
    line["port"] = hub_->port();
    line["token"] = hub_->secret().hex();
  }
  tell_launcher(options_.ready_fd, line);
}

// One step of the job on its other nodes; the token goes to every task's standard input.
Expected<void> Agent::start_peers() {
  const std::string srun = on_path("srun");
  if (srun.empty()) return fail("srun is not on PATH: the agents of the other nodes cannot be started");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail("no pipe for srun");
  const auto others = std::to_string(options_.nodes - 1);
  // A job whose first node is a part of its own has the others in its second part.
  const bool in_parts = std::getenv("SLURM_HET_SIZE") != nullptr;
  Spawn step;
  // In a step, SLURM_JOB_NODELIST may name that step's node alone, and srun believes it before it asks about the job.
  if (!in_parts) step.argv = {"/usr/bin/env", "-u", "SLURM_JOB_NODELIST"};
  const std::vector<std::string> words{srun,
                                       "--overlap",
                                       "--export=ALL",  // what the prologue set, too
                                       in_parts ? "--het-group=1" : "--relative=1",
                                       "--nodes=" + others,
                                       "--ntasks=" + others,
                                       "--ntasks-per-node=1",
                                       "--mpi=none",
                                       "--cpu-bind=none",
                                       "--kill-on-bad-exit=0",
                                       "--wait=0",
                                       "--no-kill",
                                       fs::read_symlink("/proc/self/exe").string()};
  step.argv.insert(step.argv.end(), words.begin(), words.end());
  AgentCall call;
  call.join = true;
  call.spool = options_.spool;
  call.allocation = options_.allocation;
  call.incarnation = options_.incarnation;
  call.slots = options_.slots;
  call.rank_program = options_.rank_program;
  call.lease_s = options_.lease_s;
  call.bind = options_.bind;
  call.zygote = options_.zygote;
  call.pid_namespace = options_.pid_namespace;
  for (auto& word : agent_words(call)) step.argv.push_back(std::move(word));
  step.input = ends[0];
  const auto pid = spawn(step);
  ::close(ends[0]);
  tell_launcher(pid ? ends[1] : -1,
                {{"address", address_}, {"port", hub_->port()}, {"token", hub_->secret().hex()}});
  if (!pid) return tl::unexpected(pid.error());
  crew_.spare(*pid, [this] {  // no agent of another node is left, or none ever came
    srun_ended_ = true;
    if (left_ && others_are_gone()) return io_.stop();
    check_joined();
  });
  return {};
}

void Agent::node_joined(i64 node, const nlohmann::json& hello) {
  const auto record = hello.contains("record") ? from_json<NodeRecord>(hello["record"]) : fail("no record");
  if (record) {
    hosts_[node] = record->host;
    records_[node] = *record;
    mailbox_.send(spool::kNode, to_json(*record));
  }
  spdlog::info("{} has joined", name_of(node));
  if (!serving_) check_joined();
}

// Serves once every node is there, or with those that are when the time for joining is over.
void Agent::check_joined() {
  if (serving_ || screening_ || left_) return;
  if (hub_ && !hub_->all_joined()) {
    if (!srun_ended_ && steady_s() - began_s_ < options_.join_limit_s && leaving_.empty()) return;
    const auto why =
        srun_ended_
            ? std::string("the step that starts the other nodes' agents has ended; srun's words are above")
            : fmt::format("not within {} s", options_.join_limit_s);
    for (i64 node = 1; node < options_.nodes; ++node)
      if (!hub_->joined(node)) {
        placement_.give_up(node);
        spdlog::warn("node {} has not joined and gets no work: {}", node, why);
        absent_ += fmt::format("{}node {}", absent_.empty() ? " (never joined, see slurm.log: " : ", ", node);
      }
    if (!absent_.empty()) absent_ += ")";
  }
  if (hub_) hub_->stop_listening();
  options_.screen.empty() ? serve() : screen_nodes();
}

void Agent::node_lost(i64 node, const std::string& why) {
  if (left_) {
    if (others_are_gone()) io_.stop();
    return;
  }
  spdlog::warn("{} is lost: {}", name_of(node), why);
  placement_.give_up(node);
  // It may be out of reach and alive: its ranks end when its own lease has run out.
  dead_at_s_[node] = steady_s() + options_.lease_s + kRanksEndWithin;
  for (auto run = running_.begin(); run != running_.end();) (run++)->second->node_lost(node, why);
  start_next();
}

void Agent::node_said(i64 node, const Frame& frame) {
  if (text_of(frame.head, "kind") != kLeave) return hear(node, frame);
  placement_.give_up(node);  // it ends what it runs and says so before it goes
  start_next();
}

void Agent::tell(i64 node, const Frame& frame) {
  if (node == 0) return crew_.obey(frame);
  hub_->send(node, frame);
}

std::string Agent::name_of(i64 node) const {
  const auto host = hosts_.find(node);
  return host == hosts_.end() ? fmt::format("node {}", node)
                              : fmt::format("node {} ({})", node, host->second);
}

}  // namespace sweep::agent

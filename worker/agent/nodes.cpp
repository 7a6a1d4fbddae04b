// The head agent's other nodes: who starts them, joins, is lost, and is told what.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "schema/codec.h"
#include "schema/version.h"
#include "worker/agent/agent.h"
#include "worker/agent/clock.h"
#include "worker/agent/spawn.h"

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
  hub_ = std::make_unique<Hub>(
      io_, options_.nodes, options_.lease_s,
      Hub::Events{[this](i64 node, const nlohmann::json& hello) { node_joined(node, hello); },
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
  step.argv = {srun,
               "--overlap",
               in_parts ? "--het-group=1" : "--relative=1",
               "--nodes=" + others,
               "--ntasks=" + others,
               "--ntasks-per-node=1",
               "--mpi=none",
               "--cpu-bind=none",
               "--kill-on-bad-exit=0",
               "--wait=0",
               "--no-kill",
               fs::read_symlink("/proc/self/exe").string(),
               "run",
               "--join",
               "--spool",
               options_.spool.string(),
               "--allocation",
               options_.allocation,
               "--incarnation",
               std::to_string(options_.incarnation),
               "--slots",
               std::to_string(options_.slots),
               "--rank-program",
               options_.rank_program.string(),
               "--lease",
               fmt::format("{}", options_.lease_s)};
  if (options_.bind) step.argv.emplace_back("--bind");
  if (!options_.zygote) step.argv.emplace_back("--no-zygote");
  if (!options_.pid_namespace) step.argv.emplace_back("--no-namespace");
  step.input = ends[0];
  const auto pid = spawn(step);
  ::close(ends[0]);
  tell_launcher(pid ? ends[1] : -1,
                {{"address", address_}, {"port", hub_->port()}, {"token", hub_->secret().hex()}});
  if (!pid) return tl::unexpected(pid.error());
  crew_.spare(*pid);
  return {};
}

void Agent::node_joined(i64 node, const nlohmann::json& hello) {
  const auto record = hello.contains("record") ? from_json<NodeRecord>(hello["record"]) : fail("no record");
  if (record) {
    hosts_[node] = record->host;
    mailbox_.send(spool::kNode, to_json(*record));
  }
  spdlog::info("{} has joined", name_of(node));
  if (!serving_) check_joined();
}

// Serves once every node is there, or with those that are when the time for joining is over.
void Agent::check_joined() {
  if (serving_ || left_) return;
  if (hub_ && !hub_->all_joined()) {
    if (steady_s() - began_s_ < options_.join_limit_s && leaving_.empty()) return;
    for (i64 node = 1; node < options_.nodes; ++node)
      if (!hub_->joined(node)) {
        placement_.give_up(node);
        spdlog::warn("node {} has not joined within {} s and gets no work", node, options_.join_limit_s);
      }
  }
  if (hub_) hub_->stop_listening();
  serve();
}

void Agent::node_lost(i64 node, const std::string& why) {
  if (left_) {
    if (!hub_->any_connected()) io_.stop();
    return;
  }
  spdlog::warn("{} is lost: {}", name_of(node), why);
  placement_.give_up(node);
  // It may be out of reach and alive: its ranks end when its own lease has run out.
  dead_at_s_[node] = steady_s() + options_.lease_s + kRanksEndWithin;
  for (auto run = running_.begin(); run != running_.end();) (run++)->second->node_lost(node, why);
  start_next();
}

void Agent::node_said(i64 node, Frame frame) {
  if (text_of(frame.head, "kind") != kLeave) return hear(node, frame);
  placement_.give_up(node);  // it ends what it runs and says so before it goes
  start_next();
}

void Agent::tell(i64 node, Frame frame) {
  if (node == 0) return crew_.obey(frame);
  hub_->send(node, frame);
}

std::string Agent::name_of(i64 node) const {
  const auto host = hosts_.find(node);
  return host == hosts_.end() ? fmt::format("node {}", node)
                              : fmt::format("node {} ({})", node, host->second);
}

}  // namespace sweep::agent

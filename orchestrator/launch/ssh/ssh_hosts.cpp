#include "orchestrator/launch/ssh/ssh_hosts.h"

#include <fmt/format.h>
#include <zlib.h>

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/proc.h"
#include "base/text.h"
#include "orchestrator/launch/allocation_call.h"
#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/probe_answer.h"
#include "orchestrator/launch/ssh/ssh_leftovers.h"
#include "orchestrator/launch/ssh/ssh_refusal.h"
#include "runtime/attempt_token.h"
#include "schema/codec.h"
#include "schema/frame.h"
#include "schema/version.h"

namespace sweep::launch {

namespace {

constexpr double kShort = 30, kCopy = 300, kStart = 60;  // seconds

Expected<std::string> agent_bytes(const Programs& programs) {
  return files::read(programs.agent, std::size_t{1} << 30);
}

// The name of this build's agent on a host: two builds share a file by chance alone, by two checksums of 32 bits.
std::string agent_name(const std::string& bytes) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  return fmt::format("sweep-agent-{}-{:08x}-{:08x}", kVersion, ::crc32_z(0, data, bytes.size()),
                     ::adler32_z(1, data, bytes.size()));
}

// The folder's name on the hosts: this allocation of this database of this machine.
std::string spool_name(const AllocationRequest& request) {
  return allocation_key(request.id, fmt::format("/{}{}", proc::host_name(), request.spool.string()));
}

// Empty: every trial runs a command.
std::string rank_on(const SshHost& host, const Programs& programs) {
  return programs.rank.empty() || host.rank.empty() ? programs.rank.string() : host.rank;
}

std::string probe_line(const std::string& agent, const std::string& rank) {
  const std::string probe = shell_word(agent) + " --probe";
  if (rank.empty()) return probe;
  return fmt::format(
      "{} && {{ [ -x {} ] || {{ echo {} >&2; exit 7; }}; }}", probe, shell_word(rank),
      shell_word(fmt::format("{} is not there or cannot be executed: bring it (scripts/deploy), "
                             "or name its path with rank",
                             rank)));
}

}  // namespace

SshHosts::SshHosts(SshSurroundings& around, const AllocationRequest& request, std::vector<SshHost> hosts)
    : around_(around), request_(request), hosts_(std::move(hosts)), places_(hosts_.size()) {}

void SshHosts::report_to(SshHostsEvents& events, std::weak_ptr<void> owner) {
  events_ = &events;
  owner_ = std::move(owner);
}

Expected<void> SshHosts::keep_record() const {
  nlohmann::json hosts = nlohmann::json::array();
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    hosts.push_back({{"host", hosts_[i].name}, {"agent", places_[i].agent}, {"spool", places_[i].spool}});
  return launch::keep_record(request_, "ssh", {{"hosts", std::move(hosts)}});
}

bool SshHosts::adopt(const nlohmann::json& record) {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    places_[i].agent = text_of(record["hosts"][i], "agent");
    places_[i].spool = text_of(record["hosts"][i], "spool");
  }
  return !places_[0].spool.empty();
}

std::string SshHosts::bridge_line() const {
  return fmt::format("exec {} bridge --spool {}", shell_word(places_[0].agent), shell_word(places_[0].spool));
}

void SshHosts::prepare() {
  waited_for_ = hosts_.size();
  for (std::size_t node = 0; node < hosts_.size(); ++node)
    start_coroutine(around_.io, prepare_host(owner_.lock(), node));
}

awaitable<void> SshHosts::prepare_host(Owner, std::size_t node) {
  bool can_run = co_await make_folder(node);
  if (can_run && places_[node].agent.empty()) can_run = co_await bring_agent(node);
  if (can_run) can_run = co_await probe(node);
  if (can_run && --waited_for_ == 0) events_->hosts_ready();
}

awaitable<std::optional<std::string>> SshHosts::ask(std::size_t node, std::string line, std::string input,
                                                    double limit_s, const char* what) {
  if (stopped_) co_return std::nullopt;
  const std::string host = hosts_[node].name;
  const auto said = co_await around_.shell.ask(host, std::move(line), std::move(input), limit_s);
  if (stopped_) co_return std::nullopt;
  if (said.code == 0) co_return said.out;
  if (said.code == 255)
    events_->host_failed(host, why_ssh_failed(by_hand(around_.options, host), said.err));
  else
    events_->host_failed(
        host, fmt::format(
                  "{}: {}", what,
                  said.timed_out ? "no answer in time" : last_line(said.err.empty() ? said.out : said.err)));
  co_return std::nullopt;
}

awaitable<bool> SshHosts::make_folder(std::size_t node) {
  const auto line =
      fmt::format("umask 077 && mkdir -p {0} && cd {0} && mkdir -p bin spool && echo \"$HOME\" && pwd -P",
                  remote_word(*around_.options.directory));
  const auto out =
      co_await ask(node, line, "", kShort, "its folder cannot be made (name another one with directory)");
  if (!out) co_return false;
  Place& place = places_[node];
  SshHost& host = hosts_[node];
  const auto home = out->substr(0, out->find('\n'));
  host.agent = remote_path(host.agent, home);
  host.rank = remote_path(host.rank, home);
  place.home = last_line(*out);
  place.spool = fmt::format("{}/spool/{}/n{}", place.home, spool_name(request_), node);
  place.agent = host.agent;
  co_return true;
}

// Copies this build's agent there, if it is not there already. Its bytes are not kept while the host is asked: many
// hosts are asked at once.
awaitable<bool> SshHosts::bring_agent(std::size_t node) {
  const auto name = agent_bytes(around_.programs).map(agent_name);
  if (!name) {
    events_->failed(name.error().message);
    co_return false;
  }
  places_[node].agent = fmt::format("{}/bin/{}", places_[node].home, *name);
  const auto agent = shell_word(places_[node].agent);
  const auto look = fmt::format("if [ -x {0} ]; then echo here; else echo absent; fi", agent);
  const auto found = co_await ask(node, look, "", kShort, "it cannot be asked for the agent");
  if (!found) co_return false;
  if (last_line(*found) == "here") co_return true;
  auto bytes = agent_bytes(around_.programs);
  if (!bytes) {
    events_->failed(bytes.error().message);
    co_return false;
  }
  // Two hosts may be one machine, or share a home: whoever renames last puts the same bytes there, and
  // process numbers of two machines may be equal.
  const auto bring = fmt::format(
      "umask 077; t={0}.{2}.$$; cat > \"$t\" && {{ [ \"$(wc -c < \"$t\")\" -eq {1} ] || {{ echo 'it arrived "
      "in part' >&2; false; }}; }} && chmod 700 \"$t\" && mv -f \"$t\" {0} || {{ rm -f \"$t\"; exit 1; }}",
      agent, bytes->size(), shell_word(fmt::format("{}.{}", request_.id, node)));
  const auto brought =
      co_await ask(node, bring, std::move(*bytes), kCopy, "the agent cannot be copied there");
  co_return brought.has_value();
}

awaitable<bool> SshHosts::probe(std::size_t node) {
  const auto line = probe_line(places_[node].agent, rank_on(hosts_[node], around_.programs));
  const auto out =
      co_await ask(node, line, "", kShort, "it cannot run trials (`sweep doctor --on ssh` tells more)");
  if (!out) co_return false;
  const auto answers = probes_in(*out);
  const auto wrong = wrong_agent(answers.empty() ? ProbeAnswer() : answers.back(), kVersion);
  if (!wrong) co_return true;
  events_->host_failed(hosts_[node].name,
                       fmt::format("{} {}, this is sweep {}: install the same one there, or name none "
                                   "and it is copied",
                                   places_[node].agent, *wrong, kVersion));
  co_return false;
}

std::string SshHosts::agent_line(std::size_t node) const {
  const Place& place = places_[node];
  const SshHost& host = hosts_[node];
  AgentCall call = call_for(request_);
  call.spool = place.spool;  // a path on the host, not here
  call.detach = true;
  call.join = node > 0;
  call.rank_program = rank_on(host, around_.programs);
  call.lease_s = *around_.options.lease_seconds;
  call.zygote = around_.programs.zygote;
  call.bind = request_.slots > 1;
  call.interface = host.interface;
  if (node == 0) {
    call.nodes = static_cast<i64>(hosts_.size());
    call.contact_limit_s = *around_.options.silence_seconds;
    call.screen = around_.programs.screen;
    if (hosts_.size() > 1) call.peers = "launcher";
  }
  std::string out =
      fmt::format("umask 077 && mkdir -p {} && exec {}", shell_word(place.spool), shell_word(place.agent));
  for (const auto& word : agent_words(call)) out += " " + shell_word(word);
  return out;
}

void SshHosts::start() {
  places_[0].starting = true;
  start_coroutine(around_.io, start_head(owner_.lock()));
}

awaitable<void> SshHosts::start_head(Owner owner) {
  const auto out = co_await ask(0, agent_line(0), "", kStart, "the head agent does not start");
  places_[0].starting = false;
  if (places_[0].removal_due) co_await remove(owner, 0);
  if (!out) co_return;
  const auto ready = from_text<AgentReady>(last_line(*out));
  if (!ready || !ready->ready) co_return events_->host_failed(hosts_[0].name, last_line(*out));
  for (std::size_t node = 1; node < hosts_.size(); ++node) {
    places_[node].starting = true;
    start_coroutine(around_.io, join(owner, node, *ready));
  }
  events_->head_started();
}

// The token goes from one agent's standard output to the others' standard input, and nowhere else.
awaitable<void> SshHosts::join(Owner owner, std::size_t node, JoinLine where) {
  where.node = static_cast<i64>(node);
  (void)co_await ask(node, agent_line(node), to_text(where) + "\n", kStart,
                     "its agent does not join the head agent");
  places_[node].starting = false;
  if (places_[node].removal_due) co_await remove(owner, node);
}

// Ends what may be left on every host, brings the rest of the outbox and the ranks' logs here, and removes the
// folders there.
void SshHosts::clean_up() {
  stop();
  waited_for_ = 1;
  for (std::size_t node = 0; node < hosts_.size(); ++node) {
    Place& place = places_[node];
    if (place.agent.empty() || place.spool.empty()) continue;
    ++waited_for_;
    if (place.starting)
      place.removal_due = true;
    else
      start_coroutine(around_.io, remove(owner_.lock(), node));
  }
  boost::asio::post(around_.io, [this, owner = owner_.lock()] { one_cleaned(); });
}

awaitable<void> SshHosts::remove(Owner, std::size_t node) {
  if (abandoned_) co_return;
  const Place& place = places_[node];
  const RemoteNode there{request_.id, hosts_[node].name, place.agent, place.spool, request_.spool, node};
  const auto cleared = co_await clear_host(around_.io, around_.shell, there);
  if (abandoned_) co_return;
  if (!cleared)
    events_->notice(fmt::format(
        "{} could not be cleaned up ({}); agents there end by themselves after {:.0f} s "
        "without contact, and {} stays until `sweep clean --yes` removes it",
        hosts_[node].name, cleared.error().message, *around_.options.silence_seconds, place.spool));
  one_cleaned();
}

void SshHosts::one_cleaned() {
  if (--waited_for_ == 0 && !abandoned_) events_->hosts_cleaned();
}

}  // namespace sweep::launch

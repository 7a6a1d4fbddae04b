#include "orchestrator/launch/ssh/ssh_allocation.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <cassert>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/ssh/ssh_logs.h"
#include "orchestrator/launch/ssh/ssh_refusal.h"
#include "runtime/attempt_token.h"
#include "schema/agent_call.h"
#include "schema/codec.h"
#include "schema/version.h"

namespace sweep::launch {

namespace {

constexpr double kShort = 30, kCopy = 300, kStart = 60, kCleanUp = 120;  // seconds
constexpr double kAfterSilence = 20;  // for agents that end themselves, beyond their own limit

// The name of this build's agent on a host: two builds never share a file.
std::string agent_name(const std::string& bytes) {
  const auto id = boost::uuids::name_generator_sha1(boost::uuids::ns::oid())(bytes);
  return fmt::format("sweep-agent-{}-{}", kVersion, boost::uuids::to_string(id).substr(0, 13));
}

// The folder's name on the hosts: this allocation of this database of this machine.
std::string spool_name(const AllocationRequest& request) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return allocation_key(request.id, fmt::format("/{}{}", host, request.spool.string()));
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

SshAllocation::SshAllocation(SshSurroundings& around, AllocationRequest request, std::vector<SshHost> hosts)
    : around_(around),
      request_(std::move(request)),
      hosts_(std::move(hosts)),
      places_(hosts_.size()),
      mail_(request_) {}

SshAllocation::~SshAllocation() = default;

// Every change of state is made here.
void SshAllocation::handle(SshEvent event) {
  const auto next = next_state(state_, event);
  assert(next && "illegal event: see ssh_state.h");
  if (next) state_ = *next;
}

Expected<void> SshAllocation::start() {
  if (auto opened = mail_.open(); !opened) return opened;
  if (auto kept = keep_record(); !kept) return kept;
  waited_for_ = hosts_.size();
  for (std::size_t node = 0; node < hosts_.size(); ++node) prepare(node);
  return {};
}

Expected<void> SshAllocation::keep_record() const {
  nlohmann::json hosts = nlohmann::json::array();
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    hosts.push_back({{"host", hosts_[i].name}, {"agent", places_[i].agent}, {"spool", places_[i].spool}});
  return launch::keep_record(request_, "ssh", {{"hosts", std::move(hosts)}});
}

Expected<void> SshAllocation::take_up(const nlohmann::json& record) {
  if (auto opened = mail_.open(); !opened) return opened;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    places_[i].agent = text_of(record["hosts"][i], "agent");
    places_[i].spool = text_of(record["hosts"][i], "spool");
  }
  // It was interrupted before its agent was started: what was started is ended, and the next allocation begins anew.
  if (places_[0].spool.empty()) {
    boost::asio::post(around_.io, [self = shared_from_this()] {
      self->clean_up("the run that started it ended before its agents served", true);
    });
  } else {
    handle(SshEvent::kTakenUp);
    open_bridge();
  }
  return {};
}

void SshAllocation::ask(std::size_t node, const std::string& line, std::string input, double limit_s,
                        std::function<void(const std::string& out)> answer, const char* what) {
  around_.shell.ask(
      hosts_[node].name, line, std::move(input), limit_s,
      [self = shared_from_this(), node, what,
       answer = std::move(answer)](const SshShell::CommandResult& said) {
        if (self->stopped()) return;
        if (said.code == 0) return answer(said.out);
        if (said.code == 255)
          return self->give_up_on(
              node, why_ssh_failed(by_hand(self->around_.options, self->hosts_[node].name), said.err));
        self->give_up_on(node,
                         fmt::format("{}: {}", what,
                                     said.timed_out ? "no answer in time"
                                                    : last_line(said.err.empty() ? said.out : said.err)));
      });
}

void SshAllocation::prepare(std::size_t node) {
  ask(
      node,
      fmt::format("umask 077 && mkdir -p {0} && cd {0} && mkdir -p bin spool && echo \"$HOME\" && pwd -P",
                  remote_word(around_.options.directory)),
      "", kShort,
      [this, node](const std::string& out) {
        Place& place = places_[node];
        SshHost& host = hosts_[node];
        const auto home = out.substr(0, out.find('\n'));
        host.agent = remote_path(host.agent, home);
        host.rank = remote_path(host.rank, home);
        place.home = last_line(out);
        place.spool = fmt::format("{}/spool/{}/n{}", place.home, spool_name(request_), node);
        place.agent = host.agent;
        place.agent.empty() ? look_for_agent(node) : probe(node);
      },
      "its folder cannot be made (name another one with directory)");
}

void SshAllocation::look_for_agent(std::size_t node) {
  const auto bytes = files::read(around_.programs.agent, std::size_t{1} << 30);
  if (!bytes) return give_up(bytes.error().message);
  places_[node].agent = fmt::format("{}/bin/{}", places_[node].home, agent_name(*bytes));
  ask(
      node,
      fmt::format("if [ -x {0} ]; then echo here; else echo absent; fi", shell_word(places_[node].agent)), "",
      kShort,
      [this, node](const std::string& out) { last_line(out) == "here" ? probe(node) : bring_agent(node); },
      "it cannot be asked for the agent");
}

void SshAllocation::bring_agent(std::size_t node) {
  auto bytes = files::read(around_.programs.agent, std::size_t{1} << 30);
  if (!bytes) return give_up(bytes.error().message);
  // Two hosts may be one machine, or share a home: whoever renames last puts the same bytes there, and process numbers
  // of two machines may be equal.
  const std::string line = fmt::format(
      "umask 077; t={0}.{2}.$$; cat > \"$t\" && {{ [ \"$(wc -c < \"$t\")\" -eq {1} ] || {{ echo 'it arrived "
      "in "
      "part' >&2; false; }}; }} && chmod 700 \"$t\" && mv -f \"$t\" {0} || {{ rm -f \"$t\"; exit 1; }}",
      shell_word(places_[node].agent), bytes->size(), shell_word(fmt::format("{}.{}", request_.id, node)));
  ask(
      node, line, std::move(*bytes), kCopy, [this, node](const std::string&) { probe(node); },
      "the agent cannot be copied there");
}

void SshAllocation::probe(std::size_t node) {
  ask(
      node, probe_line(places_[node].agent, rank_on(hosts_[node], around_.programs)), "", kShort,
      [this, node](const std::string& out) { probed(node, out); },
      "it cannot run trials (`sweep doctor --on ssh` tells more)");
}

void SshAllocation::probed(std::size_t node, const std::string& out) {
  const auto facts = parse_json(last_line(out));
  const std::string version = facts && facts->is_object() ? text_of(*facts, "version") : "";
  if (version != kVersion)
    return give_up_on(
        node, fmt::format("{} is version '{}', this is sweep {}: install the same one there, or name none "
                          "and it is copied",
                          places_[node].agent, version, kVersion));
  one_ready();
}

void SshAllocation::one_ready() {
  if (--waited_for_ > 0) return;
  if (auto kept = keep_record(); !kept) return give_up(kept.error().message);  // before anything is started
  handle(SshEvent::kHostsReady);
  start_head();
}

std::string SshAllocation::agent_line(std::size_t node) const {
  const Place& place = places_[node];
  const SshHost& host = hosts_[node];
  AgentCall call;
  call.detach = true;
  call.join = node > 0;
  call.spool = place.spool;
  call.allocation = request_.id;
  call.incarnation = request_.incarnation;
  call.slots = request_.slots;
  call.rank_program = rank_on(host, around_.programs);
  call.lease_s = around_.options.lease_s;
  call.zygote = around_.programs.zygote;
  call.bind = request_.slots > 1;
  call.interface = host.interface;
  if (node == 0) {
    call.nodes = static_cast<i64>(hosts_.size());
    call.contact_limit_s = around_.options.silence_s;
    call.screen = around_.programs.screen;
    if (hosts_.size() > 1) call.peers = "launcher";
  }
  std::string out =
      fmt::format("umask 077 && mkdir -p {} && exec {}", shell_word(place.spool), shell_word(place.agent));
  for (const auto& word : agent_words(call)) out += " " + shell_word(word);
  return out;
}

void SshAllocation::start_head() {
  ask(
      0, agent_line(0), "", kStart,
      [this](const std::string& out) {
        const auto ready = parse_json(last_line(out));
        if (!ready || !flag_of(*ready, "ready")) return give_up_on(0, last_line(out));
        handle(SshEvent::kHeadStarted);
        for (std::size_t node = 1; node < hosts_.size(); ++node)
          start_node(node, dump({{"address", text_of(*ready, "address")},
                                 {"port", integer_of(*ready, "port")},
                                 {"token", text_of(*ready, "token")},
                                 {"node", node}}));
        open_bridge();
      },
      "the head agent does not start");
}

// The token goes from one agent's standard output to the others' standard input, and nowhere else.
void SshAllocation::start_node(std::size_t node, const std::string& join) {
  ask(
      node, agent_line(node), join + "\n", kStart, [](const std::string&) {},
      "its agent does not join the head agent");
}

void SshAllocation::open_bridge() {
  SshMailboxClient::Events events;
  events.attached = [this] { attached(); };
  events.news = [this] { news(); };
  events.gone = [this] {
    news();
    const auto bye = mail_.bye();
    clean_up(bye ? bye->reason : "the head agent ended without a last message", !bye);
  };
  events.failed = [this](const std::string& why) { give_up(why); };
  events.remark = [this](const std::string& text) { say(Notice{request_.id, text}); };
  bridge_ = std::make_unique<SshMailboxClient>(
      around_.io, around_.shell, hosts_[0].name,
      fmt::format("exec {} bridge --spool {}", shell_word(places_[0].agent), shell_word(places_[0].spool)),
      request_.spool, around_.options.silence_s + kAfterSilence, std::move(events));
  bridge_->start();
}

void SshAllocation::attached() {
  if (stopped()) return;
  const bool again = state_ == SshState::kServing;
  handle(SshEvent::kAttached);
  if (again) return;
  Started out;
  out.id = request_.id;
  for (const auto& host : hosts_) out.hosts.push_back(host.name);
  out.where = fmt::format("{}", fmt::join(out.hosts, ", "));
  say(out);
  news();
}

void SshAllocation::news() {
  if (state_ != SshState::kServing) return;
  while (!ended()) {
    auto more = mail_.news();
    if (!more) return;
    say(*more);
  }
}

Expected<i64> SshAllocation::post(std::string_view kind, const nlohmann::json& body) {
  if (stopped()) return fail(fmt::format("allocation {} has ended", request_.id));
  auto posted = mail_.post(kind, body);
  if (posted && bridge_) bridge_->push();
  return posted;
}

void SshAllocation::give_up(const std::string& why) {
  if (stopped()) return;
  clean_up(why, true);
}

void SshAllocation::give_up_on(std::size_t node, const std::string& why) {
  if (stopped()) return;
  lost_by_ = hosts_[node].name;
  give_up(fmt::format("{}: {}", lost_by_, why));
}

void SshAllocation::kill() {
  clean_up("killed", true);
}

// Ends what may be left on every host, brings the ranks' logs here, removes the folders there; then it has ended.
void SshAllocation::clean_up(const std::string& reason, bool lost) {
  const bool already = stopped();
  handle(SshEvent::kStopped);
  if (already) return;
  if (!mail_.ours()) return abandon();
  if (bridge_) bridge_->stop();
  waited_for_ = 1;
  const auto one_less = [self = shared_from_this(), reason, lost] {
    if (--self->waited_for_ > 0) return;
    self->handle(SshEvent::kCleanedUp);
    if (self->state_ == SshState::kEnded)
      self->around_.say(Ended{self->request_.id, reason, lost, false, self->lost_by_});
  };
  for (std::size_t node = 0; node < hosts_.size(); ++node) {
    const Place& place = places_[node];
    if (place.agent.empty() || place.spool.empty()) continue;
    ++waited_for_;
    const auto archive = logs_archive(request_.spool, node);
    around_.shell.ask(
        hosts_[node].name, removal_line(place.agent, place.spool, request_.id), "", kCleanUp,
        [self = shared_from_this(), node, archive, one_less](const SshShell::CommandResult& said) {
          if (self->state_ == SshState::kAbandoned) return;
          if (said.code != 0)
            self->say(Notice{
                self->request_.id,
                fmt::format("{} could not be cleaned up ({}); its agents end by themselves after {:.0f} s "
                            "without contact",
                            self->hosts_[node].name, last_line(said.err), self->around_.options.silence_s)});
          unpack_logs(self->around_.io, archive, self->request_.spool, node, one_less);
        },
        archive);
  }
  boost::asio::post(around_.io, one_less);
}

void SshAllocation::abandon() {
  handle(SshEvent::kAbandoned);
  if (bridge_) bridge_->stop();
}

void SshAllocation::say(const Event& event) {
  if (!ended()) around_.say(event);
}

}  // namespace sweep::launch

// SshAllocation: one allocation on hosts reached by ssh: it brings the agent there where it is missing, starts the
// head agent and the node agents, carries the mailbox, and cleans up. States and transitions are in ssh_state.h. The
// agents outlive the connection and this process; a record beside the mailbox lets the next one take them over.
// REQUIRES: used on the event loop only.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/spool_mailbox.h"
#include "orchestrator/launch/ssh/ssh_mailbox_client.h"
#include "orchestrator/launch/ssh/ssh_shell.h"
#include "orchestrator/launch/ssh/ssh_state.h"

namespace sweep::launch {

// What an allocation needs of its launcher.
struct SshSurroundings {
  boost::asio::io_context& io;
  SshShell& shell;
  SshOptions options;
  Programs programs;
  Launcher::Sink say;
};

class SshAllocation : public std::enable_shared_from_this<SshAllocation> {
 public:
  SshAllocation(SshSurroundings& around, AllocationRequest request, std::vector<SshHost> hosts);
  ~SshAllocation();

  Expected<void> start();
  // Of an earlier process, with its record (allocation_record.h).
  Expected<void> take_up(const nlohmann::json& record);

  Expected<i64> post(std::string_view kind, const nlohmann::json& body);
  void acknowledge(std::uint64_t offset) { mail_.acknowledge(offset); }
  void kill();
  void abandon();  // no further event; the agents live on
  const AllocationRequest& request() const { return request_; }
  const std::vector<SshHost>& hosts() const { return hosts_; }
  // Its hosts are free.
  bool ended() const { return state_ == SshState::kEnded || state_ == SshState::kAbandoned; }

 private:
  struct Place {
    std::string home;   // our folder on the host
    std::string agent;  // program there
    std::string spool;  // of this node
  };
  using Then = std::function<void()>;

  void ask(std::size_t node, const std::string& line, std::string input, double limit_s,
           std::function<void(const std::string& out)> answer, const char* what);
  void prepare(std::size_t node);
  void look_for_agent(std::size_t node);
  void bring_agent(std::size_t node);
  void probe(std::size_t node);
  void probed(std::size_t node, const std::string& out);
  void one_ready();
  void attached();
  void handle(SshEvent);
  // Its end is decided: answers that belong to its start or its service are ignored.
  bool stopped() const { return state_ == SshState::kCleaningUp || ended(); }
  void start_head();
  void start_node(std::size_t node, const std::string& join);
  std::string agent_line(std::size_t node) const;
  void open_bridge();
  void news();
  void give_up(const std::string& why);
  void give_up_on(std::size_t node, const std::string& why);  // this node is the reason that it is lost
  void clean_up(const std::string& reason, bool lost);
  Expected<void> keep_record() const;
  void say(const Event& event);

  SshSurroundings& around_;
  AllocationRequest request_;
  std::vector<SshHost> hosts_;
  std::vector<Place> places_;
  SpoolMailbox mail_;
  std::unique_ptr<SshMailboxClient> bridge_;
  SshState state_ = SshState::kPreparing;
  // Hosts that are still prepared, or cleaned up.
  std::size_t waited_for_ = 0;
  // The host by which it is lost.
  std::string lost_by_;
};

}  // namespace sweep::launch

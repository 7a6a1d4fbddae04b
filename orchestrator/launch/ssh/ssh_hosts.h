// SshHosts: the hosts of one allocation and the steps on each: its folder is made, the agent is brought there
// and probed, the head agent and the node agents are started, and at the end what is left is removed and the
// logs are brought here. It decides nothing. REQUIRES: used on the event loop only.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/programs.h"
#include "orchestrator/launch/ssh/ssh_shell.h"
#include "schema/records.h"

namespace sweep::launch {

// The services of the launcher that an allocation needs.
struct SshSurroundings {
  boost::asio::io_context& io;
  SshShell& shell;
  SshOptions options;
  Programs programs;
  Launcher::Sink say;
};

// The reports of SshHosts.
class SshHostsEvents {
 public:
  virtual ~SshHostsEvents() = default;
  virtual void hosts_ready() = 0;
  virtual void head_started() = 0;
  // This host is the reason that the allocation is lost.
  virtual void host_failed(const std::string& host, const std::string& why) = 0;
  // The allocation is lost for a reason on this machine.
  virtual void failed(const std::string& why) = 0;
  virtual void notice(const std::string& text) = 0;
  virtual void hosts_cleaned() = 0;
};

class SshHosts {
 public:
  SshHosts(SshSurroundings& around, const AllocationRequest& request, std::vector<SshHost> hosts);

  // `owner` is kept until what was begun has been answered; it reports to `events`, which lives as long.
  void report_to(SshHostsEvents& events, std::weak_ptr<void> owner);
  void prepare();
  void start();     // after hosts_ready()
  void clean_up();  // hosts_cleaned() follows
  // Answers to prepare() and start() are ignored from now on.
  void stop() { stopped_ = true; }
  // Nothing is reported from now on; what was begun goes on.
  void abandon() { stopped_ = abandoned_ = true; }

  const std::vector<SshHost>& hosts() const { return hosts_; }
  Expected<void> keep_record() const;
  // Takes up the record of an earlier process. False: it was interrupted before its agent was started.
  bool adopt(const nlohmann::json& record);
  // The shell line on the head's host that serves its mailbox.
  std::string bridge_line() const;

 private:
  struct Place {
    std::string home;          // our folder on the host
    std::string agent;         // program there
    std::string spool;         // spool of this node
    bool starting = false;     // its agent was ordered there, and no answer came yet
    bool removal_due = false;  // once that answer is there: the order makes the folder
  };
  using Owner = std::shared_ptr<void>;

  awaitable<void> prepare_host(Owner, std::size_t node);
  // Whether it worked; what did not is reported.
  awaitable<bool> make_folder(std::size_t node);
  awaitable<bool> bring_agent(std::size_t node);
  awaitable<bool> probe(std::size_t node);
  awaitable<void> start_head(Owner);
  awaitable<void> join(Owner, std::size_t node, JoinLine where);
  awaitable<void> remove(Owner, std::size_t node);
  // Returns what the line prints. nullopt: it failed, which is reported as `what`, or the answer does not
  // matter any more.
  awaitable<std::optional<std::string>> ask(std::size_t node, std::string line, std::string input,
                                            double limit_s, const char* what);
  std::string agent_line(std::size_t node) const;
  void one_cleaned();

  SshSurroundings& around_;
  const AllocationRequest& request_;
  std::vector<SshHost> hosts_;
  std::vector<Place> places_;
  SshHostsEvents* events_ = nullptr;
  std::weak_ptr<void> owner_;
  // Hosts that are still prepared, or cleaned up.
  std::size_t waited_for_ = 0;
  bool stopped_ = false, abandoned_ = false;
};

}  // namespace sweep::launch

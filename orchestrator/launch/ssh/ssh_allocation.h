// SshAllocation: one allocation on hosts reached by ssh: it brings the agent there where it is missing,
// starts the head agent and the node agents, carries the mailbox, and cleans up. States and transitions are
// in ssh_state.h. The agents outlive the connection and this process; a record beside the mailbox lets the
// next one take them over. REQUIRES: used on the event loop only.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/launch/spool_mailbox.h"
#include "orchestrator/launch/ssh/ssh_hosts.h"
#include "orchestrator/launch/ssh/ssh_mailbox_client.h"
#include "orchestrator/launch/ssh/ssh_state.h"

namespace sweep::launch {

class SshAllocation : public std::enable_shared_from_this<SshAllocation>,
                      private SshHostsEvents,
                      private MailboxEvents {
 public:
  SshAllocation(SshSurroundings& around, AllocationRequest request, std::vector<SshHost> hosts);
  ~SshAllocation() override;

  Expected<void> start();
  // Takes over the allocation of an earlier process by its record (allocation_record.h).
  Expected<void> adopt(const nlohmann::json& record);

  Expected<i64> post(std::string_view kind, const nlohmann::json& body);
  void acknowledge(std::uint64_t offset) { mail_.acknowledge(offset); }
  void kill() { clean_up({request_.id, "killed", true}); }
  void abandon();  // no further event; the agents live on
  const std::vector<SshHost>& hosts() const { return hosts_.hosts(); }
  // Its hosts are free.
  bool ended() const { return has_ended(state_); }

 private:
  void hosts_ready() override;
  void head_started() override;
  void host_failed(const std::string& host, const std::string& why) override;
  void hosts_cleaned() override;

  void mailbox_attached() override;
  void outbox_grew() override;
  void agent_gone() override;

  // Reports of the hosts and of the mailbox.
  void failed(const std::string& why) override { clean_up({request_.id, why, true}); }
  void notice(const std::string& text) override;

  void handle(SshEvent);
  void connect();
  void clean_up(Ended);

  SshSurroundings& around_;
  AllocationRequest request_;
  SshHosts hosts_;
  SpoolMailbox mail_;
  std::unique_ptr<SshMailboxClient> bridge_;
  SshState state_ = SshState::kPreparing;
  // Reported when its hosts are cleaned up.
  Ended end_;
};

}  // namespace sweep::launch

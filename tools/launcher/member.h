// A node other than 0: finds node 0, joins the job, runs the daemon that mpirun wants on this node, and ends with the
// job's exit code. Then nothing of the job is left on this machine. One per process, in its main thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/launcher/connection.h"
#include "tools/launcher/leftovers.h"
#include "tools/launcher/messages.h"
#include "tools/launcher/reception.h"
#include "tools/supervisor/process.h"
#include "tools/supervisor/signals.h"

namespace lockstep::launcher {

struct MemberOptions {
  std::vector<std::string> addresses{};  // of node 0, tried in turn
  int port = 0;
  Join join{};
  std::chrono::milliseconds limit{300'000};        // to find node 0, and to find it again where it is supervised
  std::map<std::string, std::string> variables{};  // for this node's programs
  bool pass_signals = true;                        // to node 0, which is for the whole job; false: it gets them anyhow
};

class Member {
 public:
  Member(MemberOptions options, const Secret& secret, supervisor::Signals& signals, Say say);

  int run();

 private:
  using Clock = std::chrono::steady_clock;

  bool find();
  std::string try_address(const std::string& address);
  bool is_stopped();
  std::optional<Done> take_part();
  std::optional<Done> read_messages();
  void take_message(const Message& message);
  void start_daemon(const Run& wanted);
  void watch_daemon();
  void take_signal(int number);

  MemberOptions options_;
  Secret secret_;
  supervisor::Signals& signals_;
  Say say_;
  Leftovers leftovers_;
  EndRequest end_request_;
  std::unique_ptr<Connection> head_;
  std::unique_ptr<supervisor::Process> daemon_;
  bool joined_ = false, supervised_ = false;
  std::optional<int> status_;  // with which this node ends
  int requests_ = 0;           // to end, by signals to this process
};

}  // namespace lockstep::launcher

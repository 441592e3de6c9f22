// The job on node 0: mpirun, the daemons that it wants on other nodes, the nodes' news, and signals, until mpirun has
// ended. Then nothing of the job is left on this machine. One per process, in its main thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/launcher/agents.h"
#include "tools/launcher/leftovers.h"
#include "tools/launcher/rendezvous.h"
#include "tools/supervisor/process.h"
#include "tools/supervisor/signals.h"

namespace lockstep::launcher {

struct HeadOptions {
  std::vector<std::string> words{};                     // mpirun's command
  std::map<std::string, std::string> variables{};       // for its environment
  std::map<std::string, std::string> node_variables{};  // for the programs on other nodes
  std::chrono::milliseconds stop_limit{30'000};         // for ranks that were asked to end
};

// How mpirun ended.
struct MpirunsEnd {
  int status = 0;     // as wait() gives it
  bool told = false;  // mpirun was asked to end, or killed
  bool lost = false;  // a node was lost
  bool daemon_failed = false;
};
// The job's exit code: mpirun's, unless that says nothing of the job. Where a node was lost, mpirun may end in any way,
// a crash in its own end among them, and with 0 where a daemon failed (Open MPI 5): that is 205, as Open MPI 4 has it
// for a daemon that was lost. 1: it ended well although it was told to end before the ranks were done.
int job_status(const MpirunsEnd& end);

class HeadJob {
 public:
  // `rendezvous` has all nodes; nullptr: the job is on this node alone, or mpirun reaches the others by ssh.
  HeadJob(HeadOptions options, Rendezvous* rendezvous, supervisor::Signals& signals, Say say);

  // Returns the exit code: as job_status() has it.
  int run();
  // Why the job ended other than by its program; empty: by its program.
  const std::string& reason() const { return reason_; }

 private:
  using Clock = std::chrono::steady_clock;

  void wait();
  void take_news();
  void wait_for_daemons();
  void take_message(int node, const Message& message);
  void start_daemons();
  void take_signal(int number, const std::string& source);
  void ask_ranks();
  void end(const std::string& reason);
  void escalate();

  HeadOptions options_;
  Rendezvous* rendezvous_;
  supervisor::Signals& signals_;
  Say say_;
  Leftovers leftovers_;
  EndRequest end_request_;
  std::optional<Agents> agents_;
  std::unique_ptr<supervisor::Process> mpirun_;
  int ends_ = 0;  // how hard the end has been tried: ranks asked, given no more time, mpirun asked, mpirun killed
  std::optional<Clock::time_point> harder_;
  struct Nodes {
    int daemons = 0;  // that run on other nodes
    bool daemon_failed = false, lost = false;
  } nodes_;
  std::string reason_;
};

}  // namespace lockstep::launcher

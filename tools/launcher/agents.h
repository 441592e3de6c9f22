// mpirun's launch agents (`plm_rsh_agent`). mpirun calls one for each daemon that it wants on another host, as it would
// call ssh: AGENT HOST COMMAND... The agent, a process of this program, hands that to the launcher of node 0 through a
// local socket, prints what the daemon prints, and ends with its status. One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/launcher/messages.h"
#include "tools/launcher/reception.h"

namespace lockstep::launcher {

// The launcher's side.
class Agents {
 public:
  explicit Agents(Say say);

  // For mpirun's environment: by which an agent finds and convinces this launcher.
  std::map<std::string, std::string> variables() const;

  void add_files(std::vector<pollfd>& files) const;  // to be polled
  // Daemons that mpirun wants since the last look.
  std::vector<Run> look();
  // The agent of this host prints `text`; it ends with the daemon's exit code.
  void print(const std::string& host, const std::string& text);
  void end(const std::string& host, int status);

 private:
  std::string name_;
  Secret token_;
  Reception reception_;
  std::vector<std::unique_ptr<Connection>> new_;
  std::map<std::string, std::unique_ptr<Connection>> agents_;  // by host
};

// The agent itself: `words` are "host", its name, COMMAND... Returns its exit code.
int run_agent(const std::vector<std::string>& words);

}  // namespace lockstep::launcher

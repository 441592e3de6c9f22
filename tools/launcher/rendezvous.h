// Node 0's side of the connections to the other nodes: it takes them in as they come, answers those that cannot be in
// the job, and passes messages. One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/launcher/reception.h"
#include "tools/launcher/roster.h"

namespace lockstep::launcher {

class Rendezvous {
 public:
  // `own` is node 0's.
  Rendezvous(Reception reception, const Join& own, Welcome welcome, Say say);

  // Of a node that is in: a message, or, without one, that its connection has ended and why.
  struct News {
    int node = 0;
    std::optional<Message> message{};
    std::string lost{};
  };
  void add_files(std::vector<pollfd>& files) const;  // to be polled
  // Takes in who came, and what was said.
  std::vector<News> look();

  void send(int node, const Message& message);  // nothing for a node that is lost
  void send_all(const Message& message);
  // Until all is sent that can be, or the time is over.
  void flush(std::chrono::milliseconds limit);
  // From now on a node that goes does not come back.
  void begin_job() { job_ = true; }

  const Roster& roster() const { return roster_; }

 private:
  using Connections = std::vector<std::unique_ptr<Connection>>;
  void read_joins();
  bool take_in(std::unique_ptr<Connection>& connection, const Message& message);
  std::vector<News> read_nodes();

  Reception reception_;
  Roster roster_;
  Welcome welcome_;
  Say say_;
  Connections known_;  // who know the secret, and have not said who they are
  std::map<int, std::unique_ptr<Connection>> nodes_;
  Connections leaving_;  // refused, until they have been told
  bool job_ = false;
};

}  // namespace lockstep::launcher

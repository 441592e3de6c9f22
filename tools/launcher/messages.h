// The bodies of the messages between launchers: JSON objects. Reading throws Error for what is not of this form, so
// that a peer of another version is named and nothing half-read is used.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/launcher/sealed_channel.h"

namespace lockstep::launcher {

// Node to node 0: who it is, and what it was told to start.
struct Join {
  int nodes = 1, node = 0, ranks = 1;  // of the job; its number; its ranks
  std::string host{};                  // its name, as Open MPI sees it
  std::string version{}, mpi{};        // of Lockstep; the MPI library's own words
  std::vector<std::string> words{};    // the program and its arguments
  std::string program{};               // SHA-256 of the program's file; empty: `problem` says why there is none
  std::string problem{};               // the reason why this node cannot start the program
  std::string network{};               // "10.1.0.0/16": the network in which it reaches node 0; empty: unknown
};

// Node 0 to node: it is in. A supervised job may be started again when it has failed.
struct Welcome {
  bool supervised = false;
};

// Agent to node 0 (`host` is the host's name as mpirun has it), node 0 to node: a daemon's command line, for a shell.
// The variables are for the programs below the daemon.
struct Run {
  std::string host{}, command{};
  std::map<std::string, std::string> variables{};
};

// Node 0 to node: the job is over.
struct Done {
  int status = 0;
  std::string reason{};  // empty: the program's end
  bool again = false;    // a supervisor is about to start it again
};

Message to_message(const Join& join);
Message to_message(const Welcome& welcome);
Message to_message(const Run& run);
Message to_message(const Done& done);
Message refused(const std::string& reason);
Message output(const std::string& text);
Message ended(int status);
Message signal(int number);

Join read_join(const Message& message);
Welcome read_welcome(const Message& message);
Run read_run(const Message& message);
Done read_done(const Message& message);
std::string read_text(const Message& message);  // Refused, Output
int read_number(const Message& message);        // Ended, Signal

}  // namespace lockstep::launcher

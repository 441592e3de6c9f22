// How the ranks that are looked at talk: through MPI within a job, through ssh before there is one. One thread.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::preflight {

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Every rank's text, by rank. Collective, and a barrier.
  virtual std::vector<std::string> allgather(const std::string& mine) = 0;
  // Cheaper forms, where there are any. Every rank's text for rank 0, whatever for others; rank 0's text for all ranks.
  virtual void barrier() { allgather(""); }
  virtual std::vector<std::string> gather(const std::string& mine) { return allgather(mine); }
  virtual std::string broadcast(const std::string& mine) { return allgather(rank() == 0 ? mine : "").front(); }
};

class CommunicatorExchange : public Exchange {
 public:
  explicit CommunicatorExchange(const comm::Communicator& comm) : comm_(comm) {}
  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  std::vector<std::string> allgather(const std::string& mine) override { return comm_.allgather_strings(mine); }
  void barrier() override { comm_.barrier(); }
  std::vector<std::string> gather(const std::string& mine) override { return comm_.gather_strings(mine); }
  std::string broadcast(const std::string& mine) override { return comm_.broadcast_string(mine); }

 private:
  const comm::Communicator& comm_;
};

// One process, which there is no job around.
class AloneExchange : public Exchange {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<std::string> allgather(const std::string& mine) override { return {mine}; }
};

// A process that the doctor started by ssh: one line of JSON out for each line in. Throws Error when the other side has
// ended.
class LineExchange : public Exchange {
 public:
  // Takes over two open file descriptors without closing them.
  LineExchange(int in, int out, int rank, int size) : in_(in), out_(out), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<std::string> allgather(const std::string& mine) override;
  std::string read();  // a line that comes without being asked for

 private:
  int in_, out_, rank_, size_;
  std::string unread_{};
};

}  // namespace lockstep::preflight

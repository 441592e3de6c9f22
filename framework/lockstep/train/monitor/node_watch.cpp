#include "lockstep/train/monitor/node_watch.h"

#include <fmt/format.h>

#include "lockstep/comm/environment.h"
#include "lockstep/core/log.h"

namespace lockstep::train {

NodeWatch::NodeWatch(const comm::Communicator& comm, comm::Communicator leaders)
    : comm_(comm), heartbeat_(std::move(leaders)), silence_told_(static_cast<std::size_t>(comm.node_count())) {}

std::unique_ptr<NodeWatch> NodeWatch::make(const comm::Communicator& comm, const comm::Communicator& node) {
  const bool able = comm::Environment::current_thread_level() == comm::ThreadLevel::Multiple;
  const bool all_able = comm.allreduce(std::int64_t{able}, comm::ReduceOp::Min) == 1;
  if (comm.node_count() == 1) return nullptr;
  if (!all_able) {
    if (comm.is_root())
      log()->info(
          "watchdog: MPI was initialised without MPI_THREAD_MULTIPLE, so each host watches its own ranks alone");
    return nullptr;
  }
  comm::Communicator leaders = comm.split(node.is_root() ? 0 : 1, comm.node_rank());
  if (!node.is_root()) return nullptr;
  return std::make_unique<NodeWatch>(comm, std::move(leaders));
}

std::string NodeWatch::judge(Clock::time_point now, double stall, double abort) {
  for (const int node : heartbeat_.heard()) {
    const double silent = heartbeat_.silent(node, now);
    const bool told = silence_told_[static_cast<std::size_t>(node)];
    if (silent < stall) {
      if (told) log()->warn("{} is heard again", names_of(node));
      silence_told_[static_cast<std::size_t>(node)] = false;
      continue;
    }
    std::string what = fmt::format(
        "{} has not been heard for {:.0f} s: its first process is stopped, the host is "
        "down, or the network is down",
        names_of(node), silent);
    silence_told_[static_cast<std::size_t>(node)] = true;
    if (!told) log()->warn("{}", what);
    if (abort > 0 && silent >= abort) return what;
  }
  return "";
}

std::string NodeWatch::names_of(int node) const {
  std::vector<int> ranks;
  for (int r = 0; r < comm_.size(); ++r) {
    if (comm_.topology().node_of(r) == node) ranks.push_back(r);
  }
  return fmt::format("host {} (ranks {} to {})", comm_.topology().host(ranks.front()), ranks.front(), ranks.back());
}

}  // namespace lockstep::train

#include "tools/launcher/head_job.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <utility>

#include "lockstep/core/error.h"
#include "tools/supervisor/keepalive.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

constexpr auto kHeadPoll = 200ms;
constexpr auto kMpirunsEnd = 10s;   // mpirun takes two seconds to end its ranks
constexpr auto kAfterMpirun = 15s;  // for daemons: by then a node that is gone is known to be
constexpr int kNodeLost = 205;      // mpirun's own for a daemon that was lost
enum End { kNone, kRanksAsked, kHurried, kMpirunAsked, kMpirunKilled };

}  // namespace

int job_status(const MpirunsEnd& end) {
  const int status = supervisor::exit_code(end.status);
  if (end.lost && (end.told || WIFSIGNALED(end.status))) return kNodeLost;
  if ((end.daemon_failed || end.lost) && status == 0) return kNodeLost;
  return end.told && status == 0 ? 1 : status;
}

HeadJob::HeadJob(HeadOptions options, Rendezvous* rendezvous, supervisor::Signals& signals, Say say)
    : options_(std::move(options)), rendezvous_(rendezvous), signals_(signals), say_(std::move(say)) {
  auto variables = options_.variables;
  variables.merge(supervisor::keepalive_variables());
  if (rendezvous_ != nullptr) {
    rendezvous_->begin_job();
    variables.merge(agents_.emplace(say_).variables());
  }
  mpirun_ = std::make_unique<supervisor::Process>(
      options_.words, supervisor::ProcessOptions{.catch_errors = false, .variables = variables});
}

int HeadJob::run() {
  while (!mpirun_->ended()) {
    wait();
    while (const auto number = signals_.next()) take_signal(*number, "");
    if (rendezvous_ != nullptr) {
      take_news();
      start_daemons();
    }
    if (ends_ == kRanksAsked && end_request_.due()) ask_ranks();
    escalate();
    leftovers_.look();
  }
  if (*mpirun_->ended() == 0) wait_for_daemons();
  leftovers_.clear(say_);
  if (reason_.empty() && WIFSIGNALED(*mpirun_->ended()))
    reason_ = fmt::format("mpirun: {}", supervisor::describe_status(*mpirun_->ended()));
  return job_status({.status = *mpirun_->ended(),
                     .told = !reason_.empty() && ends_ >= kMpirunAsked,
                     .lost = nodes_.lost,
                     .daemon_failed = nodes_.daemon_failed});
}

// How they end may be known a moment later than mpirun's end.
void HeadJob::wait_for_daemons() {
  const auto until = Clock::now() + kAfterMpirun;
  const int ends = ends_;
  while (rendezvous_ != nullptr && nodes_.daemons > 0 && ends_ == ends && Clock::now() < until) {
    wait();
    while (const auto number = signals_.next()) take_signal(*number, "");
    take_news();
    start_daemons();
  }
}

void HeadJob::wait() {
  std::vector<pollfd> files{{signals_.descriptor(), POLLIN, 0}};
  if (rendezvous_ != nullptr) {
    rendezvous_->add_files(files);
    agents_->add_files(files);
  }
  wait_for(files, kHeadPoll);
}

void HeadJob::take_news() {
  for (const auto& news : rendezvous_->look()) {
    if (news.message) {
      try {
        take_message(news.node, *news.message);
      } catch (const Error& error) {
        end(fmt::format("{}: {}", rendezvous_->roster().name_of(news.node), error.what()));
      }
    } else {
      nodes_.lost = true;
      agents_->end(rendezvous_->roster().join(news.node).host, 255);
      end(fmt::format("{} is lost: {}", rendezvous_->roster().name_of(news.node), news.lost));
    }
  }
}

void HeadJob::take_message(int node, const Message& message) {
  const std::string& host = rendezvous_->roster().join(node).host;
  switch (message.kind) {
    case Kind::Output:
      return agents_->print(host, read_text(message));
    case Kind::Ended:
      --nodes_.daemons;
      nodes_.daemon_failed = nodes_.daemon_failed || read_number(message) != 0;
      return agents_->end(host, read_number(message));
    case Kind::Signal:
      return take_signal(read_number(message), rendezvous_->roster().name_of(node));
    default:
      return;
  }
}

void HeadJob::start_daemons() {
  const Roster& roster = rendezvous_->roster();
  for (Run wanted : agents_->look()) {
    int node = 1;
    while (node < roster.nodes() && roster.join(node).host != wanted.host) ++node;
    if (node == roster.nodes()) {
      agents_->print(wanted.host, fmt::format("lockstep launch: no node has the host name '{}'\n", wanted.host));
      agents_->end(wanted.host, 255);
      continue;
    }
    wanted.variables = options_.node_variables;
    rendezvous_->send(node, to_message(wanted));
    ++nodes_.daemons;
  }
}

// USR1 and USR2 mean something to the program; whatever else ends the job, the second time without asking the ranks.
void HeadJob::take_signal(int number, const std::string& source) {
  if (number == SIGUSR1 || number == SIGUSR2) {
    signal_ranks(number);
    if (rendezvous_ != nullptr) rendezvous_->send_all(signal(number));
    return;
  }
  if (reason_.empty())
    reason_ = fmt::format("signal {} ({}) came to {}", number, ::strsignal(number), source.empty() ? "node 0" : source);
  if (ends_ >= kRanksAsked) {
    if (ends_ == kRanksAsked) ends_ = kHurried;
    harder_ = Clock::now();
    return;
  }
  if (!source.empty()) say_(reason_ + ": all ranks are asked to end");
  ends_ = kRanksAsked;
  harder_ = Clock::now() + options_.stop_limit;
  ask_ranks();
}

// Again and again: mpirun may not have started all of them yet.
void HeadJob::ask_ranks() {
  end_request_.send();
  if (rendezvous_ != nullptr) rendezvous_->send_all(signal(SIGTERM));
}

void HeadJob::end(const std::string& reason) {
  if (ends_ < kMpirunAsked) say_(reason + "; the job is ended");
  if (reason_.empty()) reason_ = reason;
  if (ends_ >= kMpirunAsked) return;
  ends_ = kHurried;
  harder_ = Clock::now();
}

void HeadJob::escalate() {
  if (!harder_ || Clock::now() < *harder_) return;
  if (ends_ == kRanksAsked)
    reason_ += fmt::format("; ranks did not end within {} s and were killed",
                           std::chrono::duration<double>(options_.stop_limit).count());
  const bool first = ends_ < kMpirunAsked;
  mpirun_->signal(first ? SIGTERM : SIGKILL);
  ends_ = first ? kMpirunAsked : kMpirunKilled;
  harder_ = Clock::now() + kMpirunsEnd;
}

}  // namespace lockstep::launcher

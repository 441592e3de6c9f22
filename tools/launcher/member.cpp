#include "tools/launcher/member.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <thread>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/exit_status.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

constexpr auto kMemberPoll = 200ms;
constexpr auto kAnswer = 10s;  // for node 0's side of the handshake
constexpr auto kQuiet = 10s;   // of waiting, before it is said and after
constexpr int kConnectMs = 2000;
constexpr std::size_t kMostText = 65536;  // of a message
constexpr auto kDaemonsEnd = 5s;          // after the job's end, for a daemon to clean up

}  // namespace

Member::Member(MemberOptions options, const Secret& secret, supervisor::Signals& signals, Say say)
    : options_(std::move(options)), secret_(secret), signals_(signals), say_(std::move(say)) {}

int Member::run() {
  for (;;) {
    if (!find()) return status_.value_or(1);
    const std::optional<Done> done = take_part();
    daemon_.reset();  // before all children are reaped: it would signal whoever has its number by then
    leftovers_.clear(say_);
    const std::string problem = head_->problem();
    head_.reset();
    if (status_) return *status_;  // this process was told to end at once
    const bool again = done ? done->again : supervised_;
    if (!done) {
      say_(fmt::format("node 0 is lost: {}{}", problem.empty() ? "its launcher has ended" : problem,
                       again ? "; its supervisor is waited for" : ""));
    } else if (!done->reason.empty()) {
      say_(fmt::format("the job has ended: {}", done->reason));
    }
    if (!again) return done ? done->status : 1;
    joined_ = false;
  }
}

// Until node 0 has taken this node in. False: status_ says how this process ends.
bool Member::find() {
  const auto began = Clock::now();
  auto next_word = began + kQuiet;
  std::string reason;
  while (Clock::now() < began + options_.limit) {
    for (const std::string& address : options_.addresses) {
      if (is_stopped()) return false;
      reason = try_address(address);
      if (joined_) return true;
      if (status_) return false;
      reason = fmt::format("{}:{}: {}", address, options_.port, reason);
    }
    if (Clock::now() > next_word) {
      say_(fmt::format("node {} waits for node 0 at {}", options_.join.node, reason));
      next_word = Clock::now() + 3 * kQuiet;
    }
    std::vector<pollfd> files{{signals_.descriptor(), POLLIN, 0}};
    wait_for(files, kMemberPoll);
  }
  say_(
      fmt::format("node {} did not find node 0 within {} s: {}; is it started, and are --master-addr and --master-port "
                  "right?",
                  options_.join.node, std::chrono::duration<double>(options_.limit).count(), reason));
  status_ = 1;
  return false;
}

bool Member::is_stopped() {
  while (const auto number = signals_.next()) {
    if (*number == SIGUSR1) continue;
    status_ = 128 + *number;
    if (head_) head_->send(signal(*number));
    return true;
  }
  return false;
}

// Why this address has no place for this node now; with status_ where it never will have.
std::string Member::try_address(const std::string& address) {
  std::string reason;
  auto socket = connect_tcp(address, options_.port, kConnectMs, reason);
  if (!socket) return reason;
  options_.join.network = network_of(*socket);
  head_ = std::make_unique<Connection>(*std::move(socket), address, Handshake::Side::Client, secret_);
  bool asked = false;
  const auto until = Clock::now() + kAnswer;
  while (!head_->closed() && Clock::now() < until && !is_stopped()) {
    head_->pump();
    if (head_->ready() && !std::exchange(asked, head_->ready())) head_->send(to_message(options_.join));
    if (const auto message = head_->next()) {
      joined_ = message->kind == Kind::Welcome;
      if (joined_) supervised_ = read_welcome(*message).supervised;
      if (message->kind == Kind::Refused) {
        status_ = kExitCommandLine;
        say_("node 0 refuses this node: " + read_text(*message));
      }
      return "";
    }
    std::vector<pollfd> files{head_->wanted(), {signals_.descriptor(), POLLIN, 0}};
    wait_for(files, kMemberPoll);
  }
  if (head_->problem() == "it has another secret") {
    status_ = kExitCommandLine;
    say_(fmt::format("node 0 at {}:{} has another secret than this node", address, options_.port));
  }
  if (!head_->closed()) return "it does not answer";
  return head_->problem().empty() ? "it closed the connection" : head_->problem();
}

// Until the job is over; empty: node 0 is lost, or this process was told to end at once.
std::optional<Done> Member::take_part() {
  std::optional<Done> done;
  end_request_ = {};
  // A message that node 0 sent before it closed the connection counts, be it in the same packet as its welcome.
  for (done = read_messages(); !done && !head_->closed() && !status_; done = read_messages()) {
    std::vector<pollfd> files{head_->wanted(), {signals_.descriptor(), POLLIN, 0}};
    if (daemon_ && !daemon_->ended()) files.push_back({daemon_->errors(), POLLIN, 0});
    wait_for(files, kMemberPoll);
    head_->pump();
    while (const auto number = signals_.next()) take_signal(*number);
    watch_daemon();
    leftovers_.look();
  }
  if (daemon_ && !daemon_->ended()) daemon_->signal(SIGTERM);
  const auto until = Clock::now() + kDaemonsEnd;
  while (daemon_ && !daemon_->ended() && Clock::now() < until) std::this_thread::sleep_for(10ms);
  return done;
}

// Of node 0, as far as they have come. Its job's end, once it is there.
std::optional<Done> Member::read_messages() {
  try {
    while (const auto message = head_->next()) {
      if (message->kind == Kind::Done) return read_done(*message);
      take_message(*message);
    }
  } catch (const Error& error) {
    head_->close(error.what());
  }
  return std::nullopt;
}

void Member::take_message(const Message& message) {
  if (message.kind == Kind::Run) start_daemon(read_run(message));
  if (message.kind != Kind::Signal) return;
  if (const int number = read_number(message); number == SIGTERM) {
    end_request_.send();  // node 0 repeats it
  } else {
    signal_ranks(number);
  }
}

// The command is written for a shell, as ssh would give it to one.
void Member::start_daemon(const Run& wanted) {
  const std::size_t first = wanted.command.find_first_not_of(' ');
  const std::string command = first == std::string::npos ? "" : wanted.command.substr(first);
  const std::string path = command.substr(0, command.find(' ')), name = path.substr(path.rfind('/') + 1);
  // Without the shell between, the daemon is this process's own child and ends with it.
  const bool plain = name == "orted" || name == "prted";  // Open MPI 4, 5
  auto variables = options_.variables;
  for (const auto& [variable, value] : wanted.variables) variables.emplace(variable, value);
  daemon_ = std::make_unique<supervisor::Process>(
      std::vector<std::string>{"/bin/sh", "-c", fmt::format("{}{}", plain ? "exec " : "", command)},
      supervisor::ProcessOptions{.output = supervisor::ProcessOptions::Output::WithErrors, .variables = variables});
}

void Member::watch_daemon() {
  if (!daemon_) return;
  const auto status = daemon_->ended();
  const std::string text = status ? daemon_->read_rest() : daemon_->read();
  for (std::size_t at = 0; at < text.size(); at += kMostText) head_->send(output(text.substr(at, kMostText)));
  if (!status) return;
  head_->send(ended(supervisor::exit_code(*status)));
  daemon_.reset();
}

// All nodes get it through node 0; a third wish to end is this node's alone.
void Member::take_signal(int number) {
  if (options_.pass_signals) head_->send(signal(number));
  if (number == SIGUSR1 || number == SIGUSR2) return;
  if (++requests_ >= 3) status_ = 128 + number;
}

}  // namespace lockstep::launcher

#include "tools/supervisor/supervisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "lockstep/core/error.h"
#include "tools/supervisor/descendants.h"
#include "tools/supervisor/hosts.h"
#include "tools/supervisor/job.h"
#include "tools/supervisor/keepalive.h"
#include "tools/supervisor/process.h"

namespace lockstep::supervisor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSoon = 30;  // seconds in which a job has hardly come beyond its start

std::string job_id() {
  return fmt::format("{}-{}", getpid(), std::chrono::system_clock::now().time_since_epoch().count());
}

std::map<std::string, std::string> variables(const std::string& id) {
  auto set = keepalive_variables();
  set["OMPI_LOCKSTEP_JOB"] = id;  // OMPI_: mpirun takes it to other hosts
  return set;
}

std::string step_text(std::int64_t step) { return step < 0 ? "none" : fmt::format("step {}", step); }

}  // namespace

Supervisor::Supervisor(JobCommand command, SupervisorOptions options)
    : command_(std::move(command)),
      options_(std::move(options)),
      output_(options_.output),
      id_(job_id()),
      console_(output_.log()),
      log_(console_.log()),
      policy_(options_.restart),
      lost_(command_, traces_, {.job = id_, .rejoin = options_.rejoin, .limit = options_.probe_limit}) {
  if (!output_.warning().empty()) log_->warn("{}", output_.warning());
  check_batch();
  first_ = newest();
  has_progress_ = false;
  policy_ = RestartPolicy(options_.restart, first_.step);
}

void Supervisor::check_batch() {
  const std::string batch = command_.program_option("global-batch").value_or("0");
  fewer_ranks_ = batch != "0";
  if (command_.hosts().hosts.size() < 2) return;
  if (!fewer_ranks_) {
    log_->warn("without --global-batch the batch depends on the number of ranks: no host will be left out");
  } else if (command_.program_option("shards").value_or("0") == "0") {
    log_->warn("without --shards results round otherwise with fewer ranks; samples stay the same");
  }
}

std::optional<Supervisor::Newest> Supervisor::known_newest() {
  try {
    const Newest found = output_.newest();
    has_progress_ = has_progress_ || found != first_;
    return found;
  } catch (const Error& error) {  // a file system may be away for a while
    log_->warn("checkpoints cannot be listed: {}", error.what());
    return std::nullopt;
  }
}

Supervisor::Placement Supervisor::place() {
  const std::vector<std::string> reasons = lost_.ask_all();
  const launch::HostList& all = command_.hosts();
  launch::HostList alive;
  std::vector<std::string> names;
  for (const launch::Host& host : all.hosts) {
    if (launch::names_host(lost_.names(), host.name)) continue;
    alive.hosts.push_back(host);
    names.push_back(host.login());
  }
  const auto ranks = ranks_for(alive, all, command_.ranks());
  const bool listed = known_newest().has_value();
  Placement placement{.change = {.resume_auto = has_progress_,
                                 .lost = lost_.names(),
                                 .hostfile = output_.hostfile().string(),
                                 .ranks = ranks}};
  placement.description =
      fmt::format("{}{}{}", ranks ? fmt::format("{} ranks", *ranks) : "ranks as the launcher counts",
                  names.empty() ? "" : fmt::format(" on {}", fmt::join(names, ", ")),
                  reasons.empty() ? "" : fmt::format(", without {}", fmt::join(reasons, ", ")));
  if (!listed) {  // without the list a start might begin at an old checkpoint
    placement.problem = "the checkpoints cannot be listed";
  } else if (!reasons.empty() && !fewer_ranks_) {
    placement.problem = "all hosts are needed, as the command has no --global-batch";
  } else if (!all.hosts.empty() &&
             (alive.hosts.empty() || ranks.value_or(std::max<std::int64_t>(alive.slots(), 1)) < options_.min_ranks)) {
    placement.problem = fmt::format("fewer than --min-ranks {}", options_.min_ranks);
  }
  return placement;
}

bool Supervisor::host_is_back() {
  const std::optional<std::string> host = lost_.returned();
  if (host) log_->info("{} answers again: stopping the job in good order, to start it with that host", *host);
  return host.has_value();
}

// A file system that is away for a while fails the start, not the supervision.
RestartPolicy::End Supervisor::start(const Placement& placement, std::int64_t number) {
  try {
    return start_job(placement, number);
  } catch (const Error& error) {
    log_->error("start {} failed: {}", number, error.what());
    return {.code = 1, .newest_step = newest().step};
  }
}

RestartPolicy::End Supervisor::start_job(const Placement& placement, std::int64_t number) {
  if (!placement.problem.empty()) {
    log_->warn("not started: {}: {}", placement.description, placement.problem);
    return {.code = 1, .newest_step = newest().step, .no_hosts = true};
  }
  if (output_.keep()) {
    console_.move_log(output_.log());
    log_->warn("'{}' was removed or replaced, and is supervised anew", output_.path().string());
  }
  log_->info("start {}: {}; newest checkpoint: {}", number, placement.description, step_text(newest().step));
  const std::string holder = output_.holder();
  if (!holder.empty())
    log_->warn("'{}' is in use by {}, so this start may fail; what that job writes does not count as progress here",
               output_.path().string(), holder);
  if (holder.empty()) note_run();
  const JobEnd end = run_job({.words = command_.words(placement.change),
                              .variables = variables(id_),
                              .output = output_.path(),
                              .start_limit = options_.start_limit,
                              .launcher = command_.kind(),
                              .wants_stop = [this] { return host_is_back(); },
                              .look =
                                  [this, own = holder.empty()] {
                                    traces_.look();
                                    if (own) note_run();
                                  }},
                             signals_, console_);
  lost_.stop_asking();
  end_leftovers();
  const int code = exit_code(end.status);
  RestartPolicy::End result{.code = code == 0 && end.lost_host ? 1 : code,
                            .newest_step = newest().step,
                            .own = holder.empty(),
                            .asked = end.asked,
                            .for_host = end.stopped,
                            .error = end.seconds < kSoon ? end.words : ""};
  log_->info("ended after {:.1f} s: {}{}{}; newest checkpoint: {}", end.seconds, describe_status(end.status),
             end.failure.empty() ? "" : ": ", end.failure, step_text(newest().step));
  return result;
}

void Supervisor::end_leftovers() {
  const EndedDescendants result = end_descendants();
  if (result.ended > 0) log_->info("processes of the job left on this machine, which are ended: {}", result.ended);
  if (const std::string problem = result.problem(); !problem.empty()) log_->warn("{}", problem);
  if (const std::size_t removed = traces_.remove(); removed > 0)
    log_->info("files and folders of Open MPI that the job left on this machine, which are removed: {}", removed);
}

void Supervisor::note_run() {
  if (output_.note_run()) log_->info("'{}' is the folder of run {}", output_.path().string(), output_.run());
}

// Another start would go on with another run, and remove what is newer there than its checkpoint.
bool Supervisor::is_estranged() {
  const std::string why = output_.estrangement();
  if (!why.empty()) log_->error("not started again: {}", why);
  return !why.empty();
}

// Returns whether no stop was requested meanwhile.
bool Supervisor::pause(std::chrono::milliseconds time) {
  const auto until = Clock::now() + time;
  do {
    while (const auto number = signals_.next()) {
      if (*number != SIGUSR1) return false;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd file{signals_.descriptor(), POLLIN, 0};
    if (left > 0) poll(&file, 1, static_cast<int>(std::min<std::int64_t>(left, 1000)));
  } while (Clock::now() < until);
  return true;
}

int Supervisor::run() {
  if (const auto obstacle = command_.obstacle()) {
    log_->error("not started: {}: exit code {}", obstacle->text, obstacle->code);
    return obstacle->code;
  }
  adopt_orphans();
  for (std::int64_t number = 1;; ++number) {
    const RestartPolicy::End end = start(place(), number);
    const RestartPolicy::Decision decision = policy_.after(end);
    if (!decision.restart) {
      log_->info("{}: exit code {}", decision.reason, end.code);
      return end.code;
    }
    if (is_estranged()) return 1;
    log_->info("{}, in {} s", decision.reason, static_cast<double>(decision.pause.count()) / 1000);
    if (!pause(decision.pause)) {
      log_->info("ended on request, between two starts");
      return newest().step >= 0 ? kExitStopped : 128 + SIGTERM;
    }
    if (is_estranged()) return 1;
  }
}

}  // namespace lockstep::supervisor

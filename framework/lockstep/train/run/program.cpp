#include "lockstep/train/run/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <system_error>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/comm/launch.h"
#include "lockstep/core/printable.h"
#include "lockstep/core/standard_streams.h"
#include "lockstep/core/stream_writer.h"
#include "lockstep/host/address_space.h"
#include "lockstep/host/network.h"
#include "lockstep/host/process_settings.h"
#include "lockstep/train/monitor/signals.h"
#include "lockstep/train/monitor/stack_signal.h"
#include "lockstep/train/options/command_line_error.h"
#include "lockstep/train/options/options_json.h"
#include "lockstep/train/run/guard_main.h"
#include "lockstep/train/run/placement.h"
#include "lockstep/train/run/start_checks.h"

namespace lockstep::train {
namespace {

// Bytes of address space; with less, Open MPI 4.1 fails with an unclear message, or crashes.
constexpr std::size_t kMpiNeeds = std::size_t{64} << 20;

}  // namespace

Program::Program(std::string name, const std::string& description, Options defaults, data::Catalogue catalogue)
    : name_(std::move(name)), catalogue_(catalogue), options_(std::move(defaults)) {
  if (options_.output == Options{}.output) options_.output = "runs/" + name_;
  command_line_ = std::make_unique<CommandLine>(options_, name_, description,
                                                name_ + " (Lockstep " LOCKSTEP_VERSION ")", catalogue_);
}

Program::~Program() = default;

void Program::add(std::unique_ptr<Callback> callback) { callbacks_.push_back(std::move(callback)); }

int Program::run(int argc, char** argv, const std::function<void(Session&)>& body) {
  // The guard ends the process after an error of one rank alone: the session's destructor would wait for other ranks.
  const MainGuard guard(name_);
  std::optional<comm::Environment> mpi;
  std::optional<comm::Communicator> world;
  std::optional<Session> session;
  try {
    open_standard_streams();
    std::ostringstream out, err;  // output of each rank; only rank 0 prints it
    ParseResult parsed = command_line_->parse(argc, argv, true, out, err);
    // Help, completions and man pages need no MPI: they are asked for where none can start, too.
    if (!parsed.proceed && parsed.exit_code == 0 && comm::launched_rank() < 0)
      return print(out.str(), err.str()) ? 0 : 1;
    if (parsed.proceed) {
      host::apply_process_settings(comm::launched_local_ranks(), requested_threads(options_), argv);
      host::apply_interface_setting(comm::launched_local_rank(), comm::launched_ranks() > comm::launched_local_ranks());
    }
    handle_signals();  // before MPI starts, which takes a while
    host::use_one_malloc_arena();
    host::check_address_space("MPI_Init", kMpiNeeds);
    mpi.emplace();
    world.emplace(comm::Communicator::world({.sharing_domain = sharing_domain(options_)}));
    if (!parsed.proceed) leave_signals();  // --help may wait for a pager: signals must end the process then
    if (world->is_root() && !print(out.str(), err.str())) parsed.exit_code = std::max(parsed.exit_code, 1);
    if (const auto status = agree(*world, parsed)) return *status;
    if (options_.purpose() != data::Purpose::Train) leave_signals();  // there is nothing to save before the end
    check_program(*world, name_);
    answer_with_stack();
    session.emplace(*world, options_, name_,
                    to_json(command_line_->own()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                    catalogue_);
    for (auto& callback : callbacks_) session->add(std::move(callback));
    callbacks_.clear();
    body(*session);
    session->wait_for_others();  // no rank finalises MPI while another rank may still fail
    return session->status();
  } catch (const comm::AgreedError& error) {  // all ranks threw it, so the job can end without MPI_Abort
    if (world->is_root()) say(error.what());
    return exit_status_of(error);
  }
}

// Prints --help and --version to stdout and errors to stderr. Returns false, after a message, if stdout fails.
bool Program::print(const std::string& out, const std::string& err) const {
  errno = 0;
  std::cout << out << std::flush;
  const int code = errno;
  std::cerr << err << std::flush;
  if (out.empty() || std::cout.good()) return true;
  say(fmt::format("stdout cannot be written: {}", std::generic_category().message(code)));
  return false;
}

// Writes a last message to stderr, whose reader may be gone or blocked.
void Program::say(const std::string& text) const {
  write_patiently(STDERR_FILENO, printable(fmt::format("{}: {}", name_, text)) + "\n");
}

// The status to end with, if the command line says so on any rank.
std::optional<int> Program::agree(const comm::Communicator& world, const ParseResult& parsed) const {
  const bool root_failed = world.broadcast_value(std::int32_t{!parsed.message.empty()}) != 0;
  const int status = world.allreduce(parsed.proceed ? -1 : parsed.exit_code, comm::ReduceOp::Max);
  if (status < 0) return std::nullopt;
  // Rank 0 has printed the error of its own command line; the caller reports an error of another rank.
  check_together(world, [&] {
    if (!parsed.message.empty() && !root_failed) throw Error(parsed.message);
  });
  return status;
}

}  // namespace lockstep::train

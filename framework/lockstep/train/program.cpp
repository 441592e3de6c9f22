#include "lockstep/train/program.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"

namespace lockstep::train {

Program::Program(std::string name, std::string description, Options defaults)
    : name_(std::move(name)), options_(std::move(defaults)), app_(std::move(description), name_) {
  if (options_.output == Options{}.output) options_.output = "runs/" + name_;
  add_options(app_, options_);
}

int Program::run(int argc, char** argv, const std::function<void(Session&)>& body) {
  std::unique_ptr<comm::Environment> mpi;
  try {
    mpi = std::make_unique<comm::Environment>();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name_.c_str(), error.what());
    return 1;
  }
  const comm::Communicator world = comm::Communicator::world();
  try {
    const ParseResult parsed = parse(app_, options_, argc, argv, world.is_root());
    const bool root_failed = world.broadcast_value(std::int32_t{!parsed.message.empty()}) != 0;
    const int status = world.allreduce(parsed.proceed ? -1 : parsed.exit_code, comm::ReduceOp::Max);
    if (status >= 0) {
      // Rank 0 has printed what is wrong with its own command line; another rank's is agreed on and reported here.
      comm::collectively(world, [&] {
        if (!parsed.message.empty() && !root_failed) throw Error(parsed.message);
      });
      return status;
    }
    nlohmann::json own = nlohmann::json::object();
    for (const auto& write : own_) write(own);
    Session session(world, options_, name_, own);
    body(session);
    world.barrier();  // nobody finalises MPI while another rank may still fail
    return 0;
  } catch (const comm::AgreedError& error) {
    if (world.is_root()) std::fprintf(stderr, "%s: %s\n", name_.c_str(), error.what());
    return 1;
  } catch (const std::exception& error) {
    // What fails on all ranks alike is said once: rank 0 speaks first, and its abort ends the others meanwhile.
    if (!world.is_root()) std::this_thread::sleep_for(std::chrono::seconds(1));
    std::fprintf(stderr, "%s: rank %d on host %s: %s\n", name_.c_str(), world.rank(), world.host().c_str(),
                 error.what());
    comm::abort_job(1);
  }
}

}  // namespace lockstep::train

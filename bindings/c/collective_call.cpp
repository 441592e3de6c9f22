#include "bindings/c/collective_call.h"

#include <array>
#include <bit>
#include <string_view>
#include <vector>

namespace lockstep::bindings {
namespace {

constexpr std::array<std::string_view, 5> kNames{"step", "replay", "evaluate", "save", "resume"};

std::string_view name_of(std::int64_t call) { return kNames[static_cast<std::size_t>(call)]; }

}  // namespace

void agree_on_call(const comm::Communicator& comm, const Opening& opening, const Failure& mine) {
  struct Word {
    std::int64_t code, call, rate;
  };
  const Word own{mine.code, static_cast<std::int64_t>(opening.call), std::bit_cast<std::int64_t>(opening.rate)};
  const std::array<std::int64_t, 3> words{own.code, own.call, own.rate};
  std::vector<std::int64_t> all(words.size() * static_cast<std::size_t>(comm.size()));
  comm.allgather(comm::ConstBuffer(std::span<const std::int64_t>(words)), comm::Buffer(all));
  const auto of = [&](std::size_t rank) {
    return Word{all[words.size() * rank], all[words.size() * rank + 1], all[words.size() * rank + 2]};
  };
  const Word first = of(0);
  bool failed = false;
  for (std::size_t r = 0; r < static_cast<std::size_t>(comm.size()); ++r) {
    if (of(r).call != first.call) {
      throw CodedError(LOCKSTEP_ERROR_ARGUMENT,
                       formatted("[trainer] rank 0 calls lockstep_trainer_{}(), and rank {} lockstep_trainer_{}(); "
                                 "expected the same calls in the same order on all ranks",
                                 name_of(first.call), r, name_of(of(r).call)));
    }
    failed = failed || of(r).code != LOCKSTEP_OK;
  }
  if (failed) agree(comm, mine);
  for (std::size_t r = 1; r < static_cast<std::size_t>(comm.size()); ++r) {
    if (of(r).rate == first.rate) continue;
    throw CodedError(LOCKSTEP_ERROR_ARGUMENT,
                     formatted("[trainer] the learning rate is {} on rank 0, and {} on rank {}; expected the same on "
                               "all ranks",
                               std::bit_cast<double>(first.rate), std::bit_cast<double>(of(r).rate), r));
  }
}

}  // namespace lockstep::bindings

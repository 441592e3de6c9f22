#include "lockstep/comm/abandoned.h"

#include <mutex>
#include <utility>
#include <vector>

#include "lockstep/comm/communicator_state.h"

namespace lockstep::comm {
namespace {

struct Graveyard {
  std::mutex mutex;
  std::vector<Abandoned> messages;
  std::vector<Keeper> memory;
};

// Never destroyed: MPI may read or write this memory until the process ends.
Graveyard& graveyard() {
  static auto* const all = new Graveyard;
  return *all;
}

bool is_complete(Abandoned& message) {
  int complete = 0;
  return MPI_Test(&message.handle, &complete, MPI_STATUS_IGNORE) == MPI_SUCCESS && complete != 0;
}

}  // namespace

void abandon(Abandoned message) {
  std::vector<Abandoned> complete;  // destroyed after the lock is released, because that may free a communicator
  const std::scoped_lock lock(graveyard().mutex);
  std::vector<Abandoned>& all = graveyard().messages;
  for (std::size_t i = 0; i < all.size();) {
    if (!is_complete(all[i])) {
      ++i;
      continue;
    }
    complete.push_back(std::exchange(all[i], std::move(all.back())));
    all.pop_back();
  }
  all.push_back(std::move(message));
}

void keep_for_ever(Keeper memory) {
  const std::scoped_lock lock(graveyard().mutex);
  graveyard().memory.push_back(std::move(memory));
}

}  // namespace lockstep::comm

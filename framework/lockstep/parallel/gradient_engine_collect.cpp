// What owners hold in parts, made whole: gradients for whoever looks at them, optimizer state for checkpoints.
#include <algorithm>
#include <cstring>

#include "lockstep/parallel/gradient_engine.h"

namespace lockstep {

std::byte* GradientEngine::gradient_of(std::size_t bucket, int local_rank) const {
  const Bucket& b = store_.buckets()[bucket];
  const std::byte* mine = store_.buckets()[0].gradients[0];
  return gradients_[static_cast<std::size_t>(local_rank)].data() + (b.gradients[0] - mine);
}

void GradientEngine::collect_gradients() {
  settle();
  if (!owners_update_) return;  // it is whole everywhere
  fence();
  if (shards_optimizer()) meet();
  const auto size = static_cast<std::int64_t>(size_of(store_.options().dtype));
  const Domains& domains = memory_.domains();
  for (std::size_t b = 0; b < updates_.size(); ++b) {
    std::byte* mine = store_.buckets()[b].gradients[0];
    for (int r = 0; r < world_.size; ++r) {
      const bool near = domains.domain_of[static_cast<std::size_t>(r)] == domains.mine();
      for (Range range : reducer_->owned_by(reduction_of(b), r)) {
        const std::span<std::byte> into(mine + range.begin * size, static_cast<std::size_t>(range.size() * size));
        if (shards_optimizer()) {
          gradient_comm_.broadcast(into, r);
        } else if (near && r != world_.rank) {
          const auto local = static_cast<int>(std::ranges::find(domains.local(), r) - domains.local().begin());
          std::memcpy(into.data(), gradient_of(b, local) + range.begin * size, into.size());
        }
      }
    }
  }
  fence();
}

template <class Visit>
void GradientEngine::visit_states(const Visit& visit) {
  const auto size = static_cast<std::int64_t>(size_of(store_.options().dtype));
  for (std::size_t b = 0; b < updates_.size(); ++b) {
    for (std::byte* state : store_.buckets()[b].states) {
      for (int r = 0; r < world_.size; ++r) {
        for (Range range : reducer_->owned_by(reduction_of(b), r))
          visit(r, std::span(state + range.begin * size, static_cast<std::size_t>(range.size() * size)));
      }
    }
  }
}

void GradientEngine::collect_states() {
  if (!shards_optimizer()) return;
  meet();
  visit_states([&](int owner, std::span<std::byte> part) {
    if (owner == 0) return;
    if (world_.rank == owner) gradient_comm_.send(part, 0, comm::Communicator::kMaxTag);
    if (world_.rank == 0) gradient_comm_.recv(part, owner, comm::Communicator::kMaxTag);
  });
}

void GradientEngine::drop_foreign_states() {
  if (!shards_optimizer()) return;
  const std::byte* base = store_.owned_states().data();
  visit_states([&](int owner, std::span<std::byte> part) {
    if (owner == world_.rank) return;
    const auto begin = static_cast<std::size_t>(part.data() - base);
    store_.owned_states().drop(begin, begin + part.size());
  });
}

}  // namespace lockstep

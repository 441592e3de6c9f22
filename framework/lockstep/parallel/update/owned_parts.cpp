#include "lockstep/parallel/update/owned_parts.h"

#include <algorithm>
#include <cstring>

#include "lockstep/comm/message_tags.h"
#include "lockstep/parallel/reduce/reduction_scheduler.h"

namespace lockstep::parallel {

OwnedParts::OwnedParts(plan::ParameterStore& store, const BucketReducer& reducer, const Domains& domains,
                       const Ownership& ownership)
    : store_(store), reducer_(reducer), domains_(domains), ownership_(ownership) {
  for (const plan::Bucket& b : store.buckets()) whole_.push_back({0, b.elements});
}

std::span<const Range> OwnedParts::updated(std::size_t bucket) const {
  return ownership_.by_owner ? reducer_.owned(reduction_of(bucket)) : std::span(whole_).subspan(bucket, 1);
}

std::span<const Range> OwnedParts::received(std::size_t bucket) const {
  return reducer_.received(reduction_of(bucket));
}

void OwnedParts::collect_gradients(const comm::Communicator& comm, const StepMemory& memory) {
  if (!ownership_.by_owner) return;  // gradients are whole on every rank
  const auto size = static_cast<std::int64_t>(size_of(store_.options().dtype));
  for (std::size_t b = 0; b < whole_.size(); ++b) {
    std::byte* mine = store_.buckets()[b].gradients[0];
    for (int r = 0; r < domains_.size(); ++r) {
      const bool near = domains_.domain_of[static_cast<std::size_t>(r)] == domains_.mine();
      for (Range range : reducer_.owned_by(reduction_of(b), r)) {
        const std::span<std::byte> into(mine + range.begin * size, static_cast<std::size_t>(range.size() * size));
        if (ownership_.across_domains) {
          comm.broadcast(into, r);
        } else if (near && r != domains_.rank) {
          const auto local = static_cast<int>(std::ranges::find(domains_.local(), r) - domains_.local().begin());
          std::memcpy(into.data(), memory.gradient(b, local) + range.begin * size, into.size());
        }
      }
    }
  }
}

template <class Visit>
void OwnedParts::visit_states(const Visit& visit) {
  const auto size = static_cast<std::int64_t>(size_of(store_.options().dtype));
  for (std::size_t b = 0; b < whole_.size(); ++b) {
    for (std::byte* state : store_.buckets()[b].states) {
      for (int r = 0; r < domains_.size(); ++r) {
        for (Range range : reducer_.owned_by(reduction_of(b), r))
          visit(r, std::span(state + range.begin * size, static_cast<std::size_t>(range.size() * size)));
      }
    }
  }
}

void OwnedParts::collect_states(const comm::Communicator& comm) {
  if (!ownership_.across_domains) return;
  visit_states([&](int owner, std::span<std::byte> part) {
    if (owner == 0) return;
    if (domains_.rank == owner) comm.send(part, 0, comm::kOwnedPartsTag);
    if (domains_.rank == 0) comm.recv(part, owner, comm::kOwnedPartsTag);
  });
}

// All ranks go through all messages in one order, so blocking calls cannot wait for each other.
void OwnedParts::spread_values(const comm::Communicator& comm) const {
  const auto size = static_cast<std::int64_t>(size_of(store_.options().dtype));
  const auto domain_of = [&](int rank) { return domains_.domain_of[static_cast<std::size_t>(rank)]; };
  for (std::size_t b = 0; b < whole_.size(); ++b) {
    for (int owner = 0; owner < domains_.size(); ++owner) {
      const std::vector<Range> parts = reducer_.owned_by(reduction_of(b), owner);
      for (int to = 0; to < domains_.size(); ++to) {
        if (domain_of(to) == domain_of(owner) || (domains_.rank != owner && domains_.rank != to)) continue;
        for (const Range slice : reducer_.driven_by(reduction_of(b), to)) {
          for (const Range part : parts) {
            const Range range = intersection(part, slice);
            if (range.size() == 0) continue;
            const std::span bytes(store_.buckets()[b].values + range.begin * size,
                                  static_cast<std::size_t>(range.size() * size));
            domains_.rank == owner ? comm.send(bytes, to, comm::kOwnedPartsTag)
                                   : comm.recv(bytes, owner, comm::kOwnedPartsTag);
          }
        }
      }
    }
  }
}

void OwnedParts::drop_foreign_states() {
  if (!ownership_.across_domains) return;
  const std::byte* base = store_.owned_states().data();
  visit_states([&](int owner, std::span<std::byte> part) {
    if (owner == domains_.rank) return;
    const auto begin = static_cast<std::size_t>(part.data() - base);
    store_.owned_states().drop(begin, begin + part.size());
  });
}

}  // namespace lockstep::parallel

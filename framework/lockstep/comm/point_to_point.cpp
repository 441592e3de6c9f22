// Messages between two ranks, and the collectives that are built from them because MPI 3.1 gives their displacements as
// int.
#include <cstring>
#include <numeric>

#include "lockstep/comm/communicator_state.h"

namespace lockstep::comm {
namespace {

std::int64_t sum(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

void require_counts(const CommunicatorState& state, std::string_view operation, std::span<const std::int64_t> counts,
                    std::int64_t total) {
  state.require(std::ssize(counts) == state.size, operation, "{} counts for {} ranks", counts.size(), state.size);
  for (const std::int64_t count : counts) {
    state.require(count >= 0, operation, "a count is {}, expected 0 or more", count);
  }
  state.require(sum(counts) == total, operation, "counts sum to {} but the buffer has {} elements", sum(counts), total);
}

void require_same_element(const CommunicatorState& state, std::string_view operation, Element a, Element b) {
  state.require(a == b, operation, "sends {} and receives {}", name_of(a), name_of(b));
}

void copy(ConstBuffer from, Buffer to) {
  if (from.count > 0 && from.data != to.data) {
    std::memmove(to.data, from.data, static_cast<std::size_t>(from.bytes()));
  }
}

void require_tag(const CommunicatorState& state, std::string_view operation, int tag) {
  state.require(tag >= 0 && tag <= Communicator::kMaxTag, operation, "tag {} is outside 0..{}", tag,
                Communicator::kMaxTag);
}

}  // namespace

Request Communicator::start_send(ConstBuffer data, int destination, int tag, std::string_view operation) const {
  state_->begin(operation);
  state_->require_rank(destination, operation, "destination");
  Request request(state_, false, destination, tag, data.element);
  state_->for_each_chunk(data.count, data.element, [&](std::int64_t offset, int count) {
    MPI_Request handle = MPI_REQUEST_NULL;
    state_->verify(MPI_Isend(data.part(offset, count).data, count, to_mpi(data.element), destination, tag,
                             state_->handle(), &handle),
                   operation, "{} {} to rank {}, tag {}", count, name_of(data.element), destination, tag);
    request.add({pack_request(handle), count});
  });
  return request;
}

Request Communicator::start_recv(Buffer data, int source, int tag, std::string_view operation) const {
  state_->begin(operation);
  state_->require_rank(source, operation, "source");
  Request request(state_, true, source, tag, data.element);
  state_->for_each_chunk(data.count, data.element, [&](std::int64_t offset, int count) {
    MPI_Request handle = MPI_REQUEST_NULL;
    state_->verify(
        MPI_Irecv(data.part(offset, count).data, count, to_mpi(data.element), source, tag, state_->handle(), &handle),
        operation, "{} {} from rank {}, tag {}", count, name_of(data.element), source, tag);
    request.add({pack_request(handle), count});
  });
  return request;
}

Request Communicator::isend(ConstBuffer data, int destination, int tag) const {
  require_tag(*state_, "send", tag);
  return start_send(data, destination, tag, "send");
}

Request Communicator::irecv(Buffer data, int source, int tag) const {
  require_tag(*state_, "recv", tag);
  return start_recv(data, source, tag, "recv");
}

void Communicator::send(ConstBuffer data, int destination, int tag) const { isend(data, destination, tag).wait(); }

void Communicator::recv(Buffer data, int source, int tag) const { irecv(data, source, tag).wait(); }

void Communicator::sendrecv(ConstBuffer data, int destination, Buffer received, int source, int tag) const {
  Request incoming = irecv(received, source, tag);
  Request outgoing = isend(data, destination, tag);
  incoming.wait();
  outgoing.wait();
}

void Communicator::gatherv(ConstBuffer mine, Buffer all, std::span<const std::int64_t> counts, int root) const {
  constexpr std::string_view operation = "gatherv";
  state_->begin(operation);
  state_->require_rank(root, operation, "root");
  if (rank() != root) {
    start_send(mine, root, kGatherTag, operation).wait();
    return;
  }
  require_counts(*state_, operation, counts, all.count);
  require_same_element(*state_, operation, mine.element, all.element);
  const std::int64_t own = counts[static_cast<std::size_t>(root)];
  state_->require(own == mine.count, operation, "the root gives {} elements but counts say {}", mine.count, own);
  std::vector<Request> incoming;
  std::int64_t offset = 0;
  for (int source = 0; source < size(); ++source) {
    const std::int64_t count = counts[static_cast<std::size_t>(source)];
    if (source == root) {
      copy(mine, all.part(offset, count));
    } else {
      incoming.push_back(start_recv(all.part(offset, count), source, kGatherTag, operation));
    }
    offset += count;
  }
  wait_all(incoming);
}

void Communicator::scatterv(ConstBuffer all, std::span<const std::int64_t> counts, Buffer mine, int root) const {
  constexpr std::string_view operation = "scatterv";
  state_->begin(operation);
  state_->require_rank(root, operation, "root");
  if (rank() != root) {
    start_recv(mine, root, kScatterTag, operation).wait();
    return;
  }
  require_counts(*state_, operation, counts, all.count);
  require_same_element(*state_, operation, all.element, mine.element);
  const std::int64_t own = counts[static_cast<std::size_t>(root)];
  state_->require(own == mine.count, operation, "the root takes {} elements but counts say {}", mine.count, own);
  std::vector<Request> outgoing;
  std::int64_t offset = 0;
  for (int destination = 0; destination < size(); ++destination) {
    const std::int64_t count = counts[static_cast<std::size_t>(destination)];
    if (destination == root) {
      copy(all.part(offset, count), mine);
    } else {
      outgoing.push_back(start_send(all.part(offset, count), destination, kScatterTag, operation));
    }
    offset += count;
  }
  wait_all(outgoing);
}

void Communicator::alltoallv(ConstBuffer send, std::span<const std::int64_t> send_counts, Buffer receive,
                             std::span<const std::int64_t> receive_counts) const {
  constexpr std::string_view operation = "alltoallv";
  state_->begin(operation);
  require_same_element(*state_, operation, send.element, receive.element);
  require_counts(*state_, operation, send_counts, send.count);
  require_counts(*state_, operation, receive_counts, receive.count);
  const auto me = static_cast<std::size_t>(rank());
  state_->require(send_counts[me] == receive_counts[me], operation, "sends itself {} elements but receives {}",
                  send_counts[me], receive_counts[me]);
  std::vector<Request> requests;
  std::vector<std::int64_t> send_begins(send_counts.size());
  std::exclusive_scan(send_counts.begin(), send_counts.end(), send_begins.begin(), std::int64_t{0});
  std::int64_t offset = 0;
  for (int peer = 0; peer < size(); ++peer) {
    const auto p = static_cast<std::size_t>(peer);
    const Buffer slot = receive.part(offset, receive_counts[p]);
    if (peer == rank()) {
      copy(send.part(send_begins[p], send_counts[p]), slot);
    } else {
      requests.push_back(start_recv(slot, peer, kAllToAllTag, operation));
    }
    offset += receive_counts[p];
  }
  // Each rank starts with its right neighbour, so that not all send to rank 0 first.
  for (int step = 1; step < size(); ++step) {
    const int peer = (rank() + step) % size();
    const auto p = static_cast<std::size_t>(peer);
    requests.push_back(start_send(send.part(send_begins[p], send_counts[p]), peer, kAllToAllTag, operation));
  }
  wait_all(requests);
}

}  // namespace lockstep::comm

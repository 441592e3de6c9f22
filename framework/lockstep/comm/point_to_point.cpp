// Messages between two ranks, and the collectives that are built from them because MPI 3.1's displacements are int.
// Blocking calls block in MPI, part by part: when one throws, MPI no longer uses the caller's memory.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "lockstep/comm/communicator_state.h"

namespace lockstep::comm {
namespace {

std::int64_t sum(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
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

struct Outgoing {
  ConstBuffer data;
  int rank;
};
struct Incoming {
  Buffer data;
  int rank;
};

std::int64_t parts_of(const CommunicatorState& state, const ConstBuffer& data) {
  const std::int64_t limit = state.chunk_limit(data.element);
  return std::max<std::int64_t>(1, (data.count + limit - 1) / limit);
}

// Returns part `i` of a message, as for_each_chunk() splits it.
template <class Memory>
Memory part_of(const CommunicatorState& state, const Memory& data, std::int64_t i) {
  const std::int64_t limit = state.chunk_limit(data.element);
  return data.part(i * limit, std::min(limit, data.count - i * limit));
}

// Sends one message, receives another, or does both part by part; the two may have different numbers of parts.
void exchange(CommunicatorState& state, std::string_view operation, int tag, const std::optional<Outgoing>& out,
              const std::optional<Incoming>& in) {
  const std::int64_t sent = out ? parts_of(state, out->data) : 0, received = in ? parts_of(state, in->data) : 0;
  for (std::int64_t i = 0; i < std::max(sent, received); ++i) {
    const bool sends = i < sent, receives = i < received;
    const ConstBuffer from = sends ? part_of(state, out->data, i) : ConstBuffer(nullptr, 0, Element::Byte);
    const Buffer into = receives ? part_of(state, in->data, i) : Buffer(nullptr, 0, Element::Byte);
    MPI_Status status;
    const int code =
        MPI_Sendrecv(from.data, static_cast<int>(from.count), to_mpi(from.element), sends ? out->rank : MPI_PROC_NULL,
                     tag, into.data, static_cast<int>(into.count), to_mpi(into.element),
                     receives ? in->rank : MPI_PROC_NULL, tag, state.handle(), &status);
    if (!receives) {
      state.verify(code, operation, "{} {} to rank {}, tag {}", from.count, name_of(from.element), out->rank, tag);
      continue;
    }
    state.verify(code, operation, "{} {} from rank {}, tag {}", into.count, name_of(into.element), in->rank, tag);
    int count = 0;
    state.verify(MPI_Get_count(&status, to_mpi(into.element), &count), operation, "count from rank {}", in->rank);
    if (count != into.count) {
      state.fail_transfer(operation, formatted("{} {} from rank {}, tag {}: expected {}", count, name_of(into.element),
                                               in->rank, tag, into.count));
    }
  }
}

std::shared_ptr<std::byte[]> memory_for(const ConstBuffer& data) {
  return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(data.bytes()));
}

}  // namespace

void require_counts(const CommunicatorState& state, std::string_view operation, std::span<const std::int64_t> counts,
                    std::int64_t total) {
  state.require(std::ssize(counts) == state.size, operation, "{} counts for {} ranks", counts.size(), state.size);
  for (const std::int64_t count : counts) {
    state.require(count >= 0, operation, "a count is {}, expected 0 or more", count);
  }
  state.require(sum(counts) == total, operation, "counts sum to {} but the buffer has {} elements", sum(counts), total);
}

Request Communicator::start_send(ConstBuffer data, int destination, int tag, Keeper keeper, bool copied) const {
  constexpr std::string_view operation = "send";
  require_tag(*state_, operation, tag);
  state_->begin(operation);
  state_->require_rank(destination, operation, "destination");
  Request request(state_, {Request::Kind::Send, operation, destination, tag, data.element}, std::move(keeper), copied);
  state_->for_each_chunk(data.count, data.element, [&](std::int64_t offset, int count) {
    MPI_Request handle = MPI_REQUEST_NULL;
    state_->verify(MPI_Isend(data.part(offset, count).data, count, to_mpi(data.element), destination, tag,
                             state_->handle(), &handle),
                   operation, "{} {} to rank {}, tag {}", count, name_of(data.element), destination, tag);
    request.add({pack_request(handle), count});
  });
  return request;
}

Request Communicator::start_recv(Buffer data, int source, int tag, Keeper keeper, bool copied) const {
  constexpr std::string_view operation = "recv";
  require_tag(*state_, operation, tag);
  state_->begin(operation);
  state_->require_rank(source, operation, "source");
  Request request(state_, {Request::Kind::Receive, operation, source, tag, data.element}, std::move(keeper), copied);
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
  const std::shared_ptr<std::byte[]> memory = memory_for(data);
  const Buffer copied(memory.get(), data.count, data.element);
  copy(data, copied);
  return start_send(copied, destination, tag, memory, true);
}

Request Communicator::irecv(Buffer data, int source, int tag) const {
  const std::shared_ptr<std::byte[]> memory = memory_for(data);
  Request request = start_recv({memory.get(), data.count, data.element}, source, tag, memory, true);
  request.arrival_ = {memory.get(), data.data, static_cast<std::size_t>(data.bytes())};
  return request;
}

Request Communicator::isend(ConstBuffer data, int destination, int tag, Keeper keeper) const {
  return start_send(data, destination, tag, std::move(keeper), false);
}

Request Communicator::irecv(Buffer data, int source, int tag, Keeper keeper) const {
  return start_recv(data, source, tag, std::move(keeper), false);
}

void Communicator::send(ConstBuffer data, int destination, int tag) const {
  constexpr std::string_view operation = "send";
  require_tag(*state_, operation, tag);
  state_->begin(operation);
  state_->require_rank(destination, operation, "destination");
  exchange(*state_, operation, tag, Outgoing{data, destination}, {});
}

void Communicator::recv(Buffer data, int source, int tag) const {
  constexpr std::string_view operation = "recv";
  require_tag(*state_, operation, tag);
  state_->begin(operation);
  state_->require_rank(source, operation, "source");
  exchange(*state_, operation, tag, {}, Incoming{data, source});
}

void Communicator::sendrecv(ConstBuffer data, int destination, Buffer received, int source, int tag) const {
  constexpr std::string_view operation = "sendrecv";
  require_tag(*state_, operation, tag);
  state_->begin(operation);
  state_->require_rank(destination, operation, "destination");
  state_->require_rank(source, operation, "source");
  exchange(*state_, operation, tag, Outgoing{data, destination}, Incoming{received, source});
}

void Communicator::gatherv(ConstBuffer mine, Buffer all, std::span<const std::int64_t> counts, int root) const {
  constexpr std::string_view operation = "gatherv";
  state_->begin(operation);
  state_->require_rank(root, operation, "root");
  if (rank() != root) {
    return exchange(*state_, operation, kGatherTag, Outgoing{mine, root}, {});
  }
  require_counts(*state_, operation, counts, all.count);
  require_same_element(*state_, operation, mine.element, all.element);
  const std::int64_t own = counts[static_cast<std::size_t>(root)];
  state_->require(own == mine.count, operation, "the root sends {} elements, its count is {}; expected equal numbers",
                  mine.count, own);
  std::int64_t offset = 0;
  for (int source = 0; source < size(); ++source) {
    const std::int64_t count = counts[static_cast<std::size_t>(source)];
    if (source == root) {
      copy(mine, all.part(offset, count));
    } else {
      exchange(*state_, operation, kGatherTag, {}, Incoming{all.part(offset, count), source});
    }
    offset += count;
  }
}

void Communicator::scatterv(ConstBuffer all, std::span<const std::int64_t> counts, Buffer mine, int root) const {
  constexpr std::string_view operation = "scatterv";
  state_->begin(operation);
  state_->require_rank(root, operation, "root");
  if (rank() != root) {
    return exchange(*state_, operation, kScatterTag, {}, Incoming{mine, root});
  }
  require_counts(*state_, operation, counts, all.count);
  require_same_element(*state_, operation, all.element, mine.element);
  const std::int64_t own = counts[static_cast<std::size_t>(root)];
  state_->require(own == mine.count, operation,
                  "the root receives {} elements, its count is {}; expected equal numbers", mine.count, own);
  std::int64_t offset = 0;
  for (int destination = 0; destination < size(); ++destination) {
    const std::int64_t count = counts[static_cast<std::size_t>(destination)];
    if (destination == root) {
      copy(all.part(offset, count), mine);
    } else {
      exchange(*state_, operation, kScatterTag, Outgoing{all.part(offset, count), destination}, {});
    }
    offset += count;
  }
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
  const auto begins = [](std::span<const std::int64_t> counts) {
    std::vector<std::int64_t> all(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), all.begin(), std::int64_t{0});
    return all;
  };
  const std::vector<std::int64_t> send_begins = begins(send_counts), receive_begins = begins(receive_counts);
  copy(send.part(send_begins[me], send_counts[me]), receive.part(receive_begins[me], receive_counts[me]));
  // In each step every rank sends to one other rank and receives from one.
  for (int step = 1; step < size(); ++step) {
    const int to = (rank() + step) % size(), from = (rank() + size() - step) % size();
    const auto t = static_cast<std::size_t>(to), f = static_cast<std::size_t>(from);
    exchange(*state_, operation, kAllToAllTag, Outgoing{send.part(send_begins[t], send_counts[t]), to},
             Incoming{receive.part(receive_begins[f], receive_counts[f]), from});
  }
}

}  // namespace lockstep::comm

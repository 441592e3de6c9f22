#include <array>
#include <cstring>
#include <numeric>

#include "lockstep/comm/combine.h"
#include "lockstep/comm/communicator_state.h"

namespace lockstep::comm {
namespace {

// The MPI_Op of a reduction. For types that MPI lacks, it makes an operation for one call.
class Operation {
 public:
  Operation(CommunicatorState& state, ReduceOp op, Element element) {
    if (element == Element::F16) make<Float16>(state, op);
    if (element == Element::BF16) make<BFloat16>(state, op);
    if (made_ == MPI_OP_NULL) op_ = built_in(op);
  }
  ~Operation() {
    if (made_ != MPI_OP_NULL) MPI_Op_free(&made_);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  MPI_Op get() const { return op_; }

 private:
  static MPI_Op built_in(ReduceOp op) {
    constexpr auto count = 4;
    const std::array<MPI_Op, count> ops{MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
    return ops[static_cast<std::size_t>(op)];
  }
  template <class T>
  void make(CommunicatorState& state, ReduceOp op) {
    const std::array functions{combine<T, ReduceOp::Sum>, combine<T, ReduceOp::Product>, combine<T, ReduceOp::Min>,
                               combine<T, ReduceOp::Max>};
    state.verify(MPI_Op_create(functions[static_cast<std::size_t>(op)], 1, &made_), "allreduce", "making an operation");
    op_ = made_;
  }
  template <class T, ReduceOp op>
  static void combine(void* from, void* into, int* count, MPI_Datatype* /*unused*/) {
    const auto* a = static_cast<const T*>(from);
    auto* b = static_cast<T*>(into);
    for (int i = 0; i < *count; ++i) b[i] = combined<op>(a[i], b[i]);
  }

  MPI_Op op_ = MPI_OP_NULL, made_ = MPI_OP_NULL;
};

void require_number(const CommunicatorState& state, std::string_view operation, Element element) {
  state.require(element != Element::Byte, operation, "bytes are opaque: reduce u8 or a wider type");
}

void require_gathered(const CommunicatorState& state, const ConstBuffer& mine, const Buffer& all) {
  state.require(all.count == mine.count * state.size && all.element == mine.element, "allgather",
                "{} {} from each of {} ranks do not fill the buffer of {} {}", mine.count, name_of(mine.element),
                state.size, all.count, name_of(all.element));
}

}  // namespace

std::string_view name_of(ReduceOp op) {
  constexpr std::string_view names[] = {"sum", "product", "min", "max"};
  return names[static_cast<std::size_t>(op)];
}

void Communicator::barrier() const {
  state_->begin("barrier");
  state_->verify(MPI_Barrier(state_->handle()), "barrier", "waiting for {} ranks", size());
}

void Communicator::broadcast(Buffer data, int root) const {
  state_->begin("broadcast");
  state_->require_rank(root, "broadcast", "root");
  state_->for_each_chunk(data.count, data.element, [&](std::int64_t offset, int count) {
    state_->verify(MPI_Bcast(data.part(offset, count).data, count, to_mpi(data.element), root, state_->handle()),
                   "broadcast", "{} {} from rank {}", count, name_of(data.element), root);
  });
}

void Communicator::allreduce(Buffer data, ReduceOp op) const {
  state_->begin("allreduce");
  require_number(*state_, "allreduce", data.element);
  const Operation operation(*state_, op, data.element);
  state_->for_each_chunk(data.count, data.element, [&](std::int64_t offset, int count) {
    state_->verify(MPI_Allreduce(MPI_IN_PLACE, data.part(offset, count).data, count, to_mpi(data.element),
                                 operation.get(), state_->handle()),
                   "allreduce", "{} of {} {}", name_of(op), count, name_of(data.element));
  });
}

Request Communicator::iallreduce(Buffer data, ReduceOp op, Keeper keeper) const {
  constexpr std::string_view operation = "allreduce";
  state_->begin(operation);
  require_number(*state_, operation, data.element);
  state_->require(data.element != Element::F16 && data.element != Element::BF16, operation,
                  "MPI has no type {}: use the blocking form, or a wider type", name_of(data.element));
  const Operation sum(*state_, op, data.element);
  Request request(state_, {.kind = Request::Kind::Collective, .operation = operation, .element = data.element},
                  std::move(keeper), false);
  state_->for_each_chunk(data.count, data.element, [&](std::int64_t offset, int count) {
    MPI_Request handle = MPI_REQUEST_NULL;
    state_->verify(MPI_Iallreduce(MPI_IN_PLACE, data.part(offset, count).data, count, to_mpi(data.element), sum.get(),
                                  state_->handle(), &handle),
                   operation, "{} of {} {}", name_of(op), count, name_of(data.element));
    request.add({pack_request(handle), count});
  });
  return request;
}

Request Communicator::ibarrier() const {
  constexpr std::string_view operation = "barrier";
  state_->begin(operation);
  Request request(state_, {.kind = Request::Kind::Collective, .operation = operation}, {}, false);
  MPI_Request handle = MPI_REQUEST_NULL;
  state_->verify(MPI_Ibarrier(state_->handle(), &handle), operation, "waiting for {} ranks", size());
  request.add({pack_request(handle), 0});
  return request;
}

Request Communicator::iallgather(ConstBuffer mine, Buffer all, Keeper keeper) const {
  constexpr std::string_view operation = "allgather";
  state_->begin(operation);
  require_gathered(*state_, mine, all);
  state_->require(state_->fits_one_message(all.count, all.element), operation,
                  "{} {} exceed one message of at most {} bytes: use the blocking form", all.count,
                  name_of(all.element), state_->chunk_limit(all.element) * size_of(all.element));
  Request request(state_, {.kind = Request::Kind::Collective, .operation = operation, .element = mine.element},
                  std::move(keeper), false);
  const auto count = static_cast<int>(mine.count);
  const MPI_Datatype type = to_mpi(mine.element);
  MPI_Request handle = MPI_REQUEST_NULL;
  state_->verify(MPI_Iallgather(mine.data, count, type, all.data, count, type, state_->handle(), &handle), operation,
                 "{} {} from each rank", count, name_of(mine.element));
  request.add({pack_request(handle), count});
  return request;
}

void Communicator::reduce(Buffer data, ReduceOp op, int root) const {
  state_->begin("reduce");
  state_->require_rank(root, "reduce", "root");
  require_number(*state_, "reduce", data.element);
  const bool keeps = rank() == root;
  const Operation operation(*state_, op, data.element);
  state_->for_each_chunk(data.count, data.element, [&](std::int64_t offset, int count) {
    void* part = data.part(offset, count).data;
    state_->verify(MPI_Reduce(keeps ? MPI_IN_PLACE : part, keeps ? part : nullptr, count, to_mpi(data.element),
                              operation.get(), root, state_->handle()),
                   "reduce", "{} of {} {} to rank {}", name_of(op), count, name_of(data.element), root);
  });
}

void Communicator::allgather(ConstBuffer mine, Buffer all) const {
  state_->begin("allgather");
  require_gathered(*state_, mine, all);
  if (!state_->fits_one_message(all.count, all.element)) {
    allgatherv(mine, all, std::vector<std::int64_t>(static_cast<std::size_t>(size()), mine.count));
    return;
  }
  const bool in_place = mine.data == all.part(mine.count * rank(), mine.count).data;
  state_->for_each_chunk(mine.count, mine.element, [&](std::int64_t, int count) {
    const MPI_Datatype type = to_mpi(mine.element);
    state_->verify(
        MPI_Allgather(in_place ? MPI_IN_PLACE : mine.data, count, type, all.data, count, type, state_->handle()),
        "allgather", "{} {} from each rank", count, name_of(mine.element));
  });
}

// Makes one broadcast per rank: so no displacement must fit MPI's int, and long parts are split as usual.
void Communicator::allgatherv(ConstBuffer mine, Buffer all, std::span<const std::int64_t> counts) const {
  state_->begin("allgatherv");
  require_counts(*state_, "allgatherv", counts, all.count);
  const std::int64_t own = counts[static_cast<std::size_t>(rank())];
  state_->require(all.element == mine.element && own == mine.count, "allgatherv",
                  "{} {} from this rank, but it gives {} {}", own, name_of(all.element), mine.count,
                  name_of(mine.element));
  std::int64_t offset = 0;
  for (int root = 0; root < size(); ++root) {
    const Buffer part = all.part(offset, counts[static_cast<std::size_t>(root)]);
    if (root == rank() && mine.count > 0 && part.data != mine.data) {
      std::memmove(part.data, mine.data, static_cast<std::size_t>(mine.bytes()));
    }
    broadcast(part, root);
    offset += part.count;
  }
}

void Communicator::gather(ConstBuffer mine, Buffer all, int root) const {
  std::vector<std::int64_t> counts;
  if (rank() == root) {
    counts.assign(static_cast<std::size_t>(size()), mine.count);
  }
  gatherv(mine, all, counts, root);
}

std::string Communicator::broadcast_string(std::string_view mine, int root) const {
  std::string text(mine);
  text.resize(static_cast<std::size_t>(broadcast_value(static_cast<std::int64_t>(text.size()), root)));
  broadcast(Buffer(text.data(), static_cast<std::int64_t>(text.size()), Element::Byte), root);
  return text;
}

std::vector<std::byte> Communicator::broadcast_bytes(std::span<const std::byte> mine, int root) const {
  std::vector<std::byte> data;
  if (rank() == root) {
    data.assign(mine.begin(), mine.end());
  }
  broadcast_vector(data, root);
  return data;
}

namespace {

std::vector<std::string> cut(std::string_view text, std::span<const std::int64_t> lengths) {
  std::vector<std::string> parts;
  for (const std::int64_t length : lengths) {
    parts.emplace_back(text.substr(0, static_cast<std::size_t>(length)));
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return parts;
}

ConstBuffer bytes_of(std::string_view text) {
  return {text.data(), static_cast<std::int64_t>(text.size()), Element::Byte};
}

}  // namespace

std::vector<std::string> Communicator::allgather_strings(std::string_view mine) const {
  const std::vector<std::int64_t> lengths = allgather(static_cast<std::int64_t>(mine.size()));
  std::string all(static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})), '\0');
  allgatherv(bytes_of(mine), Buffer(all.data(), std::ssize(all), Element::Byte), lengths);
  return cut(all, lengths);
}

std::vector<std::string> Communicator::gather_strings(std::string_view mine, int root) const {
  const bool keeps = rank() == root;
  std::vector<std::int64_t> lengths(keeps ? static_cast<std::size_t>(size()) : 0);
  const auto length = static_cast<std::int64_t>(mine.size());
  gather(ConstBuffer(std::span(&length, 1)), Buffer(lengths), root);
  std::string all(static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})), '\0');
  gatherv(bytes_of(mine), Buffer(all.data(), std::ssize(all), Element::Byte), lengths, root);
  return cut(all, lengths);
}

}  // namespace lockstep::comm

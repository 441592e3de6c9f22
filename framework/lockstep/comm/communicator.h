// A group of ranks that talk: rank, node and group queries, typed collectives and messages over a private duplicate of
// the caller's MPI communicator. Collectives block and are called by all ranks in one order; counts may pass 2^31 (long
// messages are split). Calls on one Communicator come from one thread at a time. A wrong argument throws
// lockstep::Error before anything is sent; a failed MPI call throws and poisons this communicator and everything split
// from it, as its ranks are out of step.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/comm/buffer.h"
#include "lockstep/comm/request.h"
#include "lockstep/comm/topology.h"

namespace lockstep::comm {

// With f16 and bf16 every step is rounded to the type; MPI chooses the steps.
enum class ReduceOp : std::uint8_t { Sum, Product, Min, Max };
std::string_view name_of(ReduceOp op);

struct CommunicatorOptions {
  // Bytes per MPI message; longer ones are split. Tests lower it; it must be the same on all ranks.
  std::int64_t message_limit = std::int64_t{1} << 30;
  // Ranks of one node with different texts count as being on different nodes; empty for whole nodes.
  std::string sharing_domain = {};
};

class Communicator {
 public:
  static constexpr int kMaxTag = 29'999;

  // Both need a live Environment (or a caller that initialised MPI) and are collective over their ranks.
  static Communicator world(const CommunicatorOptions& options = {});
  static Communicator self();

  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;

  // --- ranks and hosts
  int rank() const;
  int size() const;
  bool is_root() const { return rank() == 0; }
  // Ranks that share memory with this one, in the order of ranks; nodes are numbered by their lowest rank.
  int local_rank() const;
  int local_size() const;
  int node_rank() const;
  int node_count() const;
  const std::string& host() const { return topology().host(rank()); }
  const Topology& topology() const;

  // --- groups (collective)
  Communicator duplicate() const;
  // Ranks with one color form a communicator, ordered by key, then by rank. color >= 0.
  Communicator split(int color, int key = 0) const;
  // A named group of `ranks` in this order, the same list on all ranks. Kept by this communicator; null on non-members.
  const Communicator* add_group(const std::string& name, std::span<const int> ranks);
  // "node": the ranks of my node; "cross": the ranks of my local rank on all nodes that have it; or one that was added.
  // Not collective. Throws if there is none of that name or this rank is no member.
  const Communicator& group(const std::string& name) const;
  // As group(), but null if this rank is no member.
  const Communicator* find_group(const std::string& name) const;
  // The rank that `rank` of this group has in the communicator it was split from (for a root: in itself), and back.
  int to_parent(int rank) const;
  std::optional<int> from_parent(int parent_rank) const;
  // The rank that `rank` of this communicator has in any other, if it is a member there.
  std::optional<int> translate(int rank, const Communicator& other) const;

  // --- collectives
  void barrier() const;
  void broadcast(Buffer data, int root = 0) const;
  void allreduce(Buffer data, ReduceOp op) const;
  // In place: the result replaces the root's data; the data of other ranks stay unchanged.
  void reduce(Buffer data, ReduceOp op, int root = 0) const;
  // Each rank's `mine` one after the other, all of one length: all.count = size * mine.count.
  void allgather(ConstBuffer mine, Buffer all) const;
  void gather(ConstBuffer mine, Buffer all, int root = 0) const;
  // counts[r] elements from rank r, one after the other; `counts` is the same on all ranks.
  void allgatherv(ConstBuffer mine, Buffer all, std::span<const std::int64_t> counts) const;
  // `counts` and `all` matter on the root only; others pass {} and any buffer of the element type.
  void gatherv(ConstBuffer mine, Buffer all, std::span<const std::int64_t> counts, int root = 0) const;
  void scatterv(ConstBuffer all, std::span<const std::int64_t> counts, Buffer mine, int root = 0) const;
  // To rank r send_counts[r] elements, from rank r receive_counts[r], each laid one after the other.
  void alltoallv(ConstBuffer send, std::span<const std::int64_t> send_counts, Buffer receive,
                 std::span<const std::int64_t> receive_counts) const;

  // Started, and driven by the Request's test(); memory as for isend with a keeper. All ranks start them in one order.
  // Of types that MPI knows (not f16 and bf16); what is gathered is one message.
  [[nodiscard]] Request ibarrier() const;
  [[nodiscard]] Request iallreduce(Buffer data, ReduceOp op, Keeper keeper) const;
  [[nodiscard]] Request iallgather(ConstBuffer mine, Buffer all, Keeper keeper) const;

  template <Transferable T>
  T allreduce(T value, ReduceOp op) const {
    allreduce(Buffer(std::span<T>(&value, 1)), op);
    return value;
  }
  template <Transferable T>
  std::vector<T> allgather(T value) const {
    std::vector<T> all(static_cast<std::size_t>(size()));
    allgather(ConstBuffer(std::span<const T>(&value, 1)), Buffer(all));
    return all;
  }
  // The root's value, vector, string or bytes on every rank; on the others the vector is resized and `mine` ignored.
  template <Transferable T>
  T broadcast_value(T mine, int root = 0) const {
    broadcast(Buffer(std::span<T>(&mine, 1)), root);
    return mine;
  }
  template <Transferable T>
  void broadcast_vector(std::vector<T>& data, int root = 0) const {
    data.resize(static_cast<std::size_t>(broadcast_value(static_cast<std::int64_t>(data.size()), root)));
    broadcast(Buffer(data), root);
  }
  std::string broadcast_string(std::string_view mine, int root = 0) const;
  std::vector<std::byte> broadcast_bytes(std::span<const std::byte> mine, int root = 0) const;
  // Every rank's text, by rank; gather_strings gives the others an empty vector.
  std::vector<std::string> allgather_strings(std::string_view mine) const;
  std::vector<std::string> gather_strings(std::string_view mine, int root = 0) const;

  // --- messages. Tags 0..kMaxTag; sender and receiver name the same count. Messages of one pair and tag keep their
  // order.
  void send(ConstBuffer data, int destination, int tag = 0) const;
  void recv(Buffer data, int source, int tag = 0) const;
  // Through a copy of the library's, or straight from and into memory that `keeper` keeps alive (see Keeper).
  [[nodiscard]] Request isend(ConstBuffer data, int destination, int tag = 0) const;
  [[nodiscard]] Request irecv(Buffer data, int source, int tag = 0) const;
  [[nodiscard]] Request isend(ConstBuffer data, int destination, int tag, Keeper keeper) const;
  [[nodiscard]] Request irecv(Buffer data, int source, int tag, Keeper keeper) const;
  // Sends and receives at once, so that pairs and rings cannot block.
  void sendrecv(ConstBuffer data, int destination, Buffer received, int source, int tag = 0) const;

  // --- failure
  // From now on every call on this communicator and its relatives throws, naming `reason`.
  void poison(std::string_view reason) const;
  bool poisoned() const;
  // Whether MPI may still read or write the memory of a message or collective that was given up, on this communicator
  // or a relative: memory of their messages stays until the process ends.
  bool has_abandoned() const;
  // Ends all ranks of the job.
  [[noreturn]] void abort(int code) const;

 private:
  friend class CommunicatorFactory;
  friend class SharedWindow;
  explicit Communicator(std::shared_ptr<CommunicatorState> state) : state_(std::move(state)) {}
  Request start_send(ConstBuffer data, int destination, int tag, Keeper keeper, bool copied) const;
  Request start_recv(Buffer data, int source, int tag, Keeper keeper, bool copied) const;

  std::shared_ptr<CommunicatorState> state_;
};

}  // namespace lockstep::comm

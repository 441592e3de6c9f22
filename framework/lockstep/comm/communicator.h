// A group of ranks that communicate: queries of ranks, nodes and groups, typed collectives and messages over a private
// duplicate of the caller's MPI communicator. All ranks must call collectives in one order; counts may exceed 2^31
// (long messages are split). One thread at a time may call one Communicator. A wrong argument throws lockstep::Error
// before anything is sent; a failed MPI call throws Error and poisons this communicator and all communicators split
// from it, because its ranks are out of step.
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

// With f16 and bf16, every step of a reduction rounds to the type; MPI chooses the order of steps.
enum class ReduceOp : std::uint8_t { Sum, Product, Min, Max };
std::string_view name_of(ReduceOp op);

struct CommunicatorOptions {
  // Bytes per MPI message; longer ones are split. Must be the same on all ranks. Tests make it small.
  std::int64_t message_limit = std::int64_t{1} << 30;
  // Ranks of one node with different texts count as ranks of different nodes; empty: whole nodes.
  std::string sharing_domain = {};
};

class Communicator {
 public:
  static constexpr int kMaxTag = 29'999;

  // Makes a communicator of all ranks, or of this rank alone. MPI must be initialised; collective over its ranks.
  static Communicator world(const CommunicatorOptions& options = {});
  static Communicator self();

  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;

  // --- ranks and hosts
  int rank() const;
  int size() const;
  bool is_root() const { return rank() == 0; }
  // This rank's number among the ranks of its node, in the order of ranks; nodes are numbered by their lowest rank.
  int local_rank() const;
  int local_size() const;
  int node_rank() const;
  int node_count() const;
  const std::string& host() const { return topology().host(rank()); }
  const Topology& topology() const;

  // --- groups (collective)
  Communicator duplicate() const;
  // Makes one communicator per color (>= 0), whose ranks are ordered by key, then by rank.
  Communicator split(int color, int key = 0) const;
  // Adds a named group of `ranks`, in this order; all ranks pass the same list. This communicator owns the group;
  // returns null on ranks that are not members.
  const Communicator* add_group(const std::string& name, std::span<const int> ranks);
  // Returns a group: "node" (the ranks of this node), "cross" (the ranks with this local rank on all nodes), or one of
  // add_group(). Not collective. Throws Error if there is no such group or this rank is not a member.
  const Communicator& group(const std::string& name) const;
  // Returns the group as group() does, or null if this rank is not a member.
  const Communicator* find_group(const std::string& name) const;
  // Translates `rank` of this communicator to the one that it was split from (or to itself, if it was not), and back.
  int to_parent(int rank) const;
  std::optional<int> from_parent(int parent_rank) const;
  // Translates `rank` of this communicator to any other one; empty: it is not a member there.
  std::optional<int> translate(int rank, const Communicator& other) const;

  // --- collectives: blocking, called by all ranks with equal counts, unless they say otherwise
  void barrier() const;
  void broadcast(Buffer data, int root = 0) const;
  void allreduce(Buffer data, ReduceOp op) const;
  // In place: the result replaces the root's data; the data of other ranks stay unchanged.
  void reduce(Buffer data, ReduceOp op, int root = 0) const;
  // Concatenates the ranks' `mine`, all of one length, into `all`: all.count = size() * mine.count.
  void allgather(ConstBuffer mine, Buffer all) const;
  void gather(ConstBuffer mine, Buffer all, int root = 0) const;
  // Concatenates counts[r] elements of each rank r into `all`; `counts` is the same on all ranks.
  void allgatherv(ConstBuffer mine, Buffer all, std::span<const std::int64_t> counts) const;
  // Only the root's `counts` and `all` are used; other ranks pass {} and any buffer of the element type.
  void gatherv(ConstBuffer mine, Buffer all, std::span<const std::int64_t> counts, int root = 0) const;
  void scatterv(ConstBuffer all, std::span<const std::int64_t> counts, Buffer mine, int root = 0) const;
  // Sends send_counts[r] elements to rank r and receives receive_counts[r] from it; parts lie in the order of ranks.
  void alltoallv(ConstBuffer send, std::span<const std::int64_t> send_counts, Buffer receive,
                 std::span<const std::int64_t> receive_counts) const;

  // Non-blocking forms: Request::test() drives them; memory as for isend() with a keeper. All ranks start them in one
  // order. For MPI's own types (not f16 and bf16); iallgather() is limited to one message.
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
  // Returns the root's value, text or bytes on every rank; other ranks' `mine` is ignored, and their vector is resized.
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
  // Returns every rank's text, by rank; gather_strings() returns an empty vector on ranks other than the root.
  std::vector<std::string> allgather_strings(std::string_view mine) const;
  std::vector<std::string> gather_strings(std::string_view mine, int root = 0) const;

  // --- messages. Tags 0..kMaxTag; sender and receiver name the same count. Messages of one pair and tag keep their
  // order.
  void send(ConstBuffer data, int destination, int tag = 0) const;
  void recv(Buffer data, int source, int tag = 0) const;
  // Starts a message; without `keeper` through a copy, with it directly from or into memory that it keeps (see Keeper).
  [[nodiscard]] Request isend(ConstBuffer data, int destination, int tag = 0) const;
  [[nodiscard]] Request irecv(Buffer data, int source, int tag = 0) const;
  [[nodiscard]] Request isend(ConstBuffer data, int destination, int tag, Keeper keeper) const;
  [[nodiscard]] Request irecv(Buffer data, int source, int tag, Keeper keeper) const;
  // Sends and receives at the same time, so that pairs and rings of ranks cannot block each other.
  void sendrecv(ConstBuffer data, int destination, Buffer received, int source, int tag = 0) const;

  // --- failure
  // Makes every later call on this communicator and its relatives throw Error with `reason`.
  void poison(std::string_view reason) const;
  bool poisoned() const;
  // Returns whether a message or collective of this communicator or a relative was given up, so that MPI may still read
  // or write its memory: owners must then keep the memory of messages until the process ends (keep_for_ever()).
  bool has_abandoned() const;
  // Ends all ranks of the job with exit status `code` (MPI_Abort).
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

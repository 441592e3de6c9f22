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
// Returns the operation's name in errors: "sum", "product", "min" or "max".
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

  // Makes a communicator of all ranks of the job. Collective; throws Error without an Environment, or if the ranks'
  // message limits differ.
  static Communicator world(const CommunicatorOptions& options = {});
  // Makes a communicator of this rank alone. Not collective; throws Error without an Environment.
  static Communicator self();

  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;

  // --- ranks and hosts; no communication
  int rank() const;                             // this rank's number, from 0
  int size() const;                             // number of ranks
  bool is_root() const { return rank() == 0; }  // whether this rank is rank 0
  int local_rank() const;                       // this rank's number among the ranks of its node, in their order
  int local_size() const;                       // number of ranks on this rank's node
  int node_rank() const;   // number of this rank's node; nodes are in the order of their lowest rank
  int node_count() const;  // number of nodes
  const std::string& host() const { return topology().host(rank()); }  // the host's name, for messages
  const Topology& topology() const;    // the node and host of every rank; lives as long as this object
  std::int64_t message_limit() const;  // bytes: CommunicatorOptions::message_limit

  // --- groups (collective)
  // Makes a communicator of the same ranks, whose messages and collectives do not meet those of this one.
  Communicator duplicate() const;
  // Makes one communicator per color (>= 0), whose ranks are ordered by key, then by rank.
  Communicator split(int color, int key = 0) const;
  // Adds a named group of `ranks`, in this order; all ranks pass the same list. This communicator owns the group;
  // returns null on ranks that are not members. Throws Error for an empty, repeated or unknown rank list, or a name in
  // use, and AgreedError if the lists differ.
  const Communicator* add_group(const std::string& name, std::span<const int> ranks);
  // Returns a group: "node" (the ranks of this node), "cross" (the ranks with this local rank on all nodes), or one of
  // add_group(). Not collective. Throws Error if there is no such group or this rank is not a member.
  const Communicator& group(const std::string& name) const;
  // Returns the group as group() does, or null if this rank is not a member.
  const Communicator* find_group(const std::string& name) const;
  // Translates `rank` of this communicator to the one that it was split from, or to itself if it was not. Throws Error
  // for a rank outside [0, size()).
  int to_parent(int rank) const;
  // The other way round; empty: the parent's rank is not a member.
  std::optional<int> from_parent(int parent_rank) const;
  // Translates `rank` of this communicator to any other one; empty: it is not a member there.
  std::optional<int> translate(int rank, const Communicator& other) const;

  // --- collectives: blocking, called by all ranks with equal counts, unless they say otherwise. They throw Error for a
  // root outside [0, size()), for counts that do not fit the buffers, and for sums of bytes.
  // Returns when all ranks have called it.
  void barrier() const;
  // Copies the root's elements to all ranks.
  void broadcast(Buffer data, int root = 0) const;
  // Combines the elements of all ranks one by one; in place: the result replaces the data of every rank.
  void allreduce(Buffer data, ReduceOp op) const;
  // The same with a result for the root alone, whose data it replaces; the data of other ranks stay unchanged.
  void reduce(Buffer data, ReduceOp op, int root = 0) const;
  // Concatenates the ranks' `mine`, all of one length, into `all`: all.count = size() * mine.count.
  void allgather(ConstBuffer mine, Buffer all) const;
  // The same with a result for the root alone; other ranks pass any buffer of the element type as `all`.
  void gather(ConstBuffer mine, Buffer all, int root = 0) const;
  // Concatenates counts[r] elements of each rank r into `all`; `counts` is the same on all ranks.
  void allgatherv(ConstBuffer mine, Buffer all, std::span<const std::int64_t> counts) const;
  // The same for the root alone: only its `counts` and `all` are used; other ranks pass {} and any buffer of the
  // element type.
  void gatherv(ConstBuffer mine, Buffer all, std::span<const std::int64_t> counts, int root = 0) const;
  // Sends counts[r] elements of the root's `all` to each rank r, which receives them in `mine`; arguments as for
  // gatherv().
  void scatterv(ConstBuffer all, std::span<const std::int64_t> counts, Buffer mine, int root = 0) const;
  // Sends send_counts[r] elements to rank r and receives receive_counts[r] from it; parts lie in the order of ranks.
  void alltoallv(ConstBuffer send, std::span<const std::int64_t> send_counts, Buffer receive,
                 std::span<const std::int64_t> receive_counts) const;

  // Non-blocking forms: Request::test() drives them; memory as for isend() with a keeper. All ranks start them in one
  // order. For MPI's own types (not f16 and bf16); iallgather() is limited to one message.
  // Starts a barrier(), which is complete when all ranks have started theirs.
  [[nodiscard]] Request ibarrier() const;
  // Starts an allreduce() in place.
  [[nodiscard]] Request iallreduce(Buffer data, ReduceOp op, Keeper keeper) const;
  // Starts an allgather(); `keeper` keeps the memory of both buffers.
  [[nodiscard]] Request iallgather(ConstBuffer mine, Buffer all, Keeper keeper) const;

  // Returns the combination of the values of all ranks.
  template <Transferable T>
  T allreduce(T value, ReduceOp op) const {
    allreduce(Buffer(std::span<T>(&value, 1)), op);
    return value;
  }
  // Returns the values of all ranks, by rank.
  template <Transferable T>
  std::vector<T> allgather(T value) const {
    std::vector<T> all(static_cast<std::size_t>(size()));
    allgather(ConstBuffer(std::span<const T>(&value, 1)), Buffer(all));
    return all;
  }
  // Returns the root's value on every rank; `mine` of other ranks is ignored, here and in the functions that follow.
  template <Transferable T>
  T broadcast_value(T mine, int root = 0) const {
    broadcast(Buffer(std::span<T>(&mine, 1)), root);
    return mine;
  }
  // Replaces the vector of every rank by the root's.
  template <Transferable T>
  void broadcast_vector(std::vector<T>& data, int root = 0) const {
    data.resize(static_cast<std::size_t>(broadcast_value(static_cast<std::int64_t>(data.size()), root)));
    broadcast(Buffer(data), root);
  }
  // Returns the root's text on every rank.
  std::string broadcast_string(std::string_view mine, int root = 0) const;
  // Returns the root's bytes on every rank.
  std::vector<std::byte> broadcast_bytes(std::span<const std::byte> mine, int root = 0) const;
  // Returns every rank's text, by rank; the lengths may differ.
  std::vector<std::string> allgather_strings(std::string_view mine) const;
  // The same on the root; an empty vector on other ranks.
  std::vector<std::string> gather_strings(std::string_view mine, int root = 0) const;

  // --- messages. Tags 0..kMaxTag; sender and receiver name the same count. Messages of one pair and tag keep their
  // order. The functions throw Error for a rank or tag that does not exist, and for a message of another length.
  // Sends a message; returns when `data` may be changed, which may be before the message arrives.
  void send(ConstBuffer data, int destination, int tag = 0) const;
  // Receives a message; returns when it is in `data`.
  void recv(Buffer data, int source, int tag = 0) const;
  // Starts to send a copy of `data`, which the caller may change at once.
  [[nodiscard]] Request isend(ConstBuffer data, int destination, int tag = 0) const;
  // Starts to receive a message, which is in `data` once the request is complete.
  [[nodiscard]] Request irecv(Buffer data, int source, int tag = 0) const;
  // The same directly from or into memory that `keeper` keeps (see Keeper).
  [[nodiscard]] Request isend(ConstBuffer data, int destination, int tag, Keeper keeper) const;
  [[nodiscard]] Request irecv(Buffer data, int source, int tag, Keeper keeper) const;
  // Sends and receives at the same time, so that pairs and rings of ranks cannot block each other.
  void sendrecv(ConstBuffer data, int destination, Buffer received, int source, int tag = 0) const;

  // --- failure
  // Makes every later call on this communicator and its relatives throw Error with `reason`.
  void poison(std::string_view reason) const;
  // Whether this communicator or a relative is poisoned on this rank. Any thread may call it.
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

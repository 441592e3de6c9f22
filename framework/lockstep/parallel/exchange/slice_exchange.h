// The state machine that reduces one slice over all ranks, for buckets, the public allreduce and collective nodes. The
// driver of the slice in each domain
//   1. reduces the operands of its domain, in memory that the domain sees, to open sums;
//   2. exchanges open sums with the drivers of the other domains and reduces its own part of the slice to the root;
//   3. sends this part of the root to the other drivers, if every driver needs the whole result.
// It starts messages and tests them, and never waits. One thread at a time. Throws Error where MPI fails.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/parallel/exchange/transport.h"
#include "lockstep/parallel/exchange/tree_reduce.h"
#include "lockstep/parallel/tree/domain_tree.h"

namespace lockstep::parallel {

struct SliceWork {
  enum class Result : std::uint8_t {
    Gathered,    // every driver gets the whole slice: two messages to each other driver, of a part each
    Scattered,   // every driver gets its own part
    Replicated,  // every driver reduces the whole slice: one message to each other driver, of all of it
  };
  comm::Element element = comm::Element::F32;
  comm::ReduceOp op = comm::ReduceOp::Sum;
  Wire wire = Wire::Exact;
  bool threads = false;  // may use OpenMP
  Result result = Result::Gathered;
  int slice = 0, tag = 0;    // number of the slice; tag of all its messages
  std::vector<Range> parts;  // by domain: elements, disjoint; Replicated: one, the whole slice
  // Pointers to first elements; the memory stays until the exchange is idle.
  std::vector<const void*> operands;  // as in DomainTree::operands
  std::vector<void*> open;            // by open sum of this domain: its memory; empty: it replaces its first operand
  std::vector<void*> outs;            // the first receives the result, which is then copied to the other pointers
  std::int64_t out_begin = 0;         // the element at which each out begins
};

class SliceExchange {
 public:
  enum class Phase : std::uint8_t { Idle, Reduced, Exchange, Gather };

  // All references outlive the exchange.
  SliceExchange(Transport& transport, const Domains& domains, const DomainTree& tree)
      : transport_(transport), domains_(domains), tree_(tree) {}

  // The caller fills this before start() and does not change it until the exchange is idle.
  SliceWork& work() { return work_; }
  // Reduces within the domain. With a single domain the exchange is complete at once.
  void start();
  // Makes progress; returns whether something moved.
  bool advance();
  bool idle() const { return phase_ == Phase::Idle; }
  Phase phase() const { return phase_; }

  // Bytes of scratch memory that this work needs between domains. reserve() allocates them, before the first advance();
  // without it advance() allocates as much as it needs.
  std::size_t scratch_bytes(const SliceWork& work) const;
  void reserve(std::size_t bytes);
  std::int64_t sent() const { return sent_; }  // bytes sent to other domains since construction

 private:
  struct Incoming {  // an open sum, or a part of the root, from another domain
    int domain;
    Range range;
    std::byte* message;  // the memory of the message
    void* values;        // the values: `message` itself, unless the wire is narrow
  };
  bool narrow() const { return work_.wire != Wire::Exact; }
  Range part(int domain) const;
  void reduce_in_domain(Range range);
  void exchange();
  void reduce_parts();
  void gather();
  void finish();
  void receive(int domain, Range range, void* values);
  void send(int domain, comm::ConstBuffer message);
  comm::ConstBuffer message_of(const void* base, Range range);
  void widen_arrivals();
  std::byte* take(std::size_t bytes);
  template <class Each>
  void for_each_peer(const Each& each) const;

  Transport& transport_;
  const Domains& domains_;
  const DomainTree& tree_;
  SliceWork work_;
  Phase phase_ = Phase::Idle;
  struct Scratch {
    std::shared_ptr<std::byte[]> memory;
    std::size_t capacity = 0, used = 0;
  } scratch_;
  std::vector<const void*> open_, operands_;  // open sums of this domain; operands of the present reduction
  std::vector<void*> outs_;                   // of the present reduction
  std::vector<Incoming> incoming_;
  std::vector<Transport::MessageHandle> handles_;
  std::int64_t sent_ = 0;
};

}  // namespace lockstep::parallel

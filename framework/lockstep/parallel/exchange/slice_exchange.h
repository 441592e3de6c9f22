// The one way of a slice from all ranks' operands to their reduction, for buckets, the public allreduce and collective
// nodes alike. The driver of the slice in each domain
//   1. reduces what its domain can complete by itself, from memory that the domain sees (the open sums);
//   2. exchanges open sums with the drivers of the other domains and reduces its own part of the slice to the root;
//   3. sends that part of the root to the other drivers, if the result is to be whole everywhere.
// Messages are started and asked after, never waited for. One thread at a time. Throws Error where MPI fails.
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
  int slice = 0, tag = 0;    // tag: of all its messages
  std::vector<Range> parts;  // by domain: elements, disjoint; Replicated: one, the whole slice
  // First elements; memory of all stays until the exchange is idle.
  std::vector<const void*> operands;  // as in DomainTree::operands
  std::vector<void*> open;            // by open sum of this domain: its memory; none: over the sum's first operand
  std::vector<void*> outs;            // the result is made in the first, then copied to the rest
  std::int64_t out_begin = 0;         // which element lies where an out begins
};

class SliceExchange {
 public:
  enum class Phase : std::uint8_t { Idle, Reduced, Exchange, Gather };

  // What it refers to outlives it.
  SliceExchange(Transport& transport, const Domains& domains, const DomainTree& tree)
      : transport_(transport), domains_(domains), tree_(tree) {}

  // To be filled before start(); unchanged until idle.
  SliceWork& work() { return work_; }
  // Reduces in the domain. In one domain the result is there at once.
  void start();
  // Drives the messages on; whether something moved.
  bool advance();
  bool idle() const { return phase_ == Phase::Idle; }
  Phase phase() const { return phase_; }

  // Bytes of its own memory that this work takes between domains; reserve() gets them before the first start().
  std::size_t scratch_bytes(const SliceWork& work) const;
  void reserve(std::size_t bytes);
  std::int64_t sent() const { return sent_; }  // bytes to other domains, since it was made

 private:
  struct Incoming {  // an open sum or a part of the root, of another domain
    int domain;
    Range range;
    std::byte* message;  // as it arrives
    void* values;        // as it is used: `message` itself, unless the wire is narrow
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
  std::vector<const void*> open_, operands_;  // this domain's open sums; of the reduction at work
  std::vector<void*> outs_;                   // of the same
  std::vector<Incoming> incoming_;
  std::vector<Transport::MessageHandle> handles_;
  std::int64_t sent_ = 0;
};

}  // namespace lockstep::parallel

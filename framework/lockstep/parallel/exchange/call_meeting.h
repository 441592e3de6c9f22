// Compares the calls of all ranks of a collective reduction before it starts: each rank posts its call in memory that
// its domain sees, reads the calls of the other ranks, and continues if all calls are equal. The first ranks of domains
// compare by messages. Small data travels with the call. A rank may post several calls before the first has met; calls
// meet in order. One thread at a time; all ranks post in the same order. Throws Error where MPI or a rank fails.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/parallel/exchange/shared_allocations.h"
#include "lockstep/parallel/exchange/shared_flags.h"
#include "lockstep/parallel/exchange/slice_exchange.h"

namespace lockstep::parallel {

struct ReduceCall {
  std::int64_t count = 0;
  comm::Element element = comm::Element::Byte;
  comm::ReduceOp op = comm::ReduceOp::Sum;
  std::uint64_t parts = 0;  // checksum of the parts of a reduce_scatter; 0: an allreduce
  SharedAllocations::Address in = {}, out = {};
  std::array<char, 200> error = {};  // the error of the call, else empty

  std::int64_t bytes() const { return count * size_of(element); }
  bool wants_same(const ReduceCall& other) const {
    return count == other.count && element == other.element && op == other.op && parts == other.parts;
  }
};

class CallMeeting {
 public:
  static constexpr std::int64_t kInline = 4096;  // bytes of data that travel with a call
  static constexpr int kFlags = 3, kTags = 2;    // its tags are 0 and 1
  static std::size_t bytes();                    // of memory, per rank

  // All references outlive the object. `memory` is by local rank, zero at first. Flags [0, kFlags) of `flags` belong to
  // it.
  CallMeeting(Transport& transport, SharedFlags& flags, std::span<const std::span<std::byte>> memory,
              const Domains& domains, const DomainTree& tree);

  // Posts the next call, with its data if the call is small. Returns false if no slot is free, as some rank has not yet
  // closed an earlier call.
  bool post(const ReduceCall& mine, const void* in);

  // The functions below concern the oldest call that is posted and not closed.
  bool met();  // whether all ranks have made the call; drives its messages
  // Once met: the error, alike on all ranks; nothing if the reduction can start.
  std::optional<std::string> refusal() const;
  const ReduceCall& of(int local_rank) const { return post_of(local_rank).call; }
  // Whether the data travels with the call; reduce() writes elements `range` of the result of such a call, unless it
  // was refused.
  static bool is_small(const ReduceCall& call) { return call.bytes() <= kInline; }
  void reduce(Range range, void* out);
  void close();  // this rank has read the calls of all ranks

 private:
  static constexpr std::uint32_t kSlots = 8;  // for calls that are posted and not closed on all ranks
  struct alignas(64) Post {
    ReduceCall call;
    alignas(64) std::array<std::byte, kInline> data;
  };
  // The first call, by rank of the job, that differs from the call of another rank, and that call; rank -1: all are
  // equal.
  struct Verdict {
    int rank = -1, other_rank = -1;
    ReduceCall call = {}, other = {};
  };
  struct alignas(64) Answer {  // the result of the comparison of domains, in memory of the domain's first rank
    Verdict verdict;
    alignas(64) std::array<std::byte, kInline> data;
  };
  struct Header {  // of the messages between domains
    ReduceCall call;
    Verdict verdict;
  };
  enum Flag : int { kPosted, kAnswered, kRead };
  enum class Phase : std::uint8_t { Posted, Headers, Data, Answered };

  Post& post_at(int local_rank, std::uint32_t number) const;
  Post& post_of(int local_rank) const { return post_at(local_rank, closed_ + 1); }
  Answer& answer() const;
  bool has_room(std::uint32_t number);
  static void compare(Verdict& verdict, int rank, const ReduceCall& call, int other_rank, const ReduceCall& other);
  Verdict verdict_of_domain() const;
  bool ask_domains();
  void send_headers();
  void judge_headers();
  void start_data();

  Transport& transport_;
  SharedFlags& flags_;
  std::vector<std::byte*> memory_;  // by local rank
  const Domains& domains_;
  const DomainTree& tree_;
  std::uint32_t posted_ = 0, closed_ = 0;  // calls
  std::uint32_t read_ = 0;                 // calls that all ranks of the domain have closed, as last seen
  // Used by the first rank of a domain, if there are several domains:
  Phase phase_ = Phase::Posted;
  struct Messages {
    std::vector<Header> headers;  // by domain
    std::vector<std::byte> open;  // sums of this domain
  };
  std::shared_ptr<Messages> messages_ = std::make_shared<Messages>();
  std::vector<Transport::MessageHandle> handles_;
  SliceExchange exchange_;  // of small data
};

}  // namespace lockstep::parallel

// How the ranks of a collective reduction meet: each posts what it wants reduced in memory that its domain sees, reads
// what the others want, and goes on if all want the same. Domains compare by messages between their first ranks. Small
// data travels with the call and is summed at once. Alike on all ranks, one thread each; throws AgreedError on all
// ranks where calls differ or one is wrong, naming it.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/comm/agreement.h"
#include "lockstep/parallel/exchange/shared_flags.h"
#include "lockstep/parallel/exchange/transport.h"
#include "lockstep/parallel/exchange/tree_reduce.h"
#include "lockstep/parallel/tree/domain_tree.h"

namespace lockstep {

struct ReduceCall {
  struct Place {  // in memory that the domain sees
    std::int32_t allocation = -1;
    std::int64_t offset = 0;
  };
  std::int64_t count = 0;
  comm::Element element = comm::Element::Byte;
  comm::ReduceOp op = comm::ReduceOp::Sum;
  Place in = {}, out = {};
  std::array<char, 200> error = {};  // what is wrong with the call, else empty

  std::int64_t bytes() const { return count * size_of(element); }
  bool wants_same(const ReduceCall& other) const {
    return count == other.count && element == other.element && op == other.op;
  }
};

class ReduceCalls {
 public:
  static constexpr std::int64_t kInline = 4096;                                 // bytes of data that travel with a call
  static constexpr int kFlags = 2, kTags = 2;                                   // its tags are 0 and 1
  static std::size_t bytes() { return sizeof(Post) * 2 + sizeof(Answer) * 2; }  // of memory, per rank

  // What it refers to outlives it; `memory` by local rank, zero at first. Flags [0, kFlags) of `flags` are its own.
  ReduceCalls(Transport& transport, SharedFlags& flags, std::span<const std::span<std::byte>> memory,
              const Domains& domains, const DomainTree& tree);

  // Until all ranks have called. Of a call of up to kInline bytes `in` is reduced into `out`, which may be `in`; of a
  // longer one nothing is touched.
  void meet(const ReduceCall& mine, const void* in, void* out);
  const ReduceCall& of(int local_rank) const { return post(local_rank).call; }  // until the next meet()

 private:
  struct alignas(64) Post {
    ReduceCall call;
    alignas(64) std::array<std::byte, kInline> data;
  };
  // The first call that does not fit, by rank of the job, and that of another rank; rank -1 if all do.
  struct Verdict {
    int rank = -1, other_rank = -1;
    ReduceCall call = {}, other = {};
  };
  struct alignas(64) Answer {  // to a call that several domains make, in memory of a domain's first rank
    Verdict verdict;
    alignas(64) std::array<std::byte, kInline> data;
  };
  struct Header {  // of the messages between domains
    ReduceCall call;
    Verdict verdict;
  };
  enum Flag : int { kPosted, kAnswered };

  Post& post(int local_rank) const;
  Answer& answer() const;
  static void compare(Verdict& verdict, int rank, const ReduceCall& call, int other_rank, const ReduceCall& other);
  Verdict verdict_of_domain() const;
  [[noreturn]] static void refuse(const Verdict& verdict);
  void reduce_domain(const ReduceCall& call, void* out);
  void ask_domains(const ReduceCall& call);
  void exchange_headers(Verdict& verdict);
  void exchange_data(const ReduceCall& call, void* out);
  std::byte* open_sum(std::size_t i) { return messages_->open.data() + i * static_cast<std::size_t>(kInline); }
  void drive_all();

  Transport& transport_;
  SharedFlags& flags_;
  std::vector<std::byte*> memory_;  // by local rank
  const Domains& domains_;
  const DomainTree& tree_;
  int local_rank_;
  std::uint32_t number_ = 0;  // of calls
  bool broken_ = false;       // messages of a refused call may be left
  std::vector<const void*> operands_;
  struct Messages {
    std::vector<Header> headers;  // by domain
    std::vector<std::byte> open;  // open sums by place in the tree's order
  };
  std::shared_ptr<Messages> messages_ = std::make_shared<Messages>();
  std::vector<Transport::MessageHandle> handles_;
};

}  // namespace lockstep

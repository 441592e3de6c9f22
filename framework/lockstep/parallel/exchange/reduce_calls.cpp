#include "lockstep/parallel/exchange/reduce_calls.h"

#include <fmt/format.h>

#include <string>

#include "lockstep/core/backoff.h"

namespace lockstep {
namespace {

std::string text_of(const ReduceCall& call) {
  return fmt::format("{} of {} {}", name_of(call.op), call.count, name_of(call.element));
}

template <class Condition>
void wait_until(const Condition& condition) {
  for (Backoff wait; !condition();) wait.pause();
}

}  // namespace

ReduceCalls::ReduceCalls(Transport& transport, SharedFlags& flags, std::span<const std::span<std::byte>> memory,
                         const Domains& domains, const DomainTree& tree)
    : transport_(transport), flags_(flags), domains_(domains), tree_(tree), local_rank_(domains.local_rank()) {
  for (std::span<std::byte> m : memory) memory_.push_back(m.data());
  messages_->headers.resize(static_cast<std::size_t>(domains.count()));
  if (domains.count() > 1 && local_rank_ == 0)
    messages_->open.resize(tree.order.size() * static_cast<std::size_t>(kInline));
  transport_.keep(messages_);
}

// Two of each, used in turn: who makes the next call but one knows that all have made the next, and read this.
ReduceCalls::Post& ReduceCalls::post(int local_rank) const {
  return reinterpret_cast<Post*>(memory_[static_cast<std::size_t>(local_rank)])[number_ % 2];
}

ReduceCalls::Answer& ReduceCalls::answer() const {
  return reinterpret_cast<Answer*>(memory_[0] + 2 * sizeof(Post))[number_ % 2];
}

void ReduceCalls::meet(const ReduceCall& mine, const void* in, void* out) {
  check(!broken_, "allreduce", "out of use since an earlier call was refused");
  ++number_;
  post(local_rank_).call = mine;
  const bool with_data = mine.error[0] == 0 && mine.bytes() <= kInline && mine.count > 0;
  if (with_data) std::memcpy(post(local_rank_).data.data(), in, static_cast<std::size_t>(mine.bytes()));
  flags_.raise(kPosted, number_);
  if (domains_.count() == 1) {
    wait_until([&] { return flags_.all_reached(kPosted, number_); });
    if (const Verdict verdict = verdict_of_domain(); verdict.rank >= 0) refuse(verdict);
    if (with_data) reduce_domain(mine, out);
    return;
  }
  if (local_rank_ == 0) {
    wait_until([&] { return flags_.all_reached(kPosted, number_); });
    ask_domains(mine);
    flags_.raise(kAnswered, number_);
  } else {
    wait_until([&] { return flags_.awaited(0, kAnswered, number_); });
  }
  if (answer().verdict.rank >= 0) {
    broken_ = true;
    refuse(answer().verdict);
  }
  if (with_data) std::memcpy(out, answer().data.data(), static_cast<std::size_t>(mine.bytes()));
}

void ReduceCalls::compare(Verdict& verdict, int rank, const ReduceCall& call, int other_rank, const ReduceCall& other) {
  if (verdict.rank >= 0 || (call.error[0] == 0 && call.wants_same(other))) return;
  verdict = {.rank = rank, .other_rank = other_rank, .call = call, .other = other};
}

ReduceCalls::Verdict ReduceCalls::verdict_of_domain() const {
  Verdict verdict;
  for (int l = 0; l < domains_.local_size(); ++l) {
    compare(verdict, domains_.local()[static_cast<std::size_t>(l)], post(l).call, domains_.local()[0], post(0).call);
  }
  return verdict;
}

void ReduceCalls::refuse(const Verdict& v) {
  throw comm::AgreedError(v.call.error[0] != 0 ? fmt::format("[allreduce] rank {}: {}", v.rank, v.call.error.data())
                                               : fmt::format("[allreduce] rank {} calls for {}, rank {} for {}", v.rank,
                                                             text_of(v.call), v.other_rank, text_of(v.other)));
}

// Every rank by itself, over the data of all: one flag to wait for, not two.
void ReduceCalls::reduce_domain(const ReduceCall& call, void* out) {
  operands_.clear();
  for (int l = 0; l < domains_.local_size(); ++l) operands_.push_back(post(l).data.data());
  const std::array<void*, 1> outs{out};
  tree_reduce({.element = call.element, .op = call.op, .merges = tree_.sums[0].merges}, operands_, call.count, outs);
}

// --- of a domain's first rank, if there are several domains

void ReduceCalls::ask_domains(const ReduceCall& call) {
  Answer& a = answer();
  a.verdict = verdict_of_domain();
  messages_->headers[static_cast<std::size_t>(domains_.mine())] = {call, a.verdict};
  exchange_headers(a.verdict);
  if (a.verdict.rank < 0 && call.count > 0 && call.bytes() <= kInline) exchange_data(call, a.data.data());
}

void ReduceCalls::exchange_headers(Verdict& verdict) {
  std::vector<Header>& headers = messages_->headers;
  const auto message = [&](int domain) {
    return comm::Buffer(&headers[static_cast<std::size_t>(domain)], sizeof(Header), comm::Element::Byte);
  };
  for (int d = 0; d < domains_.count(); ++d) {
    if (d == domains_.mine()) continue;
    handles_.push_back(transport_.receive(message(d), domains_.of(d)[0], 0));
    handles_.push_back(transport_.send(message(domains_.mine()), domains_.of(d)[0], 0));
  }
  drive_all();
  verdict = headers[0].verdict;
  for (int d = 1; d < domains_.count(); ++d) {
    const Header& header = headers[static_cast<std::size_t>(d)];
    if (verdict.rank < 0) verdict = header.verdict;
    compare(verdict, domains_.of(d)[0], header.call, domains_.of(0)[0], headers[0].call);
  }
}

void ReduceCalls::exchange_data(const ReduceCall& call, void* out) {
  const TreeReduction step{.element = call.element, .op = call.op};
  const auto reduce = [&](std::span<const TreeMerge> merges, void* into) {
    TreeReduction r = step;
    r.merges = merges;
    const std::array<void*, 1> outs{into};
    tree_reduce(r, operands_, call.count, outs);
  };
  for (std::size_t i = 0; i < tree_.order.size(); ++i) {
    const DomainTree::Open& open = tree_.order[i];
    const comm::Buffer sum(open_sum(i), call.count, call.element);
    if (open.domain != domains_.mine()) {
      handles_.push_back(transport_.receive(sum, domains_.of(open.domain)[0], 1));
      continue;
    }
    const DomainTree::Sum& own = tree_.sums[static_cast<std::size_t>(open.index)];
    operands_.clear();
    for (int o : own.operands)
      operands_.push_back(post(tree_.operands[static_cast<std::size_t>(o)].local_rank).data.data());
    reduce(own.merges, sum.data);
    for (int d = 0; d < domains_.count(); ++d) {
      if (d != domains_.mine()) handles_.push_back(transport_.send(sum, domains_.of(d)[0], 1));
    }
  }
  drive_all();
  operands_.clear();
  for (std::size_t i = 0; i < tree_.order.size(); ++i) operands_.push_back(open_sum(i));
  reduce(tree_.to_root, out);
}

void ReduceCalls::drive_all() {
  wait_until([&] {
    flags_.check_alive();
    return transport_.all_done(handles_);
  });
}

}  // namespace lockstep

#include "lockstep/parallel/exchange/call_meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace lockstep::parallel {
namespace {

std::string text_of(const ReduceCall& call) {
  const std::string text = fmt::format("{} of {} {}", name_of(call.op), call.count, name_of(call.element));
  return call.parts == 0 ? text : fmt::format("{} in parts (checksum {:016x})", text, call.parts);
}

}  // namespace

std::size_t CallMeeting::bytes() { return kSlots * (sizeof(Post) + sizeof(Answer)); }

CallMeeting::CallMeeting(Transport& transport, SharedFlags& flags, std::span<const std::span<std::byte>> memory,
                         const Domains& domains, const DomainTree& tree)
    : transport_(transport), flags_(flags), domains_(domains), tree_(tree), exchange_(transport, domains, tree) {
  for (std::span<std::byte> m : memory) memory_.push_back(m.data());
  messages_->headers.resize(static_cast<std::size_t>(domains.count()));
  messages_->open.resize(tree.sums.size() * static_cast<std::size_t>(kInline));
  transport_.keep(messages_);
}

CallMeeting::Post& CallMeeting::post_at(int local_rank, std::uint32_t number) const {
  return reinterpret_cast<Post*>(memory_[static_cast<std::size_t>(local_rank)])[number % kSlots];
}

CallMeeting::Answer& CallMeeting::answer() const {
  return reinterpret_cast<Answer*>(memory_[0] + kSlots * sizeof(Post))[(closed_ + 1) % kSlots];
}

// A slot is free once all ranks have closed its earlier call. Numbers may wrap.
bool CallMeeting::has_room(std::uint32_t number) {
  const std::uint32_t before = number - kSlots;
  if (static_cast<std::int32_t>(read_ - before) >= 0) return true;
  if (!flags_.all_reached(kRead, before)) return false;
  std::uint32_t ahead = closed_ - before;
  for (int r = 0; r < flags_.size(); ++r) ahead = std::min(ahead, flags_.value(r, kRead) - before);
  read_ = before + ahead;
  return true;
}

bool CallMeeting::post(const ReduceCall& mine, const void* in) {
  const std::uint32_t number = posted_ + 1;
  if (!has_room(number)) return false;
  Post& post = post_at(domains_.local_rank(), number);
  post.call = mine;
  if (mine.error[0] == 0 && is_small(mine) && mine.count > 0)
    std::memcpy(post.data.data(), in, static_cast<std::size_t>(mine.bytes()));
  flags_.raise(kPosted, posted_ = number);
  return true;
}

bool CallMeeting::met() {
  if (posted_ == closed_) return false;
  if (domains_.count() == 1) return flags_.all_reached(kPosted, closed_ + 1);
  return domains_.local_rank() == 0 ? ask_domains() : flags_.awaited(0, kAnswered, closed_ + 1);
}

std::optional<std::string> CallMeeting::refusal() const {
  const Verdict v = domains_.count() == 1 ? verdict_of_domain() : answer().verdict;
  if (v.rank < 0) return std::nullopt;
  if (v.call.error[0] != 0) return fmt::format("[allreduce] rank {}: {}", v.rank, v.call.error.data());
  return fmt::format("[allreduce] rank {} calls for {}, rank {} for {}", v.rank, text_of(v.call), v.other_rank,
                     text_of(v.other));
}

// In one domain every rank reduces the data of all ranks itself, which needs a wait for one flag, not for two.
void CallMeeting::reduce(Range range, void* out) {
  const ReduceCall& call = of(domains_.local_rank());
  const std::int64_t width = size_of(call.element);
  if (range.size() == 0) return;
  if (domains_.count() > 1) {
    std::memcpy(out, answer().data.data() + range.begin * width, static_cast<std::size_t>(range.size() * width));
    return;
  }
  std::vector<const void*>& operands = exchange_.work().operands;
  operands.clear();
  for (int l = 0; l < domains_.local_size(); ++l) operands.push_back(post_of(l).data.data() + range.begin * width);
  const std::array<void*, 1> outs{out};
  tree_reduce({.element = call.element, .op = call.op, .merges = tree_.sums[0].merges}, operands, range.size(), outs);
}

void CallMeeting::close() {
  phase_ = Phase::Posted;
  flags_.raise(kRead, ++closed_);
}

void CallMeeting::compare(Verdict& verdict, int rank, const ReduceCall& call, int other_rank, const ReduceCall& other) {
  if (verdict.rank >= 0 || (call.error[0] == 0 && call.wants_same(other))) return;
  verdict = {.rank = rank, .other_rank = other_rank, .call = call, .other = other};
}

CallMeeting::Verdict CallMeeting::verdict_of_domain() const {
  Verdict verdict;
  for (int l = 0; l < domains_.local_size(); ++l)
    compare(verdict, domains_.local()[static_cast<std::size_t>(l)], of(l), domains_.local()[0], of(0));
  return verdict;
}

// --- for the first rank of a domain, if there are several domains

bool CallMeeting::ask_domains() {
  const ReduceCall& call = of(0);
  if (phase_ == Phase::Posted) {
    if (!flags_.all_reached(kPosted, closed_ + 1)) return false;
    send_headers();
    phase_ = Phase::Headers;
  }
  if (phase_ == Phase::Headers) {
    if (!transport_.all_done(handles_)) {
      flags_.check_alive();
      return false;
    }
    judge_headers();
    phase_ = Phase::Answered;
    if (answer().verdict.rank < 0 && call.count > 0 && is_small(call)) start_data();
  }
  if (phase_ == Phase::Data) {
    exchange_.advance();
    if (!exchange_.idle()) {
      flags_.check_alive();
      return false;
    }
    phase_ = Phase::Answered;
  }
  flags_.raise(kAnswered, closed_ + 1);
  return true;
}

void CallMeeting::send_headers() {
  std::vector<Header>& headers = messages_->headers;
  headers[static_cast<std::size_t>(domains_.mine())] = {of(0), verdict_of_domain()};
  const auto message = [&](int domain) {
    return comm::Buffer(&headers[static_cast<std::size_t>(domain)], sizeof(Header), comm::Element::Byte);
  };
  for (int d = 0; d < domains_.count(); ++d) {
    if (d == domains_.mine()) continue;
    handles_.push_back(transport_.receive(message(d), domains_.of(d)[0], 0));
    handles_.push_back(transport_.send(message(domains_.mine()), domains_.of(d)[0], 0));
  }
}

// All domains have the same headers, so they come to the same verdict.
void CallMeeting::judge_headers() {
  const std::vector<Header>& headers = messages_->headers;
  Verdict verdict = headers[0].verdict;
  for (int d = 1; d < domains_.count(); ++d) {
    const Header& header = headers[static_cast<std::size_t>(d)];
    if (verdict.rank < 0) verdict = header.verdict;
    compare(verdict, domains_.of(d)[0], header.call, domains_.of(0)[0], headers[0].call);
  }
  answer().verdict = verdict;
}

void CallMeeting::start_data() {
  SliceWork& work = exchange_.work();
  work.element = of(0).element;
  work.op = of(0).op;
  work.result = SliceWork::Result::Replicated;
  work.tag = 1;
  work.parts.assign(1, {0, of(0).count});
  work.operands.clear();
  for (const DomainTree::Operand& o : tree_.operands) work.operands.push_back(post_of(o.local_rank).data.data());
  work.open.clear();
  for (std::size_t i = 0; i < tree_.sums.size(); ++i)
    work.open.push_back(messages_->open.data() + i * static_cast<std::size_t>(kInline));
  work.outs.assign(1, answer().data.data());
  exchange_.start();
  phase_ = Phase::Data;
}

}  // namespace lockstep::parallel

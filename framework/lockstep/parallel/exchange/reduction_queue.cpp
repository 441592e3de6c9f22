#include "lockstep/parallel/exchange/reduction_queue.h"

#include <algorithm>
#include <utility>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/core/random.h"

namespace lockstep::parallel {
namespace {

constexpr int kFlags = CallMeeting::kFlags + ChunkPipeline::kFlags;

// A checksum of the parts of all ranks: 0 without parts, else not 0.
std::uint64_t checksum(std::span<const Range> parts) {
  std::uint64_t sum = 1;
  for (const Range part : parts) sum = mix(sum, static_cast<std::uint64_t>(part.size()));
  return parts.empty() ? 0 : std::max<std::uint64_t>(1, sum);
}

}  // namespace

ReductionQueue::ReductionQueue(const comm::Communicator& comm, const Domains& domains, const Options& options)
    : comm_(comm),
      domains_(domains),
      tree_(WorldLayout(comm.rank(), comm.size(), 0), domains),
      memory_(comm, domains, false),
      allocations_(memory_, domains.local_rank()),
      transport_(std::make_unique<CommTransport>(comm)) {
  const std::int64_t chunk = static_cast<std::int64_t>(whole_lines(static_cast<std::size_t>(options.chunk_bytes)));
  const auto staging = memory_.segments(memory_.own(ChunkPipeline::bytes(chunk)));
  const auto rows = memory_.segments(memory_.own(SharedFlags::bytes(kFlags)));
  const auto posts = memory_.segments(memory_.own(CallMeeting::bytes()));
  flags_ = std::make_unique<SharedFlags>(rows, domains_.local_rank(), "call");
  meeting_ = std::make_unique<CallMeeting>(*transport_, *flags_, posts, domains_, tree_);
  pipeline_ = std::make_unique<ChunkPipeline>(*transport_, *flags_, staging, domains_, tree_,
                                              ChunkPipeline::Options{.chunk_bytes = chunk,
                                                                     .threads = options.threads,
                                                                     .first_flag = CallMeeting::kFlags,
                                                                     .first_tag = CallMeeting::kTags});
}

ReductionQueue::~ReductionQueue() {
  const bool given_up = std::ranges::any_of(entries_, [](const auto& entry) { return !entry->reduction.done; });
  const bool failing = std::uncaught_exceptions() > 0 || comm_.poisoned() || given_up;
  if (comm::Environment::active()) flags_->leave(comm_.rank(), counts_.calls, failing);
  for (const auto& entry : entries_) entry->queue = nullptr;
}

std::span<std::byte> ReductionQueue::allocate(std::size_t bytes) {
  flags_->check_nobody_left();  // allocating is collective, and a rank that has left does not take part
  return allocations_.allocate(bytes);
}

std::shared_ptr<Reduction> ReductionQueue::start(ChunkedReduction reduction, const std::string& error) {
  check(transport_ != nullptr, "allreduce", "the engine cannot be used after an earlier failure");
  auto entry = std::make_shared<Entry>(std::move(reduction));
  const ChunkedReduction& r = entry->reduction;
  entry->queue = this;
  entry->call = {.count = r.in.count, .element = r.in.element, .op = r.op, .parts = checksum(r.parts)};
  error.copy(entry->call.error.data(), entry->call.error.size() - 1);
  if (error.empty()) {
    entry->call.in = allocations_.address_of(r.in.data, r.in.bytes());
    entry->call.out = allocations_.address_of(r.out.data, r.out.bytes());
  }
  entries_.push_back(entry);
  try {
    post();
  } catch (...) {
    give_up();
    throw;
  }
  return entry;
}

bool ReductionQueue::progress() {
  try {
    const bool posted = post(), met = meet();
    return pipeline_->progress() || posted || met;
  } catch (...) {
    give_up();
    throw;
  }
}

bool ReductionQueue::post() {
  bool moved = false;
  while (counts_.posted < entries_.size() &&
         meeting_->post(entries_[counts_.posted]->call, entries_[counts_.posted]->reduction.in.data)) {
    ++counts_.posted;
    moved = true;
  }
  return moved;
}

bool ReductionQueue::meet() {
  if (counts_.met == counts_.posted || !meeting_->met()) return false;
  const std::shared_ptr<Entry> entry = entries_[counts_.met];
  ++counts_.met;
  ++counts_.calls;
  if (const auto refusal = meeting_->refusal()) {
    entry->refusal = std::make_exception_ptr(comm::AgreedError(*refusal));
    entry->reduction.done = true;
  } else {
    begin(entry);
  }
  meeting_->close();
  return true;
}

void ReductionQueue::begin(const std::shared_ptr<Entry>& entry) {
  ChunkedReduction& r = entry->reduction;
  if (CallMeeting::is_small(entry->call)) {
    const Range whole{0, r.in.count};
    meeting_->reduce(r.parts.empty() ? whole : r.parts[static_cast<std::size_t>(comm_.rank())], r.out.data);
    r.done = true;
    return;
  }
  bool inputs = true, outputs = true;
  for (int l = 0; l < domains_.local_size(); ++l) {
    inputs = inputs && meeting_->of(l).in.allocation >= 0;
    outputs = outputs && meeting_->of(l).out.allocation >= 0;
  }
  for (int l = 0; inputs && l < domains_.local_size(); ++l)
    r.inputs.push_back(allocations_.pointer(l, meeting_->of(l).in));
  for (int l = 0; outputs && l < domains_.local_size(); ++l)
    r.outputs.push_back(allocations_.pointer(l, meeting_->of(l).out));
  pipeline_->add({entry, &r});
}

// Messages may use memory of callers, who may free it once they have the error.
void ReductionQueue::give_up() noexcept {
  if (transport_ == nullptr) return;
  flags_->fail();
  transport_.reset();  // it is not driven any more
  if (comm_.has_abandoned())
    log()->error("[allreduce] rank {}: MPI may still read and write the memory of a failed call: {}", comm_.rank(),
                 comm::current_error());
}

bool ReductionQueue::Entry::advance() {
  check(queue != nullptr, "allreduce", "the engine of this reduction was destroyed before the reduction was complete");
  check(queue->transport_ != nullptr, "allreduce", "the engine cannot be used after an earlier failure");
  return queue->progress();
}

bool ReductionQueue::Entry::complete() {
  if (!reduction.done) return false;
  if (queue != nullptr) {
    std::deque<std::shared_ptr<Entry>>& entries = queue->entries_;
    if (const auto me = std::ranges::find(entries, this, &std::shared_ptr<Entry>::get); me != entries.end()) {
      entries.erase(me);
      --queue->counts_.posted;
      --queue->counts_.met;
    }
    queue = nullptr;
  }
  if (refusal) std::rethrow_exception(std::exchange(refusal, nullptr));
  return true;
}

void ReductionQueue::Entry::give_up() noexcept {
  if (queue != nullptr && !reduction.done) queue->give_up();
}

}  // namespace lockstep::parallel

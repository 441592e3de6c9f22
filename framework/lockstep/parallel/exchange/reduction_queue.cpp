#include "lockstep/parallel/exchange/reduction_queue.h"

#include <algorithm>
#include <utility>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/core/random.h"
#include "lockstep/core/unusable.h"

namespace lockstep::parallel {
namespace {

constexpr int kQueueFlags = CallMeeting::kFlags + ChunkPipeline::kFlags;

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
  const auto rows = memory_.segments(memory_.own(SharedFlags::bytes(kQueueFlags)));
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
  const auto open = std::ranges::count_if(calls_.open, [](const auto& entry) { return !entry->reduction.done; });
  const bool failing = std::uncaught_exceptions() > 0 || comm_.poisoned() || transport_ == nullptr;
  if (comm::Environment::active()) {
    if (open > 0 && !failing) {
      log()->error(
          "[allreduce] rank {}: the engine is destroyed while {} of its reductions {} not complete: given up, on the "
          "other ranks too; expected that every handle is waited for before",
          comm_.rank(), open, open == 1 ? "is" : "are");
      flags_->leave_incomplete(comm_.rank(), calls_.made);
    }
    flags_->leave(comm_.rank(), calls_.made, failing);
  }
  for (const auto& entry : calls_.open) entry->queue = nullptr;
}

std::span<std::byte> ReductionQueue::allocate(std::size_t bytes) {
  flags_->check_nobody_left();  // allocating is collective, and a rank that has left does not take part
  return allocations_.allocate(bytes);
}

void ReductionQueue::check_usable() const {
  if (transport_ == nullptr) fail_with("allreduce", unusable("the engine", failure_));
}

// Uses an entry again that neither a handle nor the pipeline holds any more.
std::shared_ptr<ReductionQueue::Entry> ReductionQueue::entry_for(ChunkedReduction reduction) {
  const auto spare = std::ranges::find_if(calls_.spare, [](const auto& entry) { return entry.use_count() == 1; });
  if (spare == calls_.spare.end()) return std::make_shared<Entry>(std::move(reduction));
  std::shared_ptr<Entry> entry = std::move(*spare);
  calls_.spare.erase(spare);
  std::swap(reduction.inputs, entry->reduction.inputs);  // so that their memory stays
  std::swap(reduction.outputs, entry->reduction.outputs);
  entry->reduction = std::move(reduction);
  entry->reduction.inputs.clear();
  entry->reduction.outputs.clear();
  return entry;
}

std::shared_ptr<Reduction> ReductionQueue::start(ChunkedReduction reduction, const std::string& error) {
  check_usable();
  std::shared_ptr<Entry> entry = entry_for(std::move(reduction));
  const ChunkedReduction& r = entry->reduction;
  entry->queue = this;
  entry->call = {.count = r.in.count, .element = r.in.element, .op = r.op, .parts = checksum(r.parts)};
  error.copy(entry->call.error.data(), entry->call.error.size() - 1);
  if (error.empty()) {
    entry->call.in = allocations_.address_of(r.in.data, r.in.bytes());
    entry->call.out = allocations_.address_of(r.out.data, r.out.bytes());
  }
  calls_.open.push_back(entry);
  try {
    post();
  } catch (...) {
    give_up(comm::current_error());
    throw;
  }
  return entry;
}

bool ReductionQueue::progress() {
  try {
    const bool posted = post(), met = meet();
    return pipeline_->progress() || posted || met;
  } catch (...) {
    give_up(comm::current_error());
    throw;
  }
}

bool ReductionQueue::post() {
  bool moved = false;
  while (calls_.posted < calls_.open.size()) {
    const Entry& next = *calls_.open[calls_.posted];
    if (!meeting_->post(next.call, next.reduction.in.data)) break;
    ++calls_.posted;
    moved = true;
  }
  return moved;
}

bool ReductionQueue::meet() {
  if (calls_.met == calls_.posted || !meeting_->met()) return false;
  const std::shared_ptr<Entry> entry = calls_.open[calls_.met];
  ++calls_.met;
  ++calls_.made;
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

void ReductionQueue::remove(const Entry& entry) {
  const auto at = std::ranges::find(calls_.open, &entry, &std::shared_ptr<Entry>::get);
  if (at == calls_.open.end()) return;
  calls_.spare.push_back(std::move(*at));
  calls_.open.erase(at);
  --calls_.posted;
  --calls_.met;
}

// Messages may use memory of callers, who may free it once they have the error.
void ReductionQueue::give_up(std::string_view reason) noexcept {
  if (transport_ == nullptr) return;
  failure_ = reason;
  flags_->fail();
  transport_.reset();  // it is not driven any more
  if (comm_.has_abandoned())
    log()->error("[allreduce] rank {}: MPI may still read and write the memory of a failed call: {}", comm_.rank(),
                 failure_);
}

bool ReductionQueue::Entry::advance() {
  check(queue != nullptr, "allreduce",
        "the engine of this reduction was destroyed before the reduction was complete; wait for every handle before");
  check(comm::Environment::active(), "allreduce", "MPI was finalised before this reduction was complete");
  queue->check_usable();
  return queue->progress();
}

bool ReductionQueue::Entry::complete() {
  if (!reduction.done) return false;
  if (queue != nullptr) std::exchange(queue, nullptr)->remove(*this);
  if (refusal) std::rethrow_exception(std::exchange(refusal, nullptr));
  return true;
}

void ReductionQueue::Entry::give_up() noexcept {
  if (queue != nullptr && !reduction.done)
    queue->give_up("a handle was destroyed by an exception before its reduction was complete");
}

}  // namespace lockstep::parallel

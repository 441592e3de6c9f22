#include "lockstep/parallel/exchange/allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <string_view>
#include <utility>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/parallel/exchange/reduction_queue.h"

namespace lockstep::parallel {
namespace {

// Returns the error of a call whose result, `count` elements from element `begin` of the reduction on, goes to `out`;
// else an empty text.
std::string fault(const comm::ConstBuffer& in, const comm::Buffer& out, std::int64_t begin, std::int64_t count) {
  if (in.count < 0 || count != out.count || in.element != out.element)
    return fmt::format("{} {} do not fit into {} {}", count, name_of(in.element), out.count, name_of(out.element));
  if ((in.count > 0 && in.data == nullptr) || (out.count > 0 && out.data == nullptr))
    return fmt::format("{} {} at a null pointer", in.data == nullptr ? in.count : out.count, name_of(in.element));
  if (in.element == comm::Element::Byte) return "bytes are opaque: reduce u8 or a wider type";
  const auto begin_in = reinterpret_cast<std::uintptr_t>(in.data),
             begin_out = reinterpret_cast<std::uintptr_t>(out.data);
  const auto bytes_in = static_cast<std::uintptr_t>(in.bytes()), bytes_out = static_cast<std::uintptr_t>(out.bytes());
  const auto first = std::max(begin_in, begin_out), last = std::min(begin_in + bytes_in, begin_out + bytes_out);
  const bool same = begin_out == begin_in + static_cast<std::uintptr_t>(begin * size_of(in.element));
  if (same || first >= last) return {};
  return fmt::format("input and output of {} bytes overlap by {}", out.bytes(), last - first);
}

std::string fault_of_counts(std::span<const std::int64_t> counts, int ranks, std::int64_t elements) {
  if (std::cmp_not_equal(counts.size(), ranks)) return fmt::format("{} parts for {} ranks", counts.size(), ranks);
  for (const std::int64_t n : counts) {
    if (n < 0) return fmt::format("a part of {} elements, expected 0 or more", n);
  }
  const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (sum == elements) return {};
  return fmt::format("parts of {} elements together, the input has {}", sum, elements);
}

// A reduction by MPI_Iallreduce; for a part of the result it needs memory of its own. MPI has no f16 and bf16: the
// blocking call reduces these.
class MpiReduction : public Reduction {
 public:
  MpiReduction(const comm::Communicator& comm, comm::ConstBuffer in, comm::Buffer out, Range wanted, comm::ReduceOp op)
      : out_(out), rank_(comm.rank()) {
    comm::Buffer data = out;
    if (wanted.size() < in.count) {
      whole_ = allocate_aligned(static_cast<std::size_t>(in.bytes()));
      data = {whole_.get(), in.count, in.element};
      from_ = whole_.get() + wanted.begin * size_of(in.element);
    }
    if (in.data != data.data && in.count > 0) std::memcpy(data.data, in.data, static_cast<std::size_t>(in.bytes()));
    if (comm.size() == 1) return;
    if (in.element == comm::Element::F16 || in.element == comm::Element::BF16) {
      comm.allreduce(data, op);
    } else {
      request_ = comm.iallreduce(data, op, whole_);
    }
  }
  bool advance() override {
    check(failure_.empty(), "allreduce", "this reduction has failed before: {}", failure_);
    if (!request_.active()) return false;
    try {
      return request_.test();
    } catch (...) {
      end(comm::current_error());
      throw;
    }
  }
  bool complete() override {
    if (request_.active() || !failure_.empty()) return false;
    if (from_ != nullptr && out_.count > 0)
      std::memcpy(out_.data, std::exchange(from_, nullptr), static_cast<std::size_t>(out_.bytes()));
    return true;
  }
  void give_up() noexcept override { end("a handle was destroyed by an exception before its reduction was complete"); }

 private:
  // MPI cannot give up a collective. If it is not complete within a moment, MPI goes on with its memory: a copy, which
  // the request keeps, or that of the caller.
  void end(std::string_view reason) noexcept {
    failure_ = reason;
    if (request_.give_up() || whole_ != nullptr) return;
    log()->error("[allreduce] rank {}: MPI may still read and write the memory of a failed call: {}", rank_, reason);
  }

  comm::Buffer out_;
  int rank_;
  std::shared_ptr<std::byte[]> whole_;
  const std::byte* from_ = nullptr;
  comm::Request request_;
  std::string failure_;
};

// Waits for the reductions of an engine that is destroyed; returns whether all are complete.
bool drive_forgotten(std::span<const std::shared_ptr<Reduction>> open, int rank) {
  log()->error(
      "[allreduce] rank {}: the engine is destroyed while {} of its reductions {} not complete: the engine waits for "
      "all ranks, as MPI cannot give them up; expected that every handle is waited for before",
      rank, open.size(), open.size() == 1 ? "is" : "are");
  bool complete = true;
  for (const std::shared_ptr<Reduction>& reduction : open) {
    try {
      drive(*reduction);
    } catch (const std::exception& error) {
      complete = false;
      log()->error("[allreduce] rank {}: a reduction that was not waited for has failed: {}", rank, error.what());
    }
  }
  return complete;
}

}  // namespace

Allreduce::Allreduce(const comm::Communicator& comm, const AllreduceOptions& options) : comm_(comm.duplicate()) {
  comm::check_same(comm_, "the path and the chunk of an allreduce",
                   fmt::format("{} {}", name_of(options.path), options.chunk_bytes));
  const Domains nodes =
      options.domains ? *options.domains : Domains::nodes(comm_.topology(), comm_.rank(), comm_.size());
  const auto bytes_of = [&](const Domains& domains) {
    return options.chunk_bytes > 0 ? options.chunk_bytes : choose_chunk_bytes(domains);
  };
  const auto wanted = static_cast<std::size_t>(nodes.local_size()) * ChunkPipeline::bytes(bytes_of(nodes));
  choice_ = choose_path(comm_, {.path = options.path, .domains = nodes, .shared_bytes = wanted});
  if (path() == AllreducePath::Mpi || comm_.size() == 1) return;
  queue_ = std::make_unique<ReductionQueue>(
      comm_, choice_.domains,
      ReductionQueue::Options{.chunk_bytes = bytes_of(choice_.domains), .threads = options.threads});
}

// Until a reduction by MPI is complete, MPI reads and writes its memory, and must not be finalised.
Allreduce::~Allreduce() {
  std::vector<std::shared_ptr<Reduction>> open;
  for (const std::weak_ptr<Reduction>& each : by_mpi_) {
    if (std::shared_ptr<Reduction> reduction = each.lock(); reduction && !reduction->complete())
      open.push_back(std::move(reduction));
  }
  const bool waits = std::uncaught_exceptions() == 0 && !comm_.poisoned() && comm::Environment::active();
  const bool complete = open.empty() || (waits && drive_forgotten(open, comm_.rank()));
  if (!complete || comm_.has_abandoned())
    comm::keep_for_ever(std::make_shared<std::vector<AlignedBuffer>>(std::move(private_)));
}

std::span<std::byte> Allreduce::allocate(std::size_t bytes) {
  if (queue_) return queue_->allocate(bytes);
  AlignedBuffer& buffer = private_.emplace_back(allocate_aligned(bytes));
  std::memset(buffer.get(), 0, bytes);
  return {buffer.get(), bytes};
}

Handle Allreduce::iallreduce(comm::ConstBuffer in, comm::Buffer out, comm::ReduceOp op) {
  return start(in, out, {}, op, fault(in, out, 0, in.count));
}

Handle Allreduce::ireduce_scatter(comm::ConstBuffer in, comm::Buffer out, std::span<const std::int64_t> counts,
                                  comm::ReduceOp op) {
  std::string error = fault_of_counts(counts, comm_.size(), in.count);
  std::vector<Range> parts(static_cast<std::size_t>(comm_.size()));
  for (std::size_t r = 0, begin = 0; error.empty() && r < parts.size(); ++r) {
    parts[r] = {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin) + counts[r]};
    begin += static_cast<std::size_t>(counts[r]);
  }
  const Range mine = parts[static_cast<std::size_t>(comm_.rank())];
  if (error.empty()) error = fault(in, out, mine.begin, mine.size());
  return start(in, out, std::move(parts), op, std::move(error));
}

Handle Allreduce::start(comm::ConstBuffer in, comm::Buffer out, std::vector<Range> parts, comm::ReduceOp op,
                        std::string error) {
  if (queue_) return Handle(queue_->start({.in = in, .out = out, .op = op, .parts = std::move(parts)}, error));
  if (!error.empty()) {
    error = fmt::format("[allreduce] rank {}: {}", comm_.rank(), error);
    if (comm_.size() == 1) throw comm::AgreedError(error);
    throw Error(error);
  }
  const Range wanted = parts.empty() ? Range{0, in.count} : parts[static_cast<std::size_t>(comm_.rank())];
  const auto reduction = std::make_shared<MpiReduction>(comm_, in, out, wanted, op);
  std::erase_if(by_mpi_, [](const std::weak_ptr<Reduction>& each) { return each.expired(); });
  by_mpi_.emplace_back(reduction);
  return Handle(reduction);
}

}  // namespace lockstep::parallel

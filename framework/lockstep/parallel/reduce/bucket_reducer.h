// Sums buckets over all ranks by the reduction tree. The ranks of a domain read each other's buffers: a bucket is cut
// into slices, and once all local ranks have started it, each rank sums its slice over all local buffers, in place.
// Between domains the drivers of a slice exchange open sums by messages, in pieces, so that network and memory work at
// the same time. progress() drives this state machine, from one thread; the same or another thread starts buckets and
// asks for results. Buckets are started in the order in which they were added, each once per step, alike on all ranks;
// between domains, the bucket that was started last comes first. Within a domain there is no MPI call. Throws Error
// where MPI or a local rank fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/parallel/exchange/shared_flags.h"
#include "lockstep/parallel/exchange/slice_exchange.h"
#include "lockstep/parallel/reduce/bucket_hook.h"
#include "lockstep/parallel/reduce/bucket_pieces.h"
#include "lockstep/parallel/reduce/traffic_meter.h"

namespace lockstep::parallel {

struct BucketMemory {
  DType dtype;  // F32 or F64
  std::int64_t elements;
  std::vector<std::vector<void*>> slots;  // by local rank: its slots; those of its open partial sums are read
  // The sum is written to slot 0 of every local rank, or of the owner of each element alone.
  bool everywhere = true;
  void* values = nullptr;          // if not null, owners send these (the updated parameters) to other domains, not sums
  int hooked = -1;                 // its number in the hook; -1: not hooked
  std::span<double> squares = {};  // by block of kBlock elements: sums of squares of this rank's blocks; may be empty
};

struct ReducerOptions {
  Wire wire = Wire::Exact;  // of f32 buckets
  bool threads = true;      // progress() may use OpenMP
  std::int64_t piece_bytes = 1 << 20;
  // Reduces buckets that have a `hooked` number in place of the tree; each rank must then be a domain.
  BucketHook* hook = nullptr;
};

class BucketReducer {
 public:
  // Slices, pieces and owned parts are whole blocks, counted from the begin of the bucket.
  static constexpr std::int64_t kBlock = BucketPieces::kBlock;
  static int flags_for(int buckets) { return 2 * buckets; }

  // `transport` and `flags` (of flags_for(all buckets)) outlive the reducer and serve nothing else.
  BucketReducer(Transport& transport, SharedFlags& flags, const Domains& domains, const WorldLayout& world,
                const ReducerOptions& options);
  // Adds a bucket, before the first start(), and returns its number, from 0.
  int add_bucket(BucketMemory memory);

  // --- of the thread that computes
  // This rank's open partial sums are final, and this rank no longer reads the memory that the sum replaces.
  void start(int bucket);
  // Whether the sums of owned() are complete. The owner uses them, then calls release(). With `everywhere` the whole
  // bucket is complete, and no rank calls release().
  bool reduced(int bucket) const;
  std::span<const Range> owned(int bucket) const { return at(bucket).owned; }
  // The part of owned() that no other rank of the job has here: each element counts once over all ranks.
  std::vector<Range> counted(int bucket) const;
  std::vector<Range> owned_by(int bucket, int rank) const {
    return pieces_.owned_by(rank, at(bucket).memory.elements, at(bucket).memory.values != nullptr);
  }
  // The slices that a rank drives: with `values`, owned_by() of its domain's ranks and received() of this rank.
  std::vector<Range> driven_by(int bucket, int rank) const {
    return pieces_.owned_by(rank, at(bucket).memory.elements, false);
  }
  void release(int bucket);
  // With `values` the owner calls send_values(), and release() after the values of owners in other domains have arrived
  // in received().
  void send_values(int bucket);
  bool values_arrived(int bucket) const;
  std::span<const Range> received(int bucket) const { return at(bucket).received; }
  // Whether all local ranks have released the bucket: no rank reads this rank's slots, and the results of all owners
  // are complete.
  bool available(int bucket) const;
  void allow_threads(bool allowed) { threads_ = allowed; }
  // Sets the trace to which sums and messages are added; null: none.
  void note_in(Trace* trace) { traffic_.note_in(trace); }

  // --- of the thread that drives
  bool progress();  // whether something moved

  std::size_t bytes() const { return domains_.count() > 1 ? kInFlight * chunk_bytes_ : 0; }  // of its own memory

  ReductionTraffic traffic() const { return traffic_.traffic(); }

  bool has_hook() const { return options_.hook != nullptr; }
  void refuse_hooked() { options_.hook->refused(); }  // with a hook, when all buckets of the step are done

 private:
  // How many steps a bucket has gone through; `started` and `updated` are written by the computing thread.
  struct StepsOfBucket {
    std::uint32_t started = 0;
    std::atomic<std::uint32_t> summed{0};   // the owned sums are complete
    std::atomic<std::uint32_t> updated{0};  // the values may be sent
    std::atomic<std::uint32_t> arrived{0};  // the values have arrived from other domains
  };
  struct Bucket {
    int number;
    BucketMemory memory;
    std::vector<Range> owned = {}, received = {};
    Range pieces = {};                                   // of pieces_
    std::int64_t next = 0;                               // the next piece to start in this step
    std::int64_t left = 0;                               // pieces whose sums are incomplete in this step
    std::vector<Transport::MessageHandle> handles = {};  // of messages of values
    bool sending = false;                                // values are being sent, or the hook is working
    StepsOfBucket steps = {};
  };
  // A piece in flight, and its memory.
  struct InFlightChunk {
    SliceExchange exchange;
    const BucketPiece* piece = nullptr;  // null: free
    TrafficMeter::Time since = {};       // begin of the present phase of the exchange
    std::int64_t sent = 0;               // bytes of the exchange that are counted already
  };
  // The first in-flight chunk takes pieces in the order of buckets, alike in all domains, so the oldest piece is always
  // in flight in all domains and no piece waits for ever. The other chunks take pieces of the bucket that was started
  // last: it belongs to the layers with which the next forward pass begins.
  static constexpr std::size_t kInFlight = 4;

  const Bucket& at(int bucket) const { return buckets_[static_cast<std::size_t>(bucket)]; }
  Bucket& at(int bucket) { return buckets_[static_cast<std::size_t>(bucket)]; }
  static int retired_flag(int bucket) { return 2 * bucket; }
  static int released_flag(int bucket) { return 2 * bucket + 1; }
  void add_pieces(Bucket& bucket);
  void* operand(const Bucket& bucket, std::size_t i) const;
  void set_work(SliceWork& work, const BucketPiece& piece) const;

  bool admit();
  void open(Bucket& bucket);
  const BucketPiece* next_piece(bool oldest);
  void begin(InFlightChunk& chunk, const BucketPiece& piece);
  bool advance(InFlightChunk& chunk);
  void piece_done(const BucketPiece& piece);
  void sums_done(Bucket& bucket);
  bool advance_values(Bucket& bucket);
  void send_updated(Bucket& bucket);
  void start_hook(Bucket& bucket);
  bool advance_hook(Bucket& bucket);

  Transport& transport_;
  SharedFlags& flags_;
  Domains domains_;
  DomainTree tree_;
  ReducerOptions options_;
  std::atomic<bool> threads_;
  std::deque<Bucket> buckets_;
  BucketPieces pieces_;
  std::vector<InFlightChunk> chunks_;
  std::size_t chunk_bytes_ = 0;
  struct Step {  // the step of progress()
    std::uint32_t number = 1;
    int opened = 0;      // buckets that all local ranks have started
    int unfinished = 0;  // buckets
  } step_;
  TrafficMeter traffic_;
};

}  // namespace lockstep::parallel

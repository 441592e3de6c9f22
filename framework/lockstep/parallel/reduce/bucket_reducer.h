// Sums buckets over all ranks by the reduction tree. Ranks of a domain read each other's buffers: a bucket is cut into
// slices, and once every local rank has let go of it each sums its slice over all local buffers, in place. Between
// domains the drivers of a slice exchange what is open with plain messages, in pieces, so that wire and memory work at
// the same time. A state machine that progress() drives, from one thread; another thread (or the same) starts buckets
// and asks after them. Buckets are started in the order in which they were added, each once per step, alike on all
// ranks; between domains, buckets that were started last are served first. In a domain no MPI call is made. Throws
// Error where MPI or a local rank fails.
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
  std::vector<std::vector<void*>> slots;  // by local rank: its slots, of which those of its open partial sums are read
  // Where the sum is left: in slot 0 of every local rank, or of each element's owner alone.
  bool everywhere = true;
  void* values = nullptr;          // in place of sums, owners in other domains send these: the updated parameters
  int hooked = -1;                 // its number for the hook
  std::span<double> squares = {};  // by block of kBlock elements: this rank's receive sums of squares, if any
};

struct ReducerOptions {
  Wire wire = Wire::Exact;  // of f32 buckets
  bool threads = true;      // progress() may use OpenMP
  std::int64_t piece_bytes = 1 << 20;
  // Reduces buckets with `hooked` in the tree's place; each rank must be a domain of its own.
  BucketHook* hook = nullptr;
};

class BucketReducer {
 public:
  // Slices, pieces and what one rank owns are whole blocks, counted from the bucket's begin.
  static constexpr std::int64_t kBlock = BucketPieces::kBlock;
  static int flags_for(int buckets) { return 2 * buckets; }

  // `transport` and `flags` (of flags_for(all buckets)) outlive the reducer and serve nothing else.
  BucketReducer(Transport& transport, SharedFlags& flags, const Domains& domains, const WorldLayout& world,
                const ReducerOptions& options);
  // Returns the bucket's number, which counts from 0. Before the first start().
  int add_bucket(BucketMemory memory);

  // --- of the thread that computes
  void start(int bucket);  // this rank's open partial sums are final, and no reader of the memory that the sum replaces
                           // is left
  // Whether the sums of owned() are there. The owner uses them, then calls release(). Sums that stay on every rank are
  // there in the whole bucket, and no rank calls release().
  bool reduced(int bucket) const;
  std::span<const Range> owned(int bucket) const { return at(bucket).owned; }
  std::vector<Range> owned_by(int bucket, int rank) const {
    return pieces_.owned_by(rank, at(bucket).memory.elements, at(bucket).memory.values != nullptr);
  }
  void release(int bucket);
  // With `values` the owner calls send_values(), and release() once what other domains' owners sent has arrived, in
  // received().
  void send_values(int bucket);
  bool values_arrived(int bucket) const;
  std::span<const Range> received(int bucket) const { return at(bucket).received; }
  // Whether all local ranks have released: no rank reads this rank's slots any more, and the results made of the sums
  // are there.
  bool available(int bucket) const;
  void allow_threads(bool allowed) { threads_ = allowed; }
  // Where sums and messages are noted from now on; null: nowhere.
  void note_in(Trace* trace) { traffic_.note_in(trace); }

  // --- of the thread that drives
  bool progress();  // whether something moved

  std::size_t bytes() const { return domains_.count() > 1 ? kInFlight * chunk_bytes_ : 0; }  // that it allocates itself

  using Traffic = ReductionTraffic;
  Traffic traffic() const { return traffic_.traffic(); }

 private:
  struct Bucket {
    int number;
    BucketMemory memory;
    std::vector<Range> owned = {}, received = {};
    Range pieces = {};                                   // of pieces_
    std::int64_t next = 0;                               // of them, to be admitted in this step
    std::int64_t left = 0;                               // pieces whose sums are not there, in this step
    std::vector<Transport::MessageHandle> handles = {};  // of values under way
    bool sending = false;                                // values, or the hook is at work
    std::uint32_t started = 0;                           // steps; of the thread that computes
    std::atomic<std::uint32_t> summed{0};                // steps whose owned sums are there
    std::atomic<std::uint32_t> updated{0};               // steps whose values may be sent
    std::atomic<std::uint32_t> arrived{0};               // steps whose values have come from other domains
  };
  // A piece under way, and its memory.
  struct InFlightChunk {
    SliceExchange exchange;
    const BucketPiece* piece = nullptr;  // null: free
    TrafficMeter::Time since = {};       // of the exchange's phase
    std::int64_t sent = 0;               // bytes of the exchange that are counted
  };
  // The first one takes pieces in the order of buckets, alike in all domains, so that the oldest piece is always under
  // way everywhere and none can wait for ever. The others take what was started last: it belongs to the layers that the
  // next forward pass begins with.
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
  struct Step {  // that progress() works for
    std::uint32_t number = 1;
    int opened = 0;      // buckets that all local ranks have started
    int unfinished = 0;  // buckets
  } step_;
  TrafficMeter traffic_;
};

}  // namespace lockstep::parallel

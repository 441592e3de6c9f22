// Sums buckets over all ranks by the reduction tree. Ranks of a domain read each other's buffers: a bucket is cut into
// slices, and once every local rank has let go of it each sums its slice over all local buffers, in place. Between
// domains the drivers of a slice exchange what is open with plain messages, in pieces, so that wire and memory work at
// the same time. A state machine that progress() drives, from one thread; another thread (or the same) starts buckets
// and asks after them. Buckets are started in the order in which they were added, each once per step, alike on all
// ranks; between domains the last ones started overtake the others. In a domain no MPI call is made. Throws Error where
// MPI or a local rank fails.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <tuple>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/core/trace.h"
#include "lockstep/parallel/exchange/shared_flags.h"
#include "lockstep/parallel/exchange/transport.h"
#include "lockstep/parallel/reduce/bucket_hook.h"
#include "lockstep/parallel/tree/domain_tree.h"

namespace lockstep {

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
  static constexpr std::int64_t kBlock = 1024;
  static int flags_for(int buckets) { return 2 * buckets; }

  // `transport` and `flags` (of flags_for(all buckets)) outlive the reducer and serve nothing else.
  BucketReducer(Transport& transport, SharedFlags& flags, const Domains& domains, const WorldLayout& world,
                const ReducerOptions& options);
  // Returns the bucket's number, which counts from 0. Before the first start().
  int add_bucket(BucketMemory memory);

  // --- of the thread that computes
  void start(int bucket);  // this rank's open partial sums are final, and nobody here needs what the sum replaces
  // Whether the sums of owned() are there. The owner uses them, then calls release(). Sums that are left everywhere are
  // there in the whole bucket, and nobody releases.
  bool reduced(int bucket) const;
  std::span<const Range> owned(int bucket) const { return at(bucket).owned; }
  std::vector<Range> owned_by(int bucket, int rank) const;
  void release(int bucket);
  // With `values` the owner calls send_values(), and release() once what other domains' owners sent has arrived, in
  // received().
  void send_values(int bucket);
  bool values_arrived(int bucket) const;
  std::span<const Range> received(int bucket) const { return at(bucket).received; }
  // Whether all local ranks have released: nobody reads this rank's slots any more, and what was made of the sums is
  // there.
  bool available(int bucket) const;
  void allow_threads(bool allowed) { threads_ = allowed; }
  // Where sums and messages are noted from now on; null: nowhere.
  void note_in(Trace* trace) { trace_ = trace; }

  // --- of the thread that drives
  bool progress();  // whether something moved

  std::size_t bytes() const { return domains_.count() > 1 ? kLanes * lane_bytes_ : 0; }  // that it allocates itself

  // Since the reducer was made, on this rank: what it moved, and for how long it was at it.
  struct Traffic {
    std::int64_t sent = 0;        // bytes to other domains
    std::int64_t network_ns = 0;  // during which some piece was on its way between domains
    std::int64_t summed = 0;      // bytes read and written by sums in the domain
    std::int64_t summing_ns = 0;
  };
  Traffic traffic() const { return {sent_, network_ns_, summed_, summing_ns_}; }

 private:
  enum class Phase : std::uint8_t { Exchange, Gather };
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
  // One of `count` pieces of a slice: of each domain's part of the slice its share, so that what a domain owns is one
  // range.
  struct Piece {
    int bucket;
    Range slice;
    std::int64_t index, count;
    int slice_number, tag;
  };
  // A piece under way between domains, and memory for it.
  struct Lane {
    std::shared_ptr<std::byte[]> memory;
    const Piece* piece = nullptr;
    Phase phase = Phase::Exchange;
    std::vector<Transport::MessageHandle> handles = {};
    Trace::Clock::time_point since = {};              // of the phase
    std::byte* next = nullptr;                        // memory not yet given out to this piece
    std::vector<void*> messages = {}, operands = {};  // by open sum of the tree: as it arrives, and as it is added
    std::vector<void*> gathered = {};                 // by domain: its part of a narrow message
    std::byte* take(std::size_t bytes);
  };
  // The first lane takes pieces in the order of buckets, alike in all domains, so that the oldest one is always under
  // way everywhere and none can wait for ever. The others take what was started last: it belongs to the layers that the
  // next forward pass begins with.
  static constexpr std::size_t kLanes = 4;

  const Bucket& at(int bucket) const { return buckets_[static_cast<std::size_t>(bucket)]; }
  Bucket& at(int bucket) { return buckets_[static_cast<std::size_t>(bucket)]; }
  static int retired_flag(int bucket) { return 2 * bucket; }
  static int released_flag(int bucket) { return 2 * bucket + 1; }
  static void* element(const void* base, DType dtype, std::int64_t index) {
    return static_cast<std::byte*>(const_cast<void*>(base)) + index * static_cast<std::int64_t>(size_of(dtype));
  }
  bool narrow(const Bucket& bucket) const;
  Range part(const Piece& piece, int domain) const;  // of the bucket
  void make_pieces(Bucket& bucket);
  std::size_t lane_bytes(const Piece& piece) const;

  bool admit();
  void open(Bucket& bucket);
  const Piece* next_piece(bool oldest);
  bool advance(Lane& lane);
  void sum_in_domain(const Piece& piece);
  void note(Trace::Track track, std::string_view what, const Piece& piece, Trace::Clock::time_point since);
  void* operand(const Bucket& bucket, int operand) const;
  void exchange(Lane& lane);
  comm::ConstBuffer message(Lane& lane, const void* data, std::int64_t count);
  void send(Lane& lane, comm::ConstBuffer message, int domain);
  void receive(Lane& lane, void* data, std::int64_t count, int domain);
  void sum_parts(Lane& lane);
  void gather(Lane& lane);
  void finish_gather(Lane& lane);
  void piece_done(const Piece& piece);
  void sums_done(Bucket& bucket);
  bool advance_values(Bucket& bucket);
  void start_hook(Bucket& bucket);
  void time_network();
  bool advance_hook(Bucket& bucket);
  template <class T>
  void sum(const Bucket& bucket, std::span<const TreeMerge> merges, Range range, bool root);  // of operands_

  Transport& transport_;
  SharedFlags& flags_;
  Domains domains_;
  DomainTree tree_;
  ReducerOptions options_;
  std::atomic<bool> threads_;
  std::deque<Bucket> buckets_;
  std::vector<Piece> pieces_;  // that this rank drives, in order
  int tags_ = 0;               // of all pieces of all drivers
  std::array<Lane, kLanes> lanes_;
  std::size_t lane_bytes_ = 0;
  std::uint32_t step_ = 1;  // that progress() works for
  int opened_ = 0;          // buckets that all local ranks have started
  int unfinished_ = 0;      // buckets of the step
  std::atomic<std::int64_t> sent_{0}, network_ns_{0}, summed_{0}, summing_ns_{0};
  Trace::Clock::time_point network_since_{};  // some lane is taken; zero: none
  std::atomic<Trace*> trace_{nullptr};
  std::vector<const void*> operands_;
  template <class T>
  struct Pointers {
    std::vector<const T*> operands;
    std::vector<T*> outs;
  };
  std::tuple<Pointers<float>, Pointers<double>> pointers_;
};

}  // namespace lockstep

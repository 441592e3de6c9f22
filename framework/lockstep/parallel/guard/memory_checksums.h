// Checksums of parameters and optimizer state in memory, block by block, recorded by the rank that wrote the block: a
// block whose checksum no longer equals the recorded one has changed by itself. Parameters that every rank holds for
// itself (running statistics, frozen parameters) have checksums too, which only a comparison of ranks can judge. A
// block's number is the same on all ranks. One thread; nothing is allocated after construction.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/parallel/reduce/bucket_reducer.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

class MemoryChecksums {
 public:
  static constexpr std::int64_t kNone = -1;
  // Elements that this rank writes, in whole blocks of BucketReducer::kBlock, and whether it also keeps their state.
  struct Part {
    Range range;
    bool states;
  };
  // `parts` by bucket; the store outlives the checksums.
  MemoryChecksums(plan::ParameterStore& store, std::vector<std::vector<Part>> parts);

  void record();  // of everything that this rank writes
  void record(std::size_t bucket, Range range);
  // The first block whose checksum differs from the recorded one; kNone.
  std::int64_t verify(std::size_t bucket, Range range);
  // The same for everything that this rank writes; fills current().
  std::int64_t verify();

  std::int64_t blocks() const { return std::ssize(current_); }
  // Blocks from here on belong to parameters that every rank holds for itself.
  std::int64_t first_own() const { return first_own_; }
  // By block: the checksum at the last verify(), and the recorded one; 0 for blocks that other ranks write.
  std::span<const std::uint64_t> current() const { return current_; }
  std::span<const std::uint64_t> recorded() const { return recorded_; }
  // One number for many checksums: equal copies have equal sums of digests, whichever ranks hold their blocks.
  std::uint64_t digest(bool with_states) const;  // of the buckets
  std::uint64_t own_digest() const;              // of parameters that every rank holds for itself

  std::span<std::byte> bytes(std::int64_t block) const;
  void write(std::int64_t block, std::span<const std::byte> content);  // into the parameters; records its checksum
  // For tests: flips a bit in a block that this rank writes, of values (0) or of a state (from 1).
  void flip(int memory) const;
  // "fc.weight [0, 640)", "momentum of ...", by `state_names` of the optimizer; elements count in memory's order.
  std::string describe(std::int64_t block, std::span<const std::string_view> state_names) const;

 private:
  struct Location {
    int memory = 0;  // 0: values, then the states
    std::size_t bucket = 0;
    Range range = {};
  };
  Location locate(std::int64_t block) const;
  std::int64_t block_at(int memory, std::size_t bucket, std::int64_t element) const;
  std::uint64_t hash(std::int64_t block) const;
  void collect(std::size_t bucket, Range range);
  void collect_all();
  void hash_collected();
  void record_collected();

  plan::ParameterStore& store_;
  std::vector<std::vector<Part>> parts_;
  std::vector<std::int64_t> first_;  // by bucket: its first block of values; then their number
  std::vector<const Parameter*> own_;
  std::int64_t first_own_ = 0;
  std::vector<std::uint64_t> recorded_, current_;
  std::vector<std::int64_t> collected_;  // blocks whose checksums are computed next
};

}  // namespace lockstep::parallel

// Checksums of parameters and optimizer state in memory, block by block. The rank that wrote a block records its
// checksum; a block whose checksum differs from the recorded one has changed by itself. Parameters of which every rank
// has a private copy (running statistics, frozen parameters) have checksums too, but only a comparison of ranks can
// judge them. Numbers of blocks are the same on all ranks. One thread; only the constructor allocates.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/parallel/reduce/bucket_blocks.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

class MemoryChecksums {
 public:
  static constexpr std::int64_t kNone = -1;
  // Elements that this rank writes, in whole blocks (bucket_blocks.h), and whether it also has their state.
  struct Part {
    Range range;
    bool states;
  };
  // `parts` by bucket; the store outlives the checksums.
  MemoryChecksums(plan::ParameterStore& store, std::vector<std::vector<Part>> parts);

  void record();  // for everything that this rank writes
  void record(std::size_t bucket, Range range);
  // Returns the first block in the range whose checksum differs from the recorded one, or kNone.
  std::int64_t verify(std::size_t bucket, Range range);
  // The same for everything that this rank writes; also sets current().
  std::int64_t verify();

  std::int64_t blocks() const { return std::ssize(current_); }
  // By block: the checksum at the last verify(), and the recorded one; 0 for blocks that other ranks write.
  std::span<const std::uint64_t> current() const { return current_; }
  std::span<const std::uint64_t> recorded() const { return recorded_; }
  // One number for many checksums: equal copies have equal sums of digests, for any division of blocks among ranks.
  std::uint64_t digest(bool with_states) const;  // of the buckets
  std::uint64_t own_digest() const;              // of the parameters with private copies

  std::span<std::byte> bytes(std::int64_t block) const;
  void write(std::int64_t block, std::span<const std::byte> content);  // writes a block and records its checksum
  // For tests: flips a bit in a block that this rank writes; `memory` is 0 for values, from 1 on for a state.
  void flip(int memory) const;
  // Describes a block: "fc.weight [0, 640)", "momentum of ..."; `state_names` are those of the optimizer. Elements are
  // counted in the order of memory.
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
  BucketBlocks blocks_;  // of values
  std::vector<const Parameter*> own_;
  std::int64_t first_own_ = 0;
  std::vector<std::uint64_t> recorded_, current_;
  std::vector<std::int64_t> collected_;  // blocks whose checksums hash_collected() computes
};

}  // namespace lockstep::parallel

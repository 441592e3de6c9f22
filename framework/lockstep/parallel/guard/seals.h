// Hashes of parameters and optimizer state in memory, block by block, taken by the rank that wrote them: a block whose
// hash no longer fits has changed by itself. Beside them hashes of what every rank has for itself (running statistics,
// frozen parameters), which only comparison can judge. A block's number is the same on all ranks. One thread; nothing
// is allocated after construction.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/parallel/reduce/bucket_reducer.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep {

class Seals {
 public:
  static constexpr std::int64_t kNone = -1;
  // Elements that this rank writes, in whole blocks of BucketReducer::kBlock, and whether it also keeps their state.
  struct Part {
    Range range;
    bool states;
  };
  // `parts` by bucket; the store outlives the seals.
  Seals(ParameterStore& store, std::vector<std::vector<Part>> parts);

  void seal();  // all that this rank writes
  void seal(std::size_t bucket, Range range);
  // The first block whose content does not fit its seal; kNone.
  std::int64_t verify(std::size_t bucket, Range range);
  // The same for everything, noting the hashes of what lies there now.
  std::int64_t verify();

  std::int64_t blocks() const { return std::ssize(current_); }
  // Blocks from here on are of what every rank has for itself.
  std::int64_t first_own() const { return first_own_; }
  // Of the last verify(): hashes now, and as sealed; 0 for what others write.
  std::span<const std::uint64_t> current() const { return current_; }
  std::span<const std::uint64_t> sealed() const { return sealed_; }
  // One number for many: sums of copies that are equal are equal, whoever holds which blocks of them.
  std::uint64_t digest(bool with_states) const;  // of what is in buckets
  std::uint64_t own_digest() const;

  std::span<std::byte> bytes(std::int64_t block) const;
  void write(std::int64_t block, std::span<const std::byte> content);  // into the parameters, and seals it
  // For tests: flips a bit of what this rank writes, of values (0) or a state (from 1).
  void flip(int memory) const;
  // "fc.weight [0, 640)", "momentum of ...", by `state_names` of the optimizer; elements count in memory's order.
  std::string describe(std::int64_t block, std::span<const std::string_view> state_names) const;

 private:
  struct Place {
    int memory = 0;  // 0: values, then the states
    std::size_t bucket = 0;
    Range range = {};
  };
  Place place(std::int64_t block) const;
  std::int64_t block_at(int memory, std::size_t bucket, std::int64_t element) const;
  std::uint64_t hash(std::int64_t block) const;
  void collect(std::size_t bucket, Range range);
  void collect_all();
  void hash_collected();

  ParameterStore& store_;
  std::vector<std::vector<Part>> parts_;
  std::vector<std::int64_t> first_;  // by bucket: its first block of values; then their number
  std::vector<const Parameter*> own_;
  std::int64_t first_own_ = 0;
  std::vector<std::uint64_t> sealed_, current_;
  std::vector<std::int64_t> collected_;  // blocks to be hashed
};

}  // namespace lockstep

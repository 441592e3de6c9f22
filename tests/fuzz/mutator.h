// Damages an input the way disks, transfers and ill will do: bits, bytes, counts in headers, cuts, blocks taken out,
// doubled, moved or spliced in from another input. The same key and number give the same mutant.
#pragma once

#include "lockstep/core/random.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

class Mutator {
 public:
  Mutator(std::vector<Bytes> inputs, std::uint64_t key) : inputs_(std::move(inputs)), key_(key) {}
  Bytes mutant(std::uint64_t number) const;

 private:
  std::vector<Bytes> inputs_;
  std::uint64_t key_;
};

}  // namespace lockstep::fuzz

// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11).
// A number is a pure function of (key, counter), so it does not depend on rank, thread, order or layout.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lockstep {

using Philox = std::array<std::uint32_t, 4>;

// Returns four random words for a 64-bit key and a 128-bit counter in two halves. Any thread.
constexpr Philox philox(std::uint64_t key, std::uint64_t low, std::uint64_t high) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  Philox c{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
           static_cast<std::uint32_t>(high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// Maps a word to [0, 1) with 24 bits, exact in f32 and f64.
constexpr double unit_interval(std::uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }

// Mixes two words into one (the finaliser of SplitMix64), for keys made of several parts.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + 0x9E3779B97F4A7C15u * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Hashes a name by FNV-1a, to the same number on every machine.
constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t h = 0xCBF29CE484222325u;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return h;
}

// A sequence of random numbers from one key, for code that draws a varying number of them (permutations, augmentation,
// procedural data). One thread.
class RandomStream {
 public:
  RandomStream(std::uint64_t key, std::uint64_t stream) : key_(key), stream_(stream) {}

  // Returns the next 32 random bits.
  std::uint32_t next() {
    if (used_ == 4) {
      block_ = philox(key_, counter_++, stream_);
      used_ = 0;
    }
    return block_[static_cast<std::size_t>(used_++)];
  }
  // These draw uniformly from [0, 1) or [low, high), or from a normal distribution (Box and Muller (1958)).
  double uniform() { return unit_interval(next()); }
  double uniform(double low, double high);
  double normal();  // mean 0, variance 1
  // Draws an unbiased integer from [0, bound), bound > 0 (Lemire, "Fast random integer generation in an interval"
  // (2019)).
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t key_, stream_, counter_ = 0;
  Philox block_{};
  int used_ = 4;
};

}  // namespace lockstep

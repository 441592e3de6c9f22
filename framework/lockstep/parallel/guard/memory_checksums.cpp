#include "lockstep/parallel/guard/memory_checksums.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep::parallel {
namespace {

// Two blocks that swap their contents must not cancel.
std::uint64_t weighted(std::uint64_t hash, std::int64_t block) {
  return hash * (2 * static_cast<std::uint64_t>(block) + 1);
}

}  // namespace

MemoryChecksums::MemoryChecksums(plan::ParameterStore& store, std::vector<std::vector<Part>> parts)
    : store_(store), parts_(std::move(parts)), blocks_(store.buckets()) {
  first_own_ = blocks_.count() * (1 + store_.options().optimizer_states);
  for (const NamedParameter& p : store_.parameters()) {
    if (!store_.has_gradient(p.parameter) && store_.name(p.parameter) == p.name) own_.push_back(p.parameter);
  }
  const auto total = static_cast<std::size_t>(first_own_) + own_.size();
  recorded_.resize(total);
  current_.resize(total);
  collected_.reserve(total);
}

MemoryChecksums::Location MemoryChecksums::locate(std::int64_t block) const {
  const std::int64_t of_memory = blocks_.count();
  const std::int64_t at = block % of_memory;
  const std::size_t bucket = blocks_.bucket_of(at);
  const std::int64_t begin = (at - blocks_.of(bucket).begin) * BucketBlocks::kBlock;
  return {static_cast<int>(block / of_memory),
          bucket,
          {begin, std::min(begin + BucketBlocks::kBlock, store_.buckets()[bucket].elements)}};
}

std::int64_t MemoryChecksums::block_at(int memory, std::size_t bucket, std::int64_t element) const {
  return memory * blocks_.count() + blocks_.at(bucket, element);
}

std::span<std::byte> MemoryChecksums::bytes(std::int64_t block) const {
  if (block >= first_own_) {
    const Parameter* p = own_[static_cast<std::size_t>(block - first_own_)];
    const auto elements = static_cast<std::size_t>(store_.layout(p).storage_elements(p->shape));
    return {static_cast<std::byte*>(store_.value(p)), elements * size_of(store_.dtype(p))};
  }
  const Location at = locate(block);
  const plan::Bucket& bucket = store_.buckets()[at.bucket];
  std::byte* memory = at.memory == 0 ? bucket.values : bucket.states[static_cast<std::size_t>(at.memory - 1)];
  const auto size = static_cast<std::int64_t>(size_of(store_.options().dtype));
  return {memory + at.range.begin * size, static_cast<std::size_t>(at.range.size() * size)};
}

std::uint64_t MemoryChecksums::hash(std::int64_t block) const {
  const std::span<const std::byte> content = bytes(block);
  return std::max<std::uint64_t>(1, XXH3_64bits(content.data(), content.size()));  // 0 stands for none
}

void MemoryChecksums::collect(std::size_t bucket, Range range) {
  for (const Part& part : parts_[bucket]) {
    const Range both = intersection(part.range, range);
    for (int memory = 0; memory <= (part.states ? store_.options().optimizer_states : 0); ++memory) {
      for (std::int64_t e = both.begin; e < both.end; e += BucketBlocks::kBlock)
        collected_.push_back(block_at(memory, bucket, e));
    }
  }
}

void MemoryChecksums::collect_all() {
  collected_.clear();
  for (std::size_t b = 0; b < parts_.size(); ++b) collect(b, {0, store_.buckets()[b].elements});
}

void MemoryChecksums::hash_collected() {
  parallel_for(std::ssize(collected_), BucketBlocks::kBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t block = collected_[static_cast<std::size_t>(i)];
      current_[static_cast<std::size_t>(block)] = hash(block);
    }
  });
}

void MemoryChecksums::record_collected() {
  hash_collected();
  for (std::int64_t block : collected_)
    recorded_[static_cast<std::size_t>(block)] = current_[static_cast<std::size_t>(block)];
}

void MemoryChecksums::record() {
  collect_all();
  record_collected();
}

void MemoryChecksums::record(std::size_t bucket, Range range) {
  collected_.clear();
  collect(bucket, range);
  record_collected();
}

std::int64_t MemoryChecksums::verify(std::size_t bucket, Range range) {
  collected_.clear();
  collect(bucket, range);
  hash_collected();
  const auto differs = [&](std::int64_t block) {
    return recorded_[static_cast<std::size_t>(block)] != current_[static_cast<std::size_t>(block)];
  };
  const auto found = std::ranges::find_if(collected_, differs);
  return found == collected_.end() ? kNone : *found;
}

std::int64_t MemoryChecksums::verify() {
  collect_all();
  hash_collected();
  for (std::int64_t block = first_own_; block < blocks(); ++block)
    recorded_[static_cast<std::size_t>(block)] = current_[static_cast<std::size_t>(block)] = hash(block);
  const auto [recorded, current] = std::ranges::mismatch(recorded_, current_);
  return recorded == recorded_.end() ? kNone : recorded - recorded_.begin();
}

std::uint64_t MemoryChecksums::digest(bool with_states) const {
  std::uint64_t sum = 0;
  const std::int64_t end = with_states ? first_own_ : blocks_.count();
  for (std::int64_t block = 0; block < end; ++block) sum += weighted(current_[static_cast<std::size_t>(block)], block);
  return sum;
}

std::uint64_t MemoryChecksums::own_digest() const {
  std::uint64_t sum = 0;
  for (std::int64_t block = first_own_; block < blocks(); ++block)
    sum += weighted(current_[static_cast<std::size_t>(block)], block);
  return sum;
}

void MemoryChecksums::write(std::int64_t block, std::span<const std::byte> content) {
  const std::span<std::byte> into = bytes(block);
  check(into.size() == content.size(), "memory checksums", "block {} has {} bytes, given {}", block, into.size(),
        content.size());
  std::ranges::copy(content, into.begin());
  recorded_[static_cast<std::size_t>(block)] = current_[static_cast<std::size_t>(block)] = hash(block);
  if (block >= first_own_) {
    store_.refresh(own_[static_cast<std::size_t>(block - first_own_)]);
  } else if (const Location at = locate(block); at.memory == 0) {
    store_.values_changed();
    store_.refresh(store_.buckets()[at.bucket], at.range);
  }
}

void MemoryChecksums::flip(int memory) const {
  for (std::size_t b = 0; b < parts_.size(); ++b) {
    for (const Part& part : parts_[b]) {
      if (part.range.size() == 0 || (memory > 0 && !part.states)) continue;
      bytes(block_at(memory, b, part.range.begin))[2] ^= std::byte{16};
      return;
    }
  }
}

std::string MemoryChecksums::describe(std::int64_t block, std::span<const std::string_view> state_names) const {
  if (block >= first_own_) return store_.name(own_[static_cast<std::size_t>(block - first_own_)]);
  const Location at = locate(block);
  std::string text = at.memory == 0 ? "" : fmt::format("{} of ", state_names[static_cast<std::size_t>(at.memory - 1)]);
  bool first = true;
  for (const plan::BucketEntry& e : store_.buckets()[at.bucket].entries) {
    const Range both = intersection(at.range, {e.offset, e.offset + e.elements});
    if (both.size() == 0) continue;
    text += fmt::format("{}{} [{}, {})", first ? "" : ", ", e.name, both.begin - e.offset, both.end - e.offset);
    first = false;
  }
  return text;
}

}  // namespace lockstep::parallel

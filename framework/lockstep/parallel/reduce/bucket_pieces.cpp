#include "lockstep/parallel/reduce/bucket_pieces.h"

#include <algorithm>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/error.h"

namespace lockstep::parallel {
namespace {

void append(std::vector<Range>& ranges, Range range) {
  if (range.size() == 0) return;
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

BucketPieces::BucketPieces(const Domains& domains, std::int64_t piece_bytes)
    : domains_(domains),
      piece_bytes_(piece_bytes),
      numbers_(static_cast<std::size_t>(domains.slices())),
      smallest_(static_cast<int>(
          std::ranges::min(domains.members, {}, [](const auto& ranks) { return ranks.size(); }).size())) {}

// Returns the tag of a piece, by its slice and its number among the pieces of this slice. In a domain of n ranks a rank
// drives each n-th slice, and n is at least smallest_: two slices of one rank differ in slice / smallest_. Slices that
// are equal in it have different ranks in every domain, so they may share tags.
std::int64_t BucketPieces::tag(int slice, std::int64_t number) const {
  const int per_number = (domains_.slices() + smallest_ - 1) / smallest_;
  return number * per_number + slice / smallest_;
}

Range BucketPieces::slice(std::int64_t elements, int slice) const {
  return part_in_blocks({0, elements}, domains_.slices(), slice, kBlock);
}

Range BucketPieces::part_of_slice(Range slice, int domain) const {
  return part_in_blocks(slice, domains_.count(), domain, kBlock);
}

Range BucketPieces::part(const BucketPiece& piece, int domain) const {
  return part_in_blocks(part_of_slice(piece.slice, domain), piece.count, piece.index, kBlock);
}

Range BucketPieces::add(int bucket, std::int64_t elements, std::int64_t element_bytes) {
  const std::int64_t chunk = std::max<std::int64_t>(1, piece_bytes_ / element_bytes), first = std::ssize(pieces_);
  std::int64_t tags = 0;
  for (int s = 0; s < domains_.slices(); ++s) {
    const Range range = slice(elements, s);
    if (range.size() == 0) continue;
    const std::int64_t count = domains_.count() > 1 ? std::max<std::int64_t>(1, range.size() / chunk) : 1;
    std::int64_t& number = numbers_[static_cast<std::size_t>(s)];
    for (std::int64_t i = 0; i < count; ++i, ++number) {
      if (drives(s)) pieces_.push_back({bucket, range, i, count, s, static_cast<int>(tag(s, number))});
    }
    tags = std::max(tags, tag(s, number - 1) + 1);
  }
  check(
      domains_.count() == 1 || tags <= comm::Communicator::kMaxTag, "reduction",
      "bucket {}: its messages and those of the buckets before need {} tags, expected at most {}: take larger buckets "
      "(--bucket-mb) or the same number of ranks on every node",
      bucket, tags, comm::Communicator::kMaxTag);
  return {first, std::ssize(pieces_)};
}

std::vector<Range> BucketPieces::owned_by(int rank, std::int64_t elements, bool one_owner) const {
  const int domain = domains_.domain_of[static_cast<std::size_t>(rank)];
  std::vector<Range> ranges;
  for (int s = 0; s < domains_.slices(); ++s) {
    if (domains_.driver(domain, s) != rank) continue;
    const Range range = slice(elements, s);
    append(ranges, one_owner ? part_of_slice(range, domain) : range);
  }
  return ranges;
}

std::vector<Range> BucketPieces::received(std::int64_t elements) const {
  std::vector<Range> ranges;
  for (int s = 0; s < domains_.slices(); ++s) {
    const Range range = slice(elements, s);
    if (range.size() == 0 || !drives(s)) continue;
    const Range mine = part_of_slice(range, domains_.mine());
    append(ranges, {range.begin, mine.begin});
    append(ranges, {mine.end, range.end});
  }
  return ranges;
}

}  // namespace lockstep::parallel

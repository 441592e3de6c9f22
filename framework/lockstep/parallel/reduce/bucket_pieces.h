// The division of buckets: a bucket into one slice per rank of the largest domain, a slice into one part per domain,
// and between domains into pieces that are in flight at the same time. A piece has a share of each domain's part, so
// that a domain owns one range. All cuts are at whole blocks, counted from the begin of the bucket, alike on all ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/parallel/tree/domains.h"

namespace lockstep::parallel {

struct BucketPiece {
  int bucket;
  Range slice;                // of the bucket
  std::int64_t index, count;  // one of `count` pieces of the slice
  int slice_number, tag;      // tag: of its messages, different for all pieces of all buckets that a rank drives
};

class BucketPieces {
 public:
  static constexpr std::int64_t kBlock = 1024;  // elements

  BucketPieces(const Domains& domains, std::int64_t piece_bytes);

  // Cuts the next bucket and returns the range of its pieces. Throws Error, alike on all ranks, if domains exchange
  // more pieces than there are tags.
  Range add(int bucket, std::int64_t elements, std::int64_t element_bytes);
  // Piece i of those that this rank drives, over all buckets in order.
  const BucketPiece& operator[](std::int64_t i) const { return pieces_[static_cast<std::size_t>(i)]; }
  // The share of a domain: elements of the bucket.
  Range part(const BucketPiece& piece, int domain) const;

  // The elements of a bucket that `rank` owns: the slices that it drives, or its domain's part of these if an element
  // has one owner in the whole job.
  std::vector<Range> owned_by(int rank, std::int64_t elements, bool one_owner) const;
  // The elements that this rank receives from owners in other domains, if an element has one owner in the whole job.
  std::vector<Range> received(std::int64_t elements) const;

 private:
  bool drives(int slice) const { return domains_.driver(domains_.mine(), slice) == domains_.rank; }
  std::int64_t tag(int slice, std::int64_t number) const;
  Range slice(std::int64_t elements, int slice) const;
  Range part_of_slice(Range slice, int domain) const;

  Domains domains_;
  std::int64_t piece_bytes_;
  std::vector<BucketPiece> pieces_;
  std::vector<std::int64_t> numbers_;  // by slice: the number of its pieces, of all buckets
  int smallest_;                       // ranks of the smallest domain
};

}  // namespace lockstep::parallel

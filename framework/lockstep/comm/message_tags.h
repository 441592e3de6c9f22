// Tags of messages on communicators that parts of the library share. Messages of one part are received in the order in
// which they are sent, so a part needs one tag. The reduction of gradients counts its tags from 0
// (parallel/reduce/bucket_pieces.h), as do parts with a communicator of their own.
#pragma once

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

inline constexpr int kReservoirTag = 71;                      // samples of reservoirs, to and from rank 0
inline constexpr int kRankedPairsTag = 77;                    // scores of a metric of pairs, to rank 0
inline constexpr int kOwnedPartsTag = Communicator::kMaxTag;  // states and weights that a single rank updates

}  // namespace lockstep::comm

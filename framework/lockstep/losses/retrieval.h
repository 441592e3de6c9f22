// Losses of models that find items for users by the product of two vectors. All can be differentiated any number of
// times. The functions throw Error where shapes or types do not fit.
#pragma once

#include "lockstep/graph/loss.h"

namespace lockstep {

// Returns the mean over samples of -log softmax of a sample's own item among the items of the batch:
//   -log( e^s_ii / (e^s_ii + sum over j with another item of e^s_ij) ),   s_ij = user_i . item_j / temperature -
//   log_q_j
// where log_q_j is the logarithm of the probability of item j to be in a batch, as frequent items are negatives more
// often (Yi et al., "Sampling-bias-corrected neural modeling for large corpus item recommendations", 2019, eq. 3). user
// and item are (samples, elements) of one floating type. Negatives are those of the samples that are computed together:
// of the rank's micro-batch, or of the shard with --shards.
struct InBatchOptions {
  double temperature = 1;  // above 0
  Value ids = {};          // i32 (samples): samples with equal ids are no negatives of each other; empty: all differ
  Value log_q = {};        // (samples), of the type of the vectors; empty: 0
  // Further candidates of all samples, from outside of the batch: vectors (items, elements), with ids i32 (items) where
  // `ids` are given, and log_q (items) where `log_q` is. An item with the id of a sample is no negative of it. q is
  // then the probability of an item among both kinds of candidates (Yang et al., "Mixed negative sampling for learning
  // two-tower neural networks in recommendations", 2020).
  Value more = {}, more_ids = {}, more_log_q = {};
};
Loss in_batch_softmax(Value user, Value item, const InBatchOptions& options = {}, const LossWeights& weights = {});

}  // namespace lockstep

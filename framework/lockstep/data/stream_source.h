// Samples that a producer makes while a run goes on (a simulation beside the training, a queue, a socket), in place of
// a training set: the facts that a session needs to read them. Each rank has a producer of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/data/stream.h"

namespace lockstep::data {

// Where the producer of a rank begins. A run that goes on from a checkpoint has trained samples already: the producer
// sends the samples after them; among these are samples that it had made before the checkpoint and the run had not
// trained, which it sends again.
struct StreamStart {
  int rank = 0, size = 1;
  std::int64_t consumed = 0;  // samples of this rank's producer that are trained: it goes on with the next one
  std::int64_t next_id = 0;   // the id of that sample, unless the producer sets another one
  // The samples that each rank consumed while the run had another number of ranks, one list per number, in their order.
  // Their producers have ended, and `consumed` begins anew: the program decides which rank produces further samples.
  std::vector<std::vector<std::int64_t>> earlier{};
};

// Fills the next sample and returns true; returns false at the end.
using StreamPull = std::function<bool(StreamSample&)>;

struct StreamSource {
  std::vector<Field> fields{};  // of a sample as the producer fills it, before RunData::train_transforms
  // Makes this rank's producer. Called on all ranks when a run starts, goes on from a checkpoint, or goes back to one
  // after an error in memory; an Error of one rank ends the run on all ranks. The former producer is destroyed before.
  std::function<StreamPull(const StreamStart&)> open{};
  // Batches that a thread of the session pulls ahead. 0: the producer is called by the thread that trains, in turn with
  // the training steps; it may then use MPI that has no threads.
  int prefetch = 2;
  std::string description = "stream";  // for the log
};

}  // namespace lockstep::data

// The times of a training step on one rank, and the traffic of its gradients.
#pragma once

#include "lockstep/parallel/reduce/reduction_traffic.h"

namespace lockstep::parallel {

// A rank's compute time ends when it has the sums of its last forward pass.
struct StepTimes {
  double compute = 0, waiting = 0;  // seconds of this rank until its last gradient, and after that
  double earlier = 0;               // seconds in this step's forward pass spent waiting for the previous step
  int slowest = 0;                  // the rank whose forward pass ended last, counted from its begin
  double slowest_lead = 0;          // seconds by which that rank was slower than the fastest
  ReductionTraffic traffic = {};    // of the gradients
};

}  // namespace lockstep::parallel

// The time of training steps, as numbers and as a table: by op, by graph node, and by part of a step outside of its
// plans. Plain data; StepProfile measures it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/kernels/peaks.h"

namespace lockstep::train {

// Sums over the profiled steps. `bytes` counts inputs and outputs once per call: with cache hits the rate is above the
// memory's bandwidth, with workspaces below it.
struct ProfileSums {
  double calls = 0, seconds = 0, flops = 0, bytes = 0;
  double flops_at_peak = 0;  // seconds that the operations would take at the peak rate; 0: no peak is known

  void add(const ProfileSums& other);
};

struct ProfileNode {
  std::string module_path, op, implementation;
  ProfileSums sums;
};

struct ProfilePart {  // a part of a step outside of its plans' nodes
  std::string name;
  double seconds = 0;
};

struct Profile {
  std::int64_t steps = 0;
  double seconds = 0;  // time of all steps
  int threads = 1;
  kernels::Peaks peaks;
  std::vector<ProfileNode> nodes;
  std::vector<ProfilePart> parts;
};

// Returns one entry per op, without module path; the slowest first.
std::vector<ProfileNode> by_class(const Profile& profile);

// Returns a table of at most 120 columns: all ops and parts, and the `nodes` slowest nodes.
std::string profile_table(const Profile& profile, std::size_t nodes = 15);

}  // namespace lockstep::train

// Where the time of training steps went, as numbers and as a table for people: by class of node (op), by node, and
// what a step does outside of its plans. Plain data; StepProfile measures it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/kernels/peaks.h"

namespace lockstep::train {

// Sums over the profiled steps. Bytes are those of inputs and outputs, each counted once per call: cache hits make a
// rate above the memory's, workspaces one below it.
struct ProfileSums {
  double calls = 0, seconds = 0, flops = 0, bytes = 0;
  double flops_at_peak = 0;  // seconds that the operations alone would take; 0: no peak to compare with

  void add(const ProfileSums& other);
};

struct ProfileNode {
  std::string place, op, implementation;
  ProfileSums sums;
};

struct ProfilePart {  // of a step, outside of its plans' nodes
  std::string name;
  double seconds = 0;
};

struct Profile {
  std::int64_t steps = 0;
  double seconds = 0;  // of all steps
  int threads = 1;
  kernels::Peaks peaks;
  std::vector<ProfileNode> nodes;
  std::vector<ProfilePart> parts;
};

// One entry per op, without place; slowest first.
std::vector<ProfileNode> by_class(const Profile& profile);

// Lines of at most 120 columns: all classes and parts, and the `nodes` slowest nodes.
std::string profile_table(const Profile& profile, std::size_t nodes = 15);

}  // namespace lockstep::train

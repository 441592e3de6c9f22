// A plan as boxes for a picture: the steps of a module, or a single step, are a box; forward and backward of a module
// are two boxes. Modules that follow each other with the same steps and shapes are folded into one pair of boxes. Every
// step of the plan is in one row of one box. Plain data; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/plan/assembly.h"

namespace lockstep::tools {

enum class PictureDetail : std::uint8_t { Steps, Blocks };

struct PictureRow {
  std::string path;                // below the module of the box
  bool again = false;              // a value of forward that backward computes again
  std::vector<std::size_t> steps;  // indices into Assembly::steps: one, or one for each folded module
};

struct PictureBox {
  std::vector<std::string> modules;  // one, or those that are folded
  bool backward = false;
  int partner = -1;  // of a box of backward: that of the same module in forward
  std::vector<PictureRow> rows;
};

// Values that steps of one box make and steps of another box read; or fields of the batch, which no step makes.
struct PictureEdge {
  int from = -1, to = -1;  // boxes; from < 0: a field of the batch
  std::string field;
  std::vector<int> buffers;
};

struct Picture {
  std::vector<PictureBox> boxes;
  std::vector<PictureEdge> edges;
};

// Throws nothing; the assembly is only read.
Picture make_picture(const plan::Assembly& assembly, PictureDetail detail);
// Bytes of buffers, padding included.
std::size_t bytes_of(const plan::Assembly& assembly, const std::vector<int>& buffers);

}  // namespace lockstep::tools

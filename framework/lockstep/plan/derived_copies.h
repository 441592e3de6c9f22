// The copies of parameters that kernels read in another layout or type, each written again when the values of its
// parameter change. The first plan's copies lie in memory that ranks of a node share; what later plans want beyond them
// each rank keeps for itself. Ranges of a shared copy may be refreshed by several threads at once if they are disjoint;
// else one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/graph/parameter.h"
#include "lockstep/plan/derived_copy.h"
#include "lockstep/plan/parameter_memory.h"

namespace lockstep::plan {

class DerivedCopies {
 public:
  // The persistent form of a parameter, which outlives the copies.
  struct Source {
    const Parameter* parameter;
    DType dtype;
    const Layout& layout;
    const void* value;
    bool in_bucket;  // it has a gradient, and its values may be shared
  };
  explicit DerivedCopies(ParameterMemory& memory) : memory_(memory) {}

  // The number of the copy of that form; -1: there is none yet.
  int find(const Parameter* parameter, const Layout& layout, DType dtype) const;
  // Its number. It has memory, whose padding is zero, and the values after allocate().
  int add(const Source& source, const Layout& layout, DType dtype);
  void allocate();
  void* data(int copy) const { return copies_[static_cast<std::size_t>(copy)].data; }
  std::size_t bytes() const;

  // Carry values over: to all copies; to those of one parameter; to elements `range` of the parameter in one copy,
  // which leaves out copies that this rank has for itself.
  void refresh();
  void refresh(const Parameter* parameter);
  void refresh(std::size_t copy, Range range);
  // Copies that this rank has for itself beside shared values: whether they are older than `version` of the values, and
  // that they are written now.
  bool own_stale(std::uint64_t version) const { return has_own_ && own_version_ != version; }
  void refresh_own(std::uint64_t version);
  void own_are_of(std::uint64_t version) { own_version_ = version; }

 private:
  struct Copy {
    const Parameter* parameter;
    Layout layout;
    DType dtype;
    const void* value;
    bool in_bucket;
    DerivedCopy form;
    bool common = true;         // in shared memory, if there is any
    std::byte* data = nullptr;  // null until allocate()
  };
  static std::size_t bytes(const Copy& copy);
  void refresh(Copy& copy);

  ParameterMemory& memory_;
  ParameterMemory heap_;  // of copies that this rank has for itself
  std::vector<Copy> copies_;
  bool has_common_ = false, has_own_ = false;
  std::uint64_t own_version_ = 1;
};

}  // namespace lockstep::plan

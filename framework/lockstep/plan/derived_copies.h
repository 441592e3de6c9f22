// The copies of parameters in the layout or type that kernels read. A copy is refreshed after the values of its
// parameter changed. The copies of the first plan lie in memory that the ranks of a node share; further copies for
// later plans are private to a rank. Several threads may refresh disjoint ranges of a shared copy at once; otherwise
// one thread.
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

  // Returns the number of the copy in this form; -1: there is none yet.
  int find(const Parameter* parameter, const Layout& layout, DType dtype) const;
  // Adds a copy and returns its number. After allocate() the copy has memory, with zero padding, and the values.
  int add(const Source& source, const Layout& layout, DType dtype);
  void allocate();
  void* data(int copy) const { return copies_[static_cast<std::size_t>(copy)].data; }
  std::size_t bytes() const;

  // These write the current values to all copies, to the copies of one parameter, or to one copy for elements `range`
  // of its parameter. The last one does nothing for a private copy.
  void refresh();
  void refresh(const Parameter* parameter);
  void refresh(std::size_t copy, Range range);
  // Private copies of shared values: whether they are older than this version of the values; and writing them now.
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
  ParameterMemory heap_;  // of private copies
  std::vector<Copy> copies_;
  bool has_common_ = false, has_own_ = false;
  std::uint64_t own_version_ = 1;
};

}  // namespace lockstep::plan

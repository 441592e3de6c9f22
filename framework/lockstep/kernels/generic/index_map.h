// Copies in which each index of an output axis reads one index of the same input axis, or none: slices, padding,
// reversed and rolled axes. Elements are moved by their size, so every type has the same code; runs of neighbours are
// moved by memcpy. Every element depends on its index alone, so results do not depend on threads. Nothing allocates in
// a run.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace lockstep::kernels::generic {

// The output indices [to, to + length) read the input indices from, from + step, ...; from < 0: they are filled.
struct IndexRun {
  std::int64_t to, length, from, step;
};

// One axis of `in` elements of the input and `out` of the output.
struct IndexMap {
  std::int64_t in = 0, out = 0;
  std::vector<IndexRun> runs = {};  // by rising `to`; together they cover the output

  // Every index reads itself.
  bool whole() const;
  static IndexMap identity(std::int64_t size);
  // `index(i)` is the input index of output index i, or -1.
  static IndexMap of(std::int64_t in, std::int64_t out, const std::function<std::int64_t(std::int64_t)>& index);
};

class MappedCopy {
 public:
  static constexpr std::size_t kMost = 9;  // maps

  // Maps from the outermost axis to the innermost; `fill` has the bits of what is written where nothing is
  // read. Elements have 1, 2, 4 or 8 bytes.
  MappedCopy(std::vector<IndexMap> maps, std::size_t element_bytes, std::uint64_t fill = 0);
  void operator()(const void* source, void* destination) const;

 private:
  template <class Element>
  void copy(const Element* source, Element* destination) const;

  std::vector<IndexMap> maps_;  // neighbours are joined where that is the same copy; at least one
  std::vector<std::int64_t> strides_;
  std::size_t element_bytes_;
  std::uint64_t fill_;
};

// dx[j] = the sum of dy[i] over all i whose map reads j, in f64, in the order of i: the gradient of a MappedCopy.
class MappedSum {
 public:
  explicit MappedSum(const std::vector<IndexMap>& maps);
  template <class T>
  void operator()(const T* dy, T* dx) const;

 private:
  // By input index j of an axis: the output indices that read it.
  struct Axis {
    std::int64_t in = 0, out = 0;
    std::vector<std::int64_t> starts = {}, readers = {};  // readers[starts[j]] to readers[starts[j + 1]] read j
    std::int64_t single_begin = 0, single_end = 0;        // each j in this range is read by j + shift alone
    std::int64_t shift = 0;
  };
  static Axis axis_of(const IndexMap& map);
  template <class T>
  void sum_row(const std::int64_t* index, const T* dy, T* dx) const;
  template <class T>
  void add_row(const T* row, std::int64_t begin, std::int64_t end, double* totals) const;

  std::vector<Axis> axes_;
};

}  // namespace lockstep::kernels::generic

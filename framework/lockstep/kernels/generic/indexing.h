// Rows and elements chosen by indices, and their gradients, which add in the order of the indices, in f64: results
// do not depend on threads. Nothing allocates; scratch memory is the caller's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::kernels::generic {

// The origin of indices, for the SampleError about one outside [0, size).
struct IndexSource {
  std::string op, path, field;      // path: the node's module path; field: of the batch, "" for another value
  std::vector<std::int64_t> shape;  // of the indices
  std::int64_t size = 0;            // allowed: 0 to size - 1
  std::string reason = {};          // what has this size: "axis 1 has 7 elements"
};
// Throws SampleError for the first index, of std::int32_t or std::int64_t, that is outside.
template <class Index>
void check_indices(const IndexSource& source, const Index* indices);

// x [outer][size][inner] and y [outer][count][inner]: y's row k is x's row indices[k]. Where the index is `masked`, y's
// row is 0; -1 masks none.
struct RowGeometry {
  std::int64_t outer = 1, size = 0, inner = 1, count = 0;
  std::int64_t masked = -1;
};
void take_rows(const RowGeometry& g, std::size_t element_bytes, const void* x, const std::int32_t* indices, void* y);
// dx = the sums of dy's rows by index; 0 for the row `masked`. `scratch` has add_rows_scratch(g) elements.
template <class T>
void add_rows(const RowGeometry& g, const T* dy, const std::int32_t* indices, std::int64_t* scratch, T* dx);
std::int64_t add_rows_scratch(const RowGeometry& g);

// y[i, j, k] = x[i, indices[i, j, k], k] for axis 1; x has no fewer elements than the indices along other axes.
class ElementGather {
 public:
  ElementGather(const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& indices, int axis);
  void gather(std::size_t element_bytes, const void* x, const std::int32_t* indices, void* y) const;
  // dx = the sums of dy by index. `totals`, one per element of x, may be dx if T is double.
  template <class T>
  void scatter_add(const T* dy, const std::int32_t* indices, double* totals, T* dx) const;

 private:
  struct Axis {
    std::int64_t size, stride;  // of the indices; of x
  };
  template <class Visit>
  void for_elements(std::int64_t begin, std::int64_t end, const Visit& visit) const;

  std::vector<Axis> axes_;  // the axis itself has stride 0
  std::int64_t elements_ = 1, outer_ = 1, x_elements_ = 1, stride_ = 1;
};

}  // namespace lockstep::kernels::generic

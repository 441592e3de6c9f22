// Conversion between Layout and oneDNN's memory descriptors: both consist of padded dimensions, strides of the outer
// indices and inner blocks. A descriptor with further properties (packed weights, compensation, offsets) has no Layout
// and gives nullopt.
#pragma once

#include <dnnl.hpp>
#include <optional>

#include "lockstep/graph/layout.h"
#include "lockstep/graph/type.h"

namespace lockstep::kernels::onednn {

dnnl::memory::data_type data_type(DType dtype);  // Error for the 64-bit types, which oneDNN lacks
// The plain layout and those of channels in blocks always have a descriptor; Error for another one that has none.
dnnl::memory::desc descriptor(const Type& type, const Layout& layout = {});
std::optional<dnnl::memory::desc> find_descriptor(const Type& type, const Layout& layout);  // nullopt: there is none
dnnl::memory::desc any_layout(const Shape& shape, DType dtype);                             // for oneDNN to choose

// The Layout of a value of this shape. Descriptors of grouped weights have one dimension more, (groups, out / groups,
// ...), which folds into (out, ...). Equal memory gives equal Layouts, the plain one where possible, whatever its
// strides along dimensions of size 1.
std::optional<Layout> layout_of(const Shape& shape, const dnnl::memory::desc& descriptor);

}  // namespace lockstep::kernels::onednn

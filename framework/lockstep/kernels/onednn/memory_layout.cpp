#include "lockstep/kernels/onednn/memory_layout.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/kernels/onednn/library.h"

namespace lockstep::kernels::onednn {
namespace {

// Elements in one block along dimension d.
std::int64_t block_size(const std::vector<Layout::Block>& blocks, int d) {
  std::int64_t n = 1;
  for (const Layout::Block& block : blocks) n *= block.dim == d ? block.size : 1;
  return n;
}

// Whether index (g, o) of the two leading dimensions lies where a single index g * out + o would: no padding between
// groups, blocks of one of the two at most, and groups one after the other.
bool groups_fold(const MemoryBlocking& d) {
  if (d.dims[1] == 1) return d.padded[1] == 1;
  if (d.padded[0] != d.dims[0] || d.padded[1] != d.dims[1]) return false;
  return block_size(d.blocks, 0) == 1 && d.strides[0] == d.dims[1] / block_size(d.blocks, 1) * d.strides[1];
}

// (groups, out, ...) as (groups * out, ...).
std::optional<MemoryBlocking> fold_groups(const MemoryBlocking& d) {
  if (!groups_fold(d)) return std::nullopt;
  MemoryBlocking folded{.dims = {d.dims.begin() + 1, d.dims.end()},
                        .padded = {d.padded.begin() + 1, d.padded.end()},
                        .strides = {d.strides.begin() + 1, d.strides.end()},
                        .blocks = d.blocks};
  folded.dims[0] = d.dims[0] * d.dims[1];
  folded.padded[0] = d.padded[0] * d.padded[1];
  if (d.dims[1] == 1) folded.strides[0] = d.strides[0];
  for (Layout::Block& block : folded.blocks) block.dim = std::max(block.dim - 1, 0);
  return folded;
}

// Elements from the start to index i of dimension d, the others at 0.
std::int64_t offset(const Layout& layout, int d, std::int64_t i) {
  std::int64_t result = 0, inner = 1;
  for (std::size_t b = layout.blocks.size(); b-- > 0;) {
    const Layout::Block& block = layout.blocks[b];
    if (block.dim == d) {
      result += i % block.size * inner;
      i /= block.size;
    }
    inner *= block.size;
  }
  return result + i * layout.strides[static_cast<std::size_t>(d)];
}

// All blocks are laid out alike, so the first block and the step to the second one decide.
bool is_row_major(const Shape& shape, const Layout& layout) {
  if (layout.has_padding(shape)) return false;
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const std::int64_t looked_at = std::min(shape[d], block_size(layout.blocks, d) + 1);
    for (std::int64_t i = 0; i < looked_at; ++i) {
      if (offset(layout, d, i) != i * stride) return false;
    }
    stride *= shape[d];
  }
  return true;
}

}  // namespace

dnnl::memory::data_type data_type(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return dnnl::memory::data_type::f32;
    case DType::BF16:
      return dnnl::memory::data_type::bf16;
    case DType::I32:
      return dnnl::memory::data_type::s32;
    case DType::U8:
      return dnnl::memory::data_type::u8;
    case DType::F64:
    case DType::I64:
      break;
  }
  fail("onednn", "elements are {}, expected f32, bf16, i32 or u8", name_of(dtype));
}

dnnl::memory::desc any_layout(const Shape& shape, DType dtype) {
  return {shape.dims(), data_type(dtype), dnnl::memory::format_tag::any};
}

std::optional<dnnl::memory::desc> find_descriptor(const Type& type, const Layout& layout) {
  const Shape& shape = type.shape;
  if (!layout.plain()) return descriptor_of(shape, layout, data_type(type.dtype));
  dnnl::memory::dims strides(static_cast<std::size_t>(shape.rank()));
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= shape[d];
  }
  return dnnl::memory::desc(shape.dims(), data_type(type.dtype), strides);
}

dnnl::memory::desc descriptor(const Type& type, const Layout& layout) {
  const auto found = find_descriptor(type, layout);
  check(found.has_value(), "onednn", "the layout {} of {} has no descriptor in this version of oneDNN", layout.str(),
        type.str());
  return *found;
}

std::optional<Layout> layout_of(const Shape& shape, const dnnl::memory::desc& descriptor) {
  auto d = blocking_of(descriptor);
  if (!d) return std::nullopt;
  auto bytes = static_cast<std::int64_t>(dnnl::memory::data_type_size(data_type_of(descriptor)));
  for (const std::int64_t n : d->padded) bytes *= n;
  if (static_cast<std::int64_t>(descriptor.get_size()) != bytes) return std::nullopt;
  if (std::ssize(d->dims) == shape.rank() + 1) d = fold_groups(*d);
  if (!d) return std::nullopt;
  Layout layout{.padded = std::move(d->padded), .strides = std::move(d->strides), .blocks = std::move(d->blocks)};
  return is_row_major(shape, layout) ? Layout{} : layout;
}

}  // namespace lockstep::kernels::onednn

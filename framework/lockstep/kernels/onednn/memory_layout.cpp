#include "lockstep/kernels/onednn/memory_layout.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::kernels::onednn {
namespace {

std::int64_t product(const dnnl_dim_t* sizes, int count) {
  std::int64_t n = 1;
  for (int i = 0; i < count; ++i) n *= sizes[i];
  return n;
}

// Elements in one block along dimension d.
std::int64_t block_size(const dnnl_blocking_desc_t& b, int d) {
  std::int64_t n = 1;
  for (int i = 0; i < b.inner_nblks; ++i) n *= b.inner_idxs[i] == d ? b.inner_blks[i] : 1;
  return n;
}

// Whether index (g, o) of the two leading dimensions lies where a single index g * out + o would: no padding between
// groups, blocks of one of the two at most, and groups one after the other.
bool groups_fold(const dnnl_memory_desc_t& d) {
  const dnnl_blocking_desc_t& b = d.format_desc.blocking;
  if (d.dims[1] == 1) return d.padded_dims[1] == 1;
  if (d.padded_dims[0] != d.dims[0] || d.padded_dims[1] != d.dims[1]) return false;
  return block_size(b, 0) == 1 && b.strides[0] == d.dims[1] / block_size(b, 1) * b.strides[1];
}

// (groups, out, ...) as (groups * out, ...).
std::optional<dnnl_memory_desc_t> fold_groups(const dnnl_memory_desc_t& d) {
  if (!groups_fold(d)) return std::nullopt;
  dnnl_memory_desc_t folded = d;
  folded.ndims = d.ndims - 1;
  for (int i = 0; i < folded.ndims; ++i) {
    folded.dims[i] = d.dims[i + 1];
    folded.padded_dims[i] = d.padded_dims[i + 1];
    folded.padded_offsets[i] = d.padded_offsets[i + 1];
    folded.format_desc.blocking.strides[i] = d.format_desc.blocking.strides[i + 1];
  }
  folded.dims[0] = d.dims[0] * d.dims[1];
  folded.padded_dims[0] = d.padded_dims[0] * d.padded_dims[1];
  if (d.dims[1] == 1) folded.format_desc.blocking.strides[0] = d.format_desc.blocking.strides[0];
  dnnl_dim_t* blocked = folded.format_desc.blocking.inner_idxs;
  for (int i = 0; i < d.format_desc.blocking.inner_nblks; ++i) blocked[i] = blocked[i] == 0 ? 0 : blocked[i] - 1;
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

// Elements of one block of `layout` along dimension d.
std::int64_t block_size(const Layout& layout, int d) {
  std::int64_t n = 1;
  for (const Layout::Block& block : layout.blocks) n *= block.dim == d ? block.size : 1;
  return n;
}

// All blocks are laid out alike, so the first block and the step to the second one decide.
bool is_row_major(const Shape& shape, const Layout& layout) {
  if (layout.has_padding(shape)) return false;
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const std::int64_t looked_at = std::min(shape[d], block_size(layout, d) + 1);
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

dnnl::memory::desc descriptor(const Shape& shape, const Layout& layout, DType dtype) {
  dnnl::memory::dims strides(static_cast<std::size_t>(shape.rank()));
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= shape[d];
  }
  dnnl::memory::desc result(shape.dims(), data_type(dtype), strides);
  if (layout.plain()) return result;
  dnnl_blocking_desc_t& blocking = result.data.format_desc.blocking;
  for (std::size_t d = 0; d < layout.padded.size(); ++d) {
    result.data.padded_dims[d] = layout.padded[d];
    blocking.strides[d] = layout.strides[d];
  }
  blocking.inner_nblks = static_cast<int>(layout.blocks.size());
  for (std::size_t i = 0; i < layout.blocks.size(); ++i) {
    blocking.inner_blks[i] = layout.blocks[i].size;
    blocking.inner_idxs[i] = layout.blocks[i].dim;
  }
  return result;
}

std::optional<Layout> layout_of(const Shape& shape, const dnnl::memory::desc& descriptor) {
  dnnl_memory_desc_t d = descriptor.data;
  if (d.format_kind != dnnl_blocked || d.extra.flags != dnnl_memory_extra_flag_none || d.offset0 != 0)
    return std::nullopt;
  const auto element = static_cast<std::int64_t>(dnnl::memory::data_type_size(descriptor.data_type()));
  if (static_cast<std::int64_t>(descriptor.get_size()) != product(d.padded_dims, d.ndims) * element)
    return std::nullopt;
  for (int i = 0; i < d.ndims; ++i) {
    if (d.padded_offsets[i] != 0) return std::nullopt;
  }
  if (d.ndims == shape.rank() + 1) {
    const auto folded = fold_groups(d);
    if (!folded) return std::nullopt;
    d = *folded;
  }
  Layout layout;
  const dnnl_blocking_desc_t& blocking = d.format_desc.blocking;
  layout.padded.assign(d.padded_dims, d.padded_dims + d.ndims);
  layout.strides.assign(blocking.strides, blocking.strides + d.ndims);
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    layout.blocks.push_back({static_cast<int>(blocking.inner_idxs[i]), blocking.inner_blks[i]});
  }
  return is_row_major(shape, layout) ? Layout{} : layout;
}

}  // namespace lockstep::kernels::onednn

// Ops that move elements: slices, padding, joined and cut values, axes in another order. They keep blocks of channels
// where the channels are not touched, or are moved by whole blocks.
#include <algorithm>
#include <bit>

#include "lockstep/kernels/generic/index_map.h"
#include "lockstep/kernels/generic/permute.h"
#include "lockstep/kernels/generic/pieces.h"
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/shape_axes.h"
#include "lockstep/ops/slice.h"

namespace lockstep::kernels::generic {
namespace {

using Maps = std::vector<IndexMap>;

// The bits of a number as an element of this type.
std::uint64_t bits_of(double value, DType type) {
  switch (type) {
    case DType::F64:
      return std::bit_cast<std::uint64_t>(value);
    case DType::F32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::BF16:
      return std::bit_cast<std::uint16_t>(BFloat16(static_cast<float>(value)));
    case DType::I32:
    case DType::I64:
    case DType::U8:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
  return 0;
}

// The dimensions in memory: [N][channels / block][...][block] for blocks of channels.
Shape stored_shape(const Shape& shape, std::int64_t block) {
  if (block == 1) return shape;
  std::vector<std::int64_t> dims = shape.dims();
  dims[1] = (dims[1] + block - 1) / block;
  dims.push_back(block);
  return Shape(std::move(dims));
}

// Sets the layouts of input 0 and output 0 to the channel blocks in which the input is offered, if the maps leave the
// channels as they are and padded channels get no other value than 0; adds the axis of the blocks to the maps.
void keep_blocks(const KernelRequest& r, const Layout& offered, bool fills_zero, Maps& maps, KernelOffer& offer) {
  const Shape &x = r.inputs[0].shape, &y = r.outputs[0].shape;
  const std::int64_t block = known_block(x, offered);
  if (block == 1 || !maps[1].whole() || (!fills_zero && x[1] % block != 0)) return;
  maps[1] = IndexMap::identity(stored_shape(x, block)[1]);
  maps.push_back(IndexMap::identity(block));
  offer.inputs[0] = offered;
  offer.outputs[0] = Layout::channels_blocked(y, block);
}

KernelOffer mapped_copy(const KernelRequest& r, std::span<const Layout> offered, Maps maps, double fill = 0) {
  KernelOffer offer = plain_offer(r);
  keep_blocks(r, offered[0], fill == 0, maps, offer);
  offer.build = [maps = std::move(maps), dtype = r.dtype(), fill] {
    return make_kernel([copy = MappedCopy(maps, size_of(dtype), bits_of(fill, dtype))](const Arguments& a) {
      copy(a.inputs[0], a.outputs[0]);
    });
  };
  return offer;
}

// A map per axis: of(axis) makes it.
template <class Of>
Maps maps_of(const Shape& shape, const Of& of) {
  Maps maps;
  for (int d = 0; d < shape.rank(); ++d) maps.push_back(of(static_cast<std::size_t>(d), shape[d]));
  return maps;
}

std::optional<KernelOffer> slice_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  const auto& ranges = r.as<SliceOp>().ranges();
  return mapped_copy(r, offered, maps_of(r.inputs[0].shape, [&](std::size_t d, std::int64_t size) {
                       const AxisRange range = ranges[d];
                       return IndexMap::of(size, range.length,
                                           [range](std::int64_t i) { return range.start + i * range.step; });
                     }));
}

std::optional<KernelOffer> place_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  const auto& op = r.as<PlaceOp>();
  return mapped_copy(r, offered,
                     maps_of(r.outputs[0].shape,
                             [&](std::size_t d, std::int64_t size) {
                               const AxisRange range = op.ranges()[d];
                               return IndexMap::of(range.length, size, [range](std::int64_t i) {
                                 const std::int64_t steps = (i - range.start) / range.step;
                                 const bool hit =
                                     steps >= 0 && steps < range.length && range.start + steps * range.step == i;
                                 return hit ? steps : -1;
                               });
                             }),
                     op.value());
}

std::optional<KernelOffer> roll_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  const auto& shifts = r.as<RollOp>().shifts();
  return mapped_copy(r, offered, maps_of(r.inputs[0].shape, [&](std::size_t d, std::int64_t size) {
                       const std::int64_t back = size == 0 ? 0 : (size - shifts[d] % size) % size;
                       return IndexMap::of(size, size, [size, back](std::int64_t i) { return (i + back) % size; });
                     }));
}

Maps padding_maps(const Shape& x, const std::vector<AxisPadding>& padding, PadMode mode) {
  return maps_of(x, [&](std::size_t d, std::int64_t size) {
    const AxisPadding p = padding[d];
    return IndexMap::of(size, size + p.before + p.after,
                        [p, mode, size](std::int64_t i) { return padded_index(mode, i - p.before, size); });
  });
}

std::optional<KernelOffer> pad_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  const auto& op = r.as<PadOp>();
  return mapped_copy(r, offered, padding_maps(r.inputs[0].shape, op.padding(), op.mode()));
}

std::optional<KernelOffer> pad_gradient_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  const auto& op = r.as<PadGradientOp>();
  KernelOffer offer = plain_offer(r);
  Maps maps = padding_maps(r.outputs[0].shape, op.padding(), op.mode());
  keep_blocks(r, offered[0], true, maps, offer);
  offer.build = [maps = std::move(maps), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([sum = MappedSum(maps)](const Arguments& a) { sum(a.in<T>(0), a.out<T>(0)); });
    });
  };
  return offer;
}

// The block of channels that all these values can keep when they are cut or joined along `axis`.
std::int64_t common_block(std::span<const Type> parts, int axis, std::int64_t block) {
  const auto divides = [&](const Type& t) { return t.shape[1] % block == 0; };
  return block > 1 && axis == 1 && !std::ranges::all_of(parts, divides) ? 1 : block;
}

Pieces pieces_of(std::span<const Type> parts, int axis, std::int64_t block) {
  std::vector<std::int64_t> widths;
  for (const Type& t : parts) {
    const Shape stored = stored_shape(t.shape, block);
    widths.push_back(stored[axis] * axes::inner(stored, axis) * static_cast<std::int64_t>(size_of(t.dtype)));
  }
  return {axes::outer(stored_shape(parts[0].shape, block), axis), std::move(widths)};
}

void set_blocks(std::span<const Type> values, std::int64_t block, std::vector<Layout>& layouts) {
  if (block == 1) return;
  for (std::size_t k = 0; k < values.size(); ++k) layouts[k] = Layout::channels_blocked(values[k].shape, block);
}

std::optional<KernelOffer> concat_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  const int axis = r.as<ConcatOp>().axis();
  KernelOffer offer = plain_offer(r);
  std::int64_t block = 1;
  for (std::size_t k = 0; k < r.inputs.size() && block == 1; ++k) block = known_block(r.inputs[k].shape, offered[k]);
  block = common_block(r.inputs, axis, block);
  set_blocks(r.inputs, block, offer.inputs);
  set_blocks(r.outputs, block, offer.outputs);
  offer.build = [inputs = r.inputs, axis, block] {
    return make_kernel(
        [pieces = pieces_of(inputs, axis, block)](const Arguments& a) { pieces.join(a.inputs, a.outputs[0]); });
  };
  return offer;
}

std::optional<KernelOffer> split_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  const int axis = r.as<SplitOp>().axis();
  KernelOffer offer = plain_offer(r);
  const std::int64_t block = common_block(r.outputs, axis, known_block(r.inputs[0].shape, offered[0]));
  set_blocks(r.inputs, block, offer.inputs);
  set_blocks(r.outputs, block, offer.outputs);
  offer.build = [outputs = r.outputs, axis, block] {
    return make_kernel(
        [pieces = pieces_of(outputs, axis, block)](const Arguments& a) { pieces.cut(a.inputs[0], a.outputs); });
  };
  return offer;
}

std::optional<KernelOffer> permute_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.build = [shape = r.inputs[0].shape, axes = r.as<PermuteOp>().axes(), bytes = size_of(r.dtype())] {
    return make_kernel(
        [copy = PermutedCopy(shape, axes, bytes)](const Arguments& a) { copy(a.inputs[0], a.outputs[0]); });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> shape_rows() {
  return {
      kernel_row<SliceOp>("slice", slice_kernel),       kernel_row<PlaceOp>("place", place_kernel),
      kernel_row<RollOp>("roll", roll_kernel),          kernel_row<PadOp>("pad", pad_kernel),
      kernel_row<ConcatOp>("concat", concat_kernel),    kernel_row<SplitOp>("split", split_kernel),
      kernel_row<PermuteOp>("permute", permute_kernel),
  };
}

std::vector<KernelRow> shape_sum_rows() { return {kernel_row<PadGradientOp>("pad_gradient", pad_gradient_kernel)}; }

}  // namespace lockstep::kernels::generic

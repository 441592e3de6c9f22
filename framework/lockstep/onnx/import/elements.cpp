// Elements by their indices, repeated and padded.
#include <numeric>

#include "lockstep/onnx/import/node_reader.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/embedding.h"
#include "lockstep/ops/index_select.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"

namespace lockstep::onnx {
namespace {

// Elements by constant indices: runs of indices are slices, which are joined.
Value by_constant(const NodeReader& r, Value x, int axis, Numbers indices) {
  const std::int64_t size = x.shape()[axis];
  std::vector<Value> runs;
  for (std::int64_t& index : indices) {
    r.require(index >= -size && index < size, formatted("index {} along axis {} of {}", index, axis, x.shape().str()));
    if (index < 0) index += size;
  }
  for (std::size_t begin = 0; begin < indices.size();) {
    std::size_t end = begin + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    runs.push_back(slice(x, axis, indices[begin], static_cast<std::int64_t>(end - begin)));
    begin = end;
  }
  r.require(!runs.empty(), "no indices, expected at least one");
  return runs.size() == 1 ? runs.front() : concat(runs, axis);
}

void read_gather(const NodeReader& r) {
  const Value x = r.value(0);
  const int axis = axis_of(r, r.whole_attribute("axis", 0), x.shape().rank());
  if (r.constant(1) != nullptr) {
    const Value chosen = by_constant(r, x, axis, r.wholes(1, "the indices"));
    Numbers sizes = x.shape().dims();
    const Shape places = r.shape(1);
    sizes.erase(sizes.begin() + axis);
    sizes.insert(sizes.begin() + axis, places.dims().begin(), places.dims().end());
    r.set(reshape(chosen, Shape(sizes)));
    return;
  }
  const Value indices = r.value(1);
  r.require(indices.dtype() == DType::I32, formatted("indices are {}, expected i32", name_of(indices.dtype())));
  if (axis == 0 && x.shape().rank() == 2) {
    r.set(embedding(indices, x));
  } else {
    r.require(indices.shape().rank() == 1,
              formatted("indices of shape {}, expected one dimension", indices.shape().str()));
    r.set(index_select(x, axis, indices));
  }
}

void read_expand(const NodeReader& r) {
  const Value x = r.value(0);
  Numbers sizes = r.wholes(1, "the shape");
  const int missing = static_cast<int>(sizes.size()) - x.shape().rank();
  for (std::size_t i = 0; i < sizes.size(); ++i) {  // a size of 1 keeps that of x
    const int axis = static_cast<int>(i) - missing;
    if (axis >= 0 && sizes[i] == 1) sizes[i] = x.shape()[axis];
  }
  const Tracing& tracing = r.tracing();
  if (!sizes.empty() && tracing.batch_before > 1 && sizes[0] == tracing.batch_before) sizes[0] = tracing.batch;
  r.set(x.shape() == Shape(sizes) ? x : x + fill(r.graph(), {Shape(sizes), x.dtype()}, 0));
}

void read_tile(const NodeReader& r) {
  Value x = r.value(0);
  const Numbers repeats = r.wholes(1, "repeats");
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    r.require(repeats[i] >= 1, formatted("{} repeats, expected at least 1", repeats[i]));
    if (repeats[i] > 1) x = concat(std::vector<Value>(static_cast<std::size_t>(repeats[i]), x), static_cast<int>(i));
  }
  r.set(x);
}

void read_pad(const NodeReader& r) {
  const Value x = r.value(0);
  const Numbers pads = r.wholes_of(1, "pads");
  Numbers axes = r.has(3) ? r.wholes(3, "axes") : Numbers{};
  for (int i = 0; axes.empty() && i < x.shape().rank(); ++i) axes.push_back(i);
  if (!r.has(3)) axes.resize(static_cast<std::size_t>(x.shape().rank()));
  r.require(pads.size() == 2 * axes.size(),
            formatted("{} pads for {} axes, expected two for each", pads.size(), axes.size()));
  if (!r.has(3)) std::iota(axes.begin(), axes.end(), 0);
  std::vector<std::int64_t> padding(2 * x.shape().dims().size());  // the last axis first
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int from_last = x.shape().rank() - 1 - axis_of(r, axes[i], x.shape().rank());
    const std::size_t at = 2 * static_cast<std::size_t>(from_last);
    padding[at] = pads[i];
    padding[at + 1] = pads[axes.size() + i];
  }
  const std::string mode = r.text_attribute("mode", "constant");
  const double number = r.has(2) ? r.real(2, "the value") : r.real_attribute("value", 0);
  const PadMode kind = mode == "reflect" ? PadMode::Reflect
                       : mode == "edge"  ? PadMode::Replicate
                       : mode == "wrap"  ? PadMode::Circular
                                         : PadMode::Constant;
  r.require(kind != PadMode::Constant || mode == "constant",
            formatted("mode is {}, expected constant, reflect, edge or wrap", mode));
  r.set(pad(x, padding, kind, number));
}

void read_depth_to_space(const NodeReader& r) {
  Value x = r.value(0);
  const Shape s = x.shape();
  const std::int64_t block = r.whole_attribute("blocksize", 1);
  const std::string mode = r.text_attribute("mode", "DCR");
  r.require(s.rank() == 4 && block >= 1 && block <= s[1] && s[1] % (block * block) == 0,
            formatted("a value of shape {} does not divide into blocks of {}", s.str(), block));
  if (mode == "DCR") {  // the block is in front of the channels; pixel_shuffle has it behind them
    const std::int64_t channels = s[1] / (block * block);
    x = reshape(x, Shape{s[0], block * block, channels, s[2] * s[3]});
    x = reshape(permute(x, {0, 2, 1, 3}), s);
  }
  r.set(pixel_shuffle(x, block));
}

}  // namespace

std::span<const Reading> element_readings() {
  static const std::vector<Reading> readings{
      {"Gather", read_gather, {"axis"}},
      {"Expand", read_expand},
      {"Tile", read_tile},
      {"Pad", read_pad, {"mode", "pads", "value"}},
      {"DepthToSpace", read_depth_to_space, {"blocksize", "mode"}},
  };
  return readings;
}

}  // namespace lockstep::onnx

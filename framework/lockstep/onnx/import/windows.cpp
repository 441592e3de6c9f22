// Convolutions, pooling and resampling over spatial axes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/onnx/import/node_reader.h"
#include "lockstep/ops/conv_transpose.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/resample.h"
#include "lockstep/ops/slice.h"

namespace lockstep::onnx {
namespace {

// The window along one axis; padding may differ at the two ends.
struct Window {
  std::int64_t kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
};

// Returns the windows that the attributes say; `kernel` has their sizes.
std::vector<Window> windows_of(const NodeReader& r, const Numbers& kernel, const Shape& x) {
  const std::size_t axes = kernel.size();
  r.require(axes >= 1 && axes <= 3 && x.rank() == static_cast<int>(axes) + 2,
            formatted("windows over {} axes of a value of shape {}, expected 1 to 3 axes of (samples, channels, ...)",
                      axes, x.str()));
  const Numbers strides = r.wholes_attribute("strides"), dilations = r.wholes_attribute("dilations");
  const Numbers pads = r.wholes_attribute("pads");
  r.require((strides.empty() || strides.size() == axes) && (dilations.empty() || dilations.size() == axes) &&
                (pads.empty() || pads.size() == 2 * axes),
            formatted("strides, dilations or pads are not for {} axes", axes));
  const std::string automatic = r.text_attribute("auto_pad", "NOTSET");
  std::vector<Window> windows(axes);
  for (std::size_t i = 0; i < axes; ++i) {
    Window& w = windows[i];
    w.kernel = kernel[i];
    if (!strides.empty()) w.stride = strides[i];
    if (!dilations.empty()) w.dilation = dilations[i];
    r.require(w.kernel > 0 && w.stride > 0 && w.dilation > 0, "a kernel, stride or dilation below 1");
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const std::int64_t in = x[static_cast<int>(i) + 2], out = (in + w.stride - 1) / w.stride;
      const std::int64_t both = std::max<std::int64_t>((out - 1) * w.stride + (w.kernel - 1) * w.dilation + 1 - in, 0);
      w.before = automatic == "SAME_UPPER" ? both / 2 : both - both / 2;
      w.after = both - w.before;
    } else if (!pads.empty() && automatic == "NOTSET") {
      w.before = pads[i];
      w.after = pads[axes + i];
    }
  }
  r.require(automatic == "NOTSET" || automatic == "VALID" || automatic.starts_with("SAME_"),
            formatted("auto_pad is {}, expected NOTSET, VALID, SAME_UPPER or SAME_LOWER", automatic));
  return windows;
}

// Returns x with what the two ends of an axis differ in, so that the windows then have the same padding at both.
Value evened(Value x, std::vector<Window>& windows, double padding) {
  std::vector<std::int64_t> more;  // the last axis first
  bool any = false;
  for (std::size_t i = windows.size(); i-- > 0;) {
    Window& w = windows[i];
    const std::int64_t common = std::min(w.before, w.after);
    more.push_back(w.before - common);
    more.push_back(w.after - common);
    any = any || w.before != w.after;
    w.before = w.after = common;
  }
  return any ? pad(x, more, PadMode::Constant, padding) : x;
}

Numbers spatial_sizes(const Shape& weight) { return Numbers(weight.dims().begin() + 2, weight.dims().end()); }

ConvolutionOptions options_of(const std::vector<Window>& windows, std::int64_t groups) {
  ConvolutionOptions options{.groups = groups};
  for (const Window& w : windows)
    options.axes.push_back({.stride = w.stride, .padding = w.before, .dilation = w.dilation});
  return options;
}

void read_convolution(const NodeReader& r) {
  const Value weight = r.value(1);
  r.require(weight.shape().rank() >= 3, formatted("a weight of shape {}", weight.shape().str()));
  std::vector<Window> windows = windows_of(r, spatial_sizes(weight.shape()), r.shape(0));
  const Value x = evened(r.value(0), windows, 0);
  r.set(convolution(x, weight, r.value(2), options_of(windows, r.whole_attribute("group", 1))));
}

// Padding of a transposed convolution cuts elements off. The elements that one end loses more than the other are sliced
// off.
void read_transposed(const NodeReader& r) {
  const Value weight = r.value(1);
  r.require(!r.has_attribute("output_shape"), "output_shape is given, expected output_padding alone");
  r.require(weight.shape().rank() >= 3, formatted("a weight of shape {}", weight.shape().str()));
  std::vector<Window> windows = windows_of(r, spatial_sizes(weight.shape()), r.shape(0));
  r.require(r.text_attribute("auto_pad", "NOTSET") == "NOTSET", "auto_pad, expected pads");
  std::vector<std::pair<std::int64_t, std::int64_t>> cuts;
  for (Window& w : windows) {
    const std::int64_t common = std::min(w.before, w.after);
    cuts.emplace_back(w.before - common, w.after - common);
    w.before = w.after = common;
  }
  Value y = conv_transpose(r.value(0), weight, r.value(2),
                           {.convolution = options_of(windows, r.whole_attribute("group", 1)),
                            .output_padding = r.wholes_attribute("output_padding")});
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    const auto [front, back] = cuts[i];
    if (front + back > 0) y = slice(y, axis, front, y.shape()[axis] - front - back);
  }
  r.set(y);
}

void read_pool(const NodeReader& r, Pool kind) {
  std::vector<Window> windows = windows_of(r, r.wholes_attribute("kernel_shape"), r.shape(0));
  r.require(r.node().outputs.size() == 1, "the positions of the maxima are an output, expected the maxima alone");
  const bool counts = r.whole_attribute("count_include_pad", 0) != 0;
  bool even = true;
  for (const Window& w : windows) even = even && w.before == w.after;
  r.require(kind == Pool::Max || counts || even,
            "an average without the padding whose padding differs at the two ends of an axis");
  // A maximum never is the least number, which therefore pads.
  const Value x = evened(r.value(0), windows, kind == Pool::Max ? -std::numeric_limits<double>::infinity() : 0);
  PoolOptions options{.ceil_mode = r.whole_attribute("ceil_mode", 0) != 0, .count_include_pad = counts};
  for (const Window& w : windows)
    options.axes.push_back({.kernel = w.kernel, .stride = w.stride, .padding = w.before, .dilation = w.dilation});
  r.set(pool(kind, x, options));
}

void read_global_maximum(const NodeReader& r) {
  const Value x = r.value(0);
  std::vector<int> axes;
  for (int axis = 2; axis < x.shape().rank(); ++axis) axes.push_back(axis);
  r.set(amax(x, axes, true));
}

struct Enlarging {
  std::vector<std::int64_t> size;
  std::vector<double> scale;
};

// The sizes of the spatial axes, or the factors by which they grow.
Enlarging enlarging_of(const NodeReader& r, std::size_t scales, std::size_t sizes) {
  const Shape shape = r.shape(0);
  r.require(shape.rank() >= 3,
            formatted("a value of shape {}, expected samples, channels and spatial axes", shape.str()));
  Enlarging result;
  if (r.has(sizes)) {
    result.size = r.wholes(sizes, "sizes");
    r.require(static_cast<int>(result.size.size()) == shape.rank() && result.size[1] == shape[1],
              "sizes are not those of all axes, with as many channels");
    result.size.erase(result.size.begin(), result.size.begin() + 2);
    return result;
  }
  r.require(r.has(scales) && r.constant(scales) != nullptr && is_floating(r.constant(scales)->dtype()),
            "there are neither sizes nor factors that are constants");
  const Tensor factors = r.constant(scales)->to(DType::F64);
  const auto list = factors.data<double>();
  r.require(static_cast<int>(list.size()) == shape.rank() && list[0] == 1 && list[1] == 1,
            "factors are not those of all axes, with 1 for samples and channels");
  result.scale.assign(list.begin() + 2, list.end());
  return result;
}

// pytorch_half_pixel makes the first element of an axis that is to have one, where half_pixel makes the middle. Returns
// x without the other elements of such axes, whose size the options then keep.
Value firsts_of_single(Value x, UpsampleOptions& options) {
  for (int axis = 2; axis < x.shape().rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis) - 2;
    const double size = options.size.empty() ? std::floor(static_cast<double>(x.shape()[axis]) * options.scale[i])
                                             : static_cast<double>(options.size[i]);
    if (size != 1 || x.shape()[axis] == 1) continue;
    x = slice(x, axis, 0, 1);
    if (options.size.empty()) options.scale[i] = 1;
  }
  return x;
}

void read_resize(const NodeReader& r) {
  const bool newer = r.operators() >= 11;  // before: x and factors
  const Enlarging enlarging = enlarging_of(r, newer ? 2 : 1, newer ? 3 : 4);
  const std::string policy = r.text_attribute("keep_aspect_ratio_policy", "stretch");
  r.require(policy == "stretch", formatted("keep_aspect_ratio_policy is {}, expected stretch", policy));
  const std::string mode = r.text_attribute("mode", "nearest");
  const std::string places = r.text_attribute("coordinate_transformation_mode", newer ? "half_pixel" : "asymmetric");
  const bool whole = std::ranges::all_of(enlarging.scale, [](double f) { return f == std::floor(f); });
  UpsampleOptions options{.size = enlarging.size, .scale = enlarging.scale};
  Value x = r.value(0);
  if (mode == "nearest") {
    const std::string rounding = r.text_attribute("nearest_mode", newer ? "round_prefer_floor" : "floor");
    const bool as_pytorch = places == "asymmetric" && rounding == "floor";
    // With whole factors the middle of an element is nearest to the element that the factor gives.
    const bool same =
        places.ends_with("half_pixel") && rounding.starts_with("round_prefer") && whole && !enlarging.scale.empty();
    r.require(as_pytorch || same,
              formatted("nearest elements with {} and {}, expected asymmetric and floor", places, rounding));
  } else {
    r.require(mode == "linear", formatted("mode is {}, expected nearest or linear", mode));
    r.require(places == "align_corners" || places == "half_pixel" || places == "pytorch_half_pixel",
              formatted("coordinate_transformation_mode is {}, expected align_corners or half_pixel", places));
    r.require(r.whole_attribute("antialias", 0) == 0, "antialias is set, expected none");
    options.mode = Interpolation::Linear;
    options.align_corners = places == "align_corners";
    if (places == "pytorch_half_pixel") x = firsts_of_single(x, options);
  }
  r.set(upsample(x, options));
}

}  // namespace

std::span<const Reading> window_readings() {
  static const std::vector<Reading> readings{
      {"Conv", read_convolution, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}},
      {"ConvTranspose",
       read_transposed,
       {"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "pads", "strides"}},
      {"MaxPool",
       [](const NodeReader& r) { read_pool(r, Pool::Max); },
       {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"}},
      {"AveragePool",
       [](const NodeReader& r) { read_pool(r, Pool::Average); },
       {"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"}},
      {"GlobalAveragePool", [](const NodeReader& r) { r.set(global_average_pool(r.value(0))); }},
      {"GlobalMaxPool", read_global_maximum},
      {"Resize",
       read_resize,
       {"antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value",
        "keep_aspect_ratio_policy", "mode", "nearest_mode"}},
      {"Upsample", read_resize, {"mode"}},
  };
  return readings;
}

}  // namespace lockstep::onnx

// The table of what runs on our own vectorised kernels: batch norm with its epilogues, ReLU, addition, casts and max
// pooling, f32 and bf16. They keep the layout that is offered.
#include <fmt/format.h>

#include "lockstep/kernels/generic/offers.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/kernels/vector/batch_norm.h"
#include "lockstep/kernels/vector/convolution.h"
#include "lockstep/kernels/vector/elementwise.h"
#include "lockstep/kernels/vector/pool.h"
#include "lockstep/ops/batch_norm2d_sync.h"
#include "lockstep/ops/conv2d.h"
#include "lockstep/ops/elementwise.h"
#include "lockstep/ops/pool2d.h"

namespace lockstep::vector {
namespace {

using generic::channel_offer;
using generic::elementwise_offer;

bool supported(DType dtype) { return dtype == DType::F32 || dtype == DType::BF16; }
bool supported(const KernelRequest& r) { return supported(r.dtype()); }

// Makes the kernel with make(tag), a float or Bf16.
template <class Make>
std::function<std::unique_ptr<Kernel>()> build_for(DType dtype, Make make) {
  return [dtype, make] { return dtype == DType::BF16 ? make(Bf16{}) : make(float{}); };
}

template <class T>
const T* input_if(bool there, const Arguments& a, std::size_t i) {
  return there ? a.in<T>(i) : nullptr;
}

std::optional<KernelOffer> batch_norm(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  auto [offer, view] = channel_offer(r, offered);
  const auto& op = r.as<BatchNorm2dOp>();
  offer.build = build_for(r.dtype(), [view = view, eps = op.epsilon(), epilogue = op.epilogue()]<class T>(T) {
    const auto run = [=](const Arguments& a) {
      batch_norm_forward<T>({.view = view,
                             .x = a.in<T>(0),
                             .residual = input_if<T>(epilogue.residual, a, 3),
                             .gamma = a.in<float>(1),
                             .beta = a.in<float>(2),
                             .eps = eps,
                             .relu = epilogue.relu,
                             .y = a.out<T>(0),
                             .mean = a.out<float>(1),
                             .inv_std = a.out<float>(2),
                             .sums = a.out<double>(3),
                             .workspace = a.scratch<std::byte>()});
    };
    return make_kernel(run, static_cast<std::size_t>(batch_norm_workspace(view)));
  });
  return offer;
}

std::optional<KernelOffer> batch_norm_normalise(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  auto [offer, view] = channel_offer(r, offered);
  const Epilogue epilogue = r.as<BatchNorm2dNormaliseOp>().epilogue();
  offer.build = build_for(r.dtype(), [view = view, epilogue]<class T>(T) {
    return make_kernel([=](const Arguments& a) {
      batch_norm_apply<T>({.view = view,
                           .x = a.in<T>(0),
                           .residual = input_if<T>(epilogue.residual, a, 5),
                           .gamma = a.in<float>(1),
                           .beta = a.in<float>(2),
                           .mean = a.in<float>(3),
                           .inv_std = a.in<float>(4),
                           .relu = epilogue.relu,
                           .y = a.out<T>(0)});
    });
  });
  return offer;
}

std::optional<KernelOffer> batch_norm_inference(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  auto [offer, view] = channel_offer(r, offered);
  offer.in_place_input = 0;
  const auto& op = r.as<BatchNorm2dInferenceOp>();
  offer.build = build_for(r.dtype(), [view = view, eps = op.epsilon(), epilogue = op.epilogue()]<class T>(T) {
    return make_kernel([=](const Arguments& a) {
      batch_norm_apply<T>({.view = view,
                           .x = a.in<T>(0),
                           .residual = input_if<T>(epilogue.residual, a, 5),
                           .gamma = a.in<float>(1),
                           .beta = a.in<float>(2),
                           .mean = a.in<float>(3),
                           .variance = a.in<float>(4),
                           .eps = eps,
                           .relu = epilogue.relu,
                           .y = a.out<T>(0)});
    });
  });
  return offer;
}

std::optional<KernelOffer> batch_norm_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  auto [offer, view] = channel_offer(r, offered);
  const auto& op = r.as<BatchNorm2dGradientOp>();
  const bool relu = op.epilogue().relu, masks = op.masks(), adds = op.adds();
  offer.in_place_input = 1;
  offer.in_place_output = masks ? 3 : 0;
  offer.build = build_for(r.dtype(), [view = view, relu, masks, adds]<class T>(T) {
    const auto run = [=](const Arguments& a) {
      batch_norm_backward<T>({.view = view,
                              .x = a.in<T>(0),
                              .dy = a.in<T>(1),
                              .addend = input_if<T>(adds, a, 6),
                              .y = input_if<T>(masks, a, 5),
                              .gamma = a.in<float>(2),
                              .beta = input_if<float>(relu && !masks, a, 5),
                              .mean = a.in<float>(3),
                              .inv_std = a.in<float>(4),
                              .relu = relu,
                              .dx = a.out<T>(0),
                              .dresidual = masks ? a.out<T>(3) : nullptr,
                              .dgamma = a.out<float>(1),
                              .dbeta = a.out<float>(2),
                              .workspace = a.scratch<std::byte>()});
    };
    return make_kernel(run, static_cast<std::size_t>(batch_norm_workspace(view)));
  });
  return offer;
}

// What synchronised batch norm is cut into.
std::optional<KernelOffer> batch_norm_moments_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r.inputs[0].dtype)) return std::nullopt;
  auto [offer, view] = channel_offer(r, offered);
  offer.build = build_for(r.inputs[0].dtype, [view = view]<class T>(T) {
    const auto run = [=](const Arguments& a) {
      double* const sums = a.out<double>(0);
      batch_norm_moments<T>({.view = view, .x = a.in<T>(0), .sums = sums, .workspace = a.scratch<std::byte>()});
      sums[2 * view.channels] = static_cast<double>(view.batch * view.spatial);
    };
    return make_kernel(run, static_cast<std::size_t>(batch_norm_workspace(view)));
  });
  return offer;
}

std::optional<KernelOffer> batch_norm_sync(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  auto [offer, view] = channel_offer(r, offered);
  const auto& op = r.as<BatchNorm2dSyncOp>();
  offer.build = build_for(r.dtype(), [view = view, eps = op.epsilon(), epilogue = op.epilogue()]<class T>(T) {
    return make_kernel([=](const Arguments& a) {
      float *mean = a.out<float>(1), *inv_std = a.out<float>(2);
      generic::batch_norm_statistics(view.channels, a.in<double>(3), eps, mean, inv_std);
      batch_norm_apply<T>({.view = view,
                           .x = a.in<T>(0),
                           .residual = input_if<T>(epilogue.residual, a, 4),
                           .gamma = a.in<float>(1),
                           .beta = a.in<float>(2),
                           .mean = mean,
                           .inv_std = inv_std,
                           .relu = epilogue.relu,
                           .y = a.out<T>(0)});
    });
  });
  return offer;
}

std::optional<KernelOffer> batch_norm_gradient_sums_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r.inputs[0].dtype)) return std::nullopt;
  auto [offer, view] = channel_offer(r, offered);
  const auto& op = r.as<BatchNorm2dGradientSumsOp>();
  const bool relu = op.relu(), masks = op.masks(), adds = op.adds();
  if (masks) {
    offer.in_place_input = 1;
    offer.in_place_output = 3;
  }
  offer.build = build_for(r.inputs[0].dtype, [view = view, relu, masks, adds]<class T>(T) {
    const auto run = [=](const Arguments& a) {
      const BatchNormBackward<T> options{.view = view,
                                         .x = a.in<T>(0),
                                         .dy = a.in<T>(1),
                                         .addend = input_if<T>(adds, a, 6),
                                         .y = input_if<T>(masks, a, 5),
                                         .gamma = a.in<float>(2),
                                         .beta = input_if<float>(relu && !masks, a, 5),
                                         .mean = a.in<float>(3),
                                         .inv_std = a.in<float>(4),
                                         .relu = relu,
                                         .dresidual = masks ? a.out<T>(3) : nullptr,
                                         .dgamma = a.out<float>(1),
                                         .dbeta = a.out<float>(2),
                                         .workspace = a.scratch<std::byte>()};
      double* const sums = a.out<double>(0);
      batch_norm_gradient_sums(options, sums);
      sums[2 * view.channels] = static_cast<double>(view.batch * view.spatial);
    };
    return make_kernel(run, static_cast<std::size_t>(batch_norm_workspace(view)));
  });
  return offer;
}

std::optional<KernelOffer> batch_norm_gradient_apply_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r)) return std::nullopt;
  auto [offer, view] = channel_offer(r, offered);
  offer.in_place_input = 1;
  offer.build = build_for(r.dtype(), [view = view, relu = r.inputs.size() > 6]<class T>(T) {
    return make_kernel([=](const Arguments& a) {
      const BatchNormBackward<T> options{.view = view,
                                         .x = a.in<T>(0),
                                         .dy = a.in<T>(1),
                                         .gamma = a.in<float>(2),
                                         .beta = input_if<float>(relu, a, 6),
                                         .mean = a.in<float>(3),
                                         .inv_std = a.in<float>(4),
                                         .relu = relu,
                                         .dx = a.out<T>(0)};
      const double* const sums = a.in<double>(5);
      batch_norm_gradient_apply(options, sums, std::max(sums[2 * view.channels], 1.0));
    });
  });
  return offer;
}

// run(n, arguments, tag) on all elements in the layout that is offered, in place of that input if it may be.
template <class Run>
KernelOffer elementwise_kernel(const KernelRequest& r, std::span<const Layout> offered, int in_place_input, Run run) {
  KernelOffer offer = elementwise_offer(r, offered);
  offer.in_place_input = in_place_input;
  offer.build = build_for(r.dtype(), [run, n = offer.outputs[0].storage_elements(r.outputs[0].shape)]<class T>(T tag) {
    return make_kernel([=](const Arguments& a) { run(n, a, tag); });
  });
  return offer;
}

std::optional<KernelOffer> relu_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r) || r.as<UnaryOp>().kind() != Unary::Relu) return std::nullopt;
  return elementwise_kernel(r, offered, 0,
                            []<class T>(std::int64_t n, const Arguments& a, T) { relu(n, a.in<T>(0), a.out<T>(0)); });
}

std::optional<KernelOffer> relu_gradient_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r) || r.as<UnaryGradientOp>().kind() != Unary::Relu) return std::nullopt;
  return elementwise_kernel(r, offered, 1, []<class T>(std::int64_t n, const Arguments& a, T) {
    relu_backward(n, a.in<T>(0), a.in<T>(1), a.out<T>(0));
  });
}

std::optional<KernelOffer> add_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r) || r.as<BinaryOp>().kind() != Binary::Add) return std::nullopt;
  return elementwise_kernel(r, offered, 0, []<class T>(std::int64_t n, const Arguments& a, T) {
    add(n, a.in<T>(0), a.in<T>(1), a.out<T>(0));
  });
}

std::optional<KernelOffer> max_pool(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r) || r.outputs[1].dtype != DType::U8) return std::nullopt;
  generic::PoolGeometry g = generic::pool_geometry(r.as<Pool2dOp>().options(), r.inputs[0].shape);
  g.block = generic::known_block(r.inputs[0].shape, offered[0]);
  if (!supports_max_pool_forward(g)) return std::nullopt;
  KernelOffer offer = generic::plain_offer(r);
  offer.inputs[0] = Layout::channels_blocked(r.inputs[0].shape, g.block);
  std::ranges::fill(offer.outputs, Layout::channels_blocked(r.outputs[0].shape, g.block));
  offer.build = build_for(r.dtype(), [g]<class T>(T) {
    return make_kernel(
        [g](const Arguments& a) { max_pool_forward(g, a.in<T>(0), a.out<T>(0), a.out<std::uint8_t>(1)); });
  });
  return offer;
}

std::optional<KernelOffer> max_pool_gradient(const KernelRequest& r, std::span<const Layout> offered) {
  if (!supported(r) || r.inputs[1].dtype != DType::U8) return std::nullopt;
  generic::PoolGeometry g = generic::pool_geometry(r.as<Pool2dGradientOp>().options(), r.outputs[0].shape);
  g.block = generic::known_block(r.inputs[1].shape, offered[1]);
  if (!supports_max_pool_backward(g)) return std::nullopt;
  KernelOffer offer = generic::plain_offer(r);
  std::ranges::fill(offer.inputs, Layout::channels_blocked(r.inputs[1].shape, g.block));
  offer.outputs[0] = Layout::channels_blocked(r.outputs[0].shape, g.block);
  offer.build = build_for(r.dtype(), [g]<class T>(T) {
    return make_kernel(
        [g](const Arguments& a) { max_pool_backward(g, a.in<T>(0), a.in<std::uint8_t>(1), a.out<T>(0)); });
  });
  return offer;
}

std::optional<KernelOffer> convolution(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<Conv2dOp>();
  const auto g = generic::conv2d_geometry(op.options(), r.inputs[0].shape, r.inputs[1].shape);
  if (r.dtype() != DType::F32 || op.epilogue().residual || !direct_forward_wins(g)) return std::nullopt;
  KernelOffer offer = generic::plain_offer(r);
  offer.build = [g, relu = op.epilogue().relu, bias = op.has_bias(r.inputs.size())] {
    auto kernel = std::make_shared<const DirectConvolution>(g, DirectConvolution::Direction::Forward);
    const auto run = [=](const Arguments& a) {
      kernel->run({.x = a.in<float>(0),
                   .w = a.in<float>(1),
                   .bias = input_if<float>(bias, a, 2),
                   .relu = relu,
                   .y = a.out<float>(0),
                   .workspace = a.scratch<float>()});
    };
    return make_kernel(run, kernel->workspace_bytes());
  };
  return offer;
}

std::optional<KernelOffer> convolution_data(const KernelRequest& r, std::span<const Layout>) {
  const auto g =
      generic::conv2d_geometry(r.as<Conv2dBackwardDataOp>().options(), r.outputs[0].shape, r.inputs[1].shape);
  if (r.dtype() != DType::F32 || !direct_backward_data_wins(g)) return std::nullopt;
  KernelOffer offer = generic::plain_offer(r);
  offer.build = [g] {
    auto kernel = std::make_shared<const DirectConvolution>(g, DirectConvolution::Direction::BackwardData);
    const auto run = [=](const Arguments& a) {
      kernel->run({.x = a.in<float>(0), .w = a.in<float>(1), .y = a.out<float>(0), .workspace = a.scratch<float>()});
    };
    return make_kernel(run, kernel->workspace_bytes());
  };
  return offer;
}

std::optional<KernelOffer> convolution_weights(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<Conv2dBackwardWeightsOp>();
  const auto g = generic::conv2d_geometry(op.options(), r.inputs[0].shape, r.outputs[0].shape);
  if (r.has_bf16() || r.dtype() != DType::F32 || !direct_backward_weights_wins(g)) return std::nullopt;
  KernelOffer offer = generic::plain_offer(r);
  offer.build = [g, bias = r.outputs.size() > 1] {
    auto kernel = std::make_shared<const DirectWeightGradient>(g);
    const auto run = [=](const Arguments& a) {
      kernel->run({.x = a.in<float>(0),
                   .dy = a.in<float>(1),
                   .dw = a.out<float>(0),
                   .dbias = bias ? a.out<float>(1) : nullptr,
                   .workspace = a.scratch<float>()});
    };
    return make_kernel(run, kernel->workspace_bytes());
  };
  return offer;
}

std::optional<KernelOffer> cast_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  KernelOffer offer = generic::plain_offer(r);
  offer.inputs[0] = offer.outputs[0] = offered[0];
  const std::int64_t n = offered[0].storage_elements(r.inputs[0].shape);
  offer.build = [n, narrows = r.dtype() == DType::BF16] {
    return narrows ? make_kernel([n](const Arguments& a) { convert(n, a.in<float>(0), a.out<Bf16>(0)); })
                   : make_kernel([n](const Arguments& a) { convert(n, a.in<Bf16>(0), a.out<float>(0)); });
  };
  return offer;
}

template <class Factory>
void add_vector(KernelRegistry& registry, std::string op, Factory factory) {
  registry.add("vector", std::move(op), [factory](const KernelRequest& request, std::span<const Layout> offered) {
    auto offer = factory(request, offered);
    if (offer) offer->implementation = fmt::format("vector:{}", vector_level());
    return offer;
  });
}

}  // namespace
}  // namespace lockstep::vector

namespace lockstep {

void register_vector_kernels(KernelRegistry& registry) {
  using namespace vector;
  add_vector(registry, "batch_norm2d", batch_norm);
  add_vector(registry, "batch_norm2d_normalise", batch_norm_normalise);
  add_vector(registry, "batch_norm2d_inference", batch_norm_inference);
  add_vector(registry, "batch_norm2d_gradient", batch_norm_gradient);
  add_vector(registry, "batch_norm2d_moments", batch_norm_moments_kernel);
  add_vector(registry, "batch_norm2d_sync", batch_norm_sync);
  add_vector(registry, "batch_norm2d_gradient_sums", batch_norm_gradient_sums_kernel);
  add_vector(registry, "batch_norm2d_gradient_apply", batch_norm_gradient_apply_kernel);
  add_vector(registry, "unary", relu_kernel);
  add_vector(registry, "unary_gradient", relu_gradient_kernel);
  add_vector(registry, "binary", add_kernel);
  add_vector(registry, "conv2d", convolution);
  add_vector(registry, "conv2d_backward_data", convolution_data);
  add_vector(registry, "conv2d_backward_weights", convolution_weights);
  add_vector(registry, "max_pool2d", max_pool);
  add_vector(registry, "max_pool2d_gradient", max_pool_gradient);
  add_vector(registry, "cast", cast_kernel);
}

}  // namespace lockstep

#include "tests/parity/axis_operators.h"

#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/softmax.h"

namespace lockstep::parity {
namespace {

using nlohmann::json;

template <class M>
class NormOf final : public Norm {
 public:
  NormOf(nn::Module* parent, typename M::Config config, bool frozen) : module_(parent, "bn", std::move(config)) {
    module_.freeze_statistics(frozen);
  }
  Value operator()(Value x) const override { return module_(x); }

 private:
  nn::Child<M> module_;
};

}  // namespace

Value apply_axis_operator(const json& request, const std::function<Value(const std::string&)>& operand) {
  const std::string op = request.at("op");
  const Value x = operand("x");
  const Axes axes(request.value("axes", std::vector<int>{}));
  const bool keep = request.value("keep", false);
  if (op == "sum") return sum(x, axes, keep);
  if (op == "mean") return mean(x, axes, keep);
  if (op == "amax") return amax(x, axes, keep);
  if (op == "amin") return amin(x, axes, keep);
  if (op == "logsumexp") return logsumexp(x, axes, keep);
  if (op == "variance") return variance(x, axes, request.value("correction", 1.0), keep);
  if (op == "softmax") return softmax(x, request.at("axis").get<int>());
  if (op == "log_softmax") return log_softmax(x, request.at("axis").get<int>());
  if (op == "matmul") {
    return matmul(x, operand("other"), request.value("transpose_a", false), request.value("transpose_b", false));
  }
  return {};
}

std::unique_ptr<Norm> make_norm(nn::Module* parent, const json& request, const Shape& shape) {
  const std::string op = request.at("op");
  const double epsilon = request.value("epsilon", 1e-5);
  const bool frozen = request.value("frozen", false), affine = request.value("affine", true);
  if (op == "batch_norm2d") {
    const nn::BatchNormConfig config{
        .channels = shape[1], .epsilon = epsilon, .momentum = request.value("norm_momentum", 0.1)};
    if (shape.rank() == 5) return std::make_unique<NormOf<nn::BatchNorm3d>>(parent, config, frozen);
    if (shape.rank() == 4) return std::make_unique<NormOf<nn::BatchNorm2d>>(parent, config, frozen);
    return std::make_unique<NormOf<nn::BatchNorm1d>>(parent, config, frozen);
  }
  if (op == "layer_norm" || op == "rms_norm") {
    const Shape rows(request.at("shape").get<std::vector<std::int64_t>>());
    if (op == "rms_norm") {
      const nn::RMSNormConfig config{.shape = rows, .elementwise_affine = affine};
      return std::make_unique<NormOf<nn::RMSNorm>>(parent, config, frozen);
    }
    const nn::LayerNormConfig config{.shape = rows, .epsilon = epsilon, .elementwise_affine = affine};
    return std::make_unique<NormOf<nn::LayerNorm>>(parent, config, frozen);
  }
  if (op == "group_norm") {
    const nn::GroupNormConfig config{
        .groups = request.at("groups").get<std::int64_t>(), .channels = shape[1], .epsilon = epsilon, .affine = affine};
    return std::make_unique<NormOf<nn::GroupNorm>>(parent, config, frozen);
  }
  if (op == "instance_norm") {
    const nn::InstanceNormConfig config{
        .channels = shape[1], .epsilon = epsilon, .affine = request.value("affine", false)};
    if (shape.rank() == 3) return std::make_unique<NormOf<nn::InstanceNorm1d>>(parent, config, frozen);
    if (shape.rank() == 4) return std::make_unique<NormOf<nn::InstanceNorm2d>>(parent, config, frozen);
    return std::make_unique<NormOf<nn::InstanceNorm3d>>(parent, config, frozen);
  }
  return nullptr;
}

}  // namespace lockstep::parity

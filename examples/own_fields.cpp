// A program that trains on data that is no images, with a loss and metrics of its own choice, and has everything that
// the shipped programs have: checkpoints, resuming, logs, metrics, the watchdog. The field is a wave; the network
// learns its value from place and time, and from the equation that waves obey.
//
//   mpirun -n 2 own_fields --epochs 20 --keep last:3,best:rmse
#include <cmath>

#include "lockstep/core/random.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/losses/regression.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/gradient.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/slice.h"
#include "lockstep/train/run/program.h"

using namespace lockstep;

namespace {

// (x, t) -> sin(3 x - 2 t), at points that the sample's number chooses; t from `from` to `from` + 1.
std::unique_ptr<data::Dataset> waves(std::int64_t samples, std::uint64_t seed, double from) {
  return std::make_unique<data::FunctionDataset>(
      data::FunctionDatasetOptions{.size = samples,
                                   .fields = {{"point", {2}, DType::F32}, {"height", {1}, DType::F32}},
                                   .description = "waves",
                                   .read = [seed, from](std::int64_t index, std::span<std::byte* const> out) {
                                     RandomStream random(seed, static_cast<std::uint64_t>(index));
                                     auto* point = reinterpret_cast<float*>(out[0]);
                                     const double x = random.uniform(0, 1), t = random.uniform(from, from + 1);
                                     point[0] = static_cast<float>(x);
                                     point[1] = static_cast<float>(t);
                                     *reinterpret_cast<float*>(out[1]) = static_cast<float>(std::sin(3 * x - 2 * t));
                                   }});
}

data::RunData open_waves(const data::DatasetOptions& options) {
  data::RunData data{.train = waves(4096, mix(options.seed, 1), 0), .eval = waves(512, mix(options.seed, 2), 0)};
  data.more_eval["later"] = waves(512, mix(options.seed, 3), 1);  // times that are not in the training set
  return data;
}

// The share of samples whose error is below a tenth: a metric is f64 sums, and what follows from them.
Metric close(Value prediction, Value target) {
  const Value error = lockstep::abs(cast(prediction, DType::F64) - cast(target, DType::F64));
  Metric metric =
      metrics::mean_of("close", sum(gate(0.1 - error, fill(error.graph(), error.type(), 1))), Better::Higher);
  metric.rule.form = MetricForm::Percent;
  return metric;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<data::DatasetEntry> own{{.name = "waves", .description = "made here", .open_all = open_waves}};
  train::Program program("own_fields", "Learns a wave.",
                         {.dataset = {.name = "waves"}, .epochs = 20, .batch_size = 64, .rate = {.peak = 0.1}}, own);
  nn::Sequential network;
  network.append<nn::Linear>(nn::LinearConfig{.in = 2, .out = 64}).append(lockstep::tanh);
  network.append<nn::Linear>(nn::LinearConfig{.in = 64, .out = 64}).append(lockstep::tanh);
  network.append<nn::Linear>(nn::LinearConfig{.in = 64, .out = 1});
  double error = 1;
  const int status = program.run(argc, argv, [&](train::Session& session) {
    train::Trainer& trainer = session.build(network, [&](const plan::Inputs& in) {
      const Value height = network(in["point"]), target = in["height"];
      const Value slope = gradient(sum(height), in["point"]);
      const Value residual = 2.0 * select(slope, 1, 0) + 3.0 * select(slope, 1, 1);  // 2 dh/dx + 3 dh/dt = 0
      return plan::Traced{
          .losses = {{"data", mean_squared_error(height, target)}, {"physics", mean(square(residual)), 0.01}},
          .metrics = {metrics::root_mean_squared_error(height, target), close(height, target)},
          .prediction = height};
    });
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) session.report(trainer.step(batch, session.learning_rate()));
      session.finish_epoch();
    }
    error = session.evaluate().metric("rmse").value_or(1);
  });
  return status != 0 ? status : error < 0.2 ? 0 : 3;
}

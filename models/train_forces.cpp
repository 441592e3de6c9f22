// Trains a potential on energies and forces of clusters of atoms: the network computes an energy, and forces are minus
// its derivative by the positions, so the loss contains a gradient, which training differentiates once more.
//
// The energy is a sum over atoms (Behler and Parrinello, "Generalized neural-network representation of high-dimensional
// potential-energy surfaces", 2007, with radial functions alone): an atom sees sums over its neighbours of
// Gaussians of the distance, and a perceptron that all atoms share makes an energy of these sums. So it stays the same
// when the cluster is moved, turned or reflected, or when atoms change places.
#include <cmath>
#include <numbers>

#include "data/datasets/catalogue.h"
#include "lockstep/core/error.h"
#include "lockstep/losses/regression.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/gradient.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/train/run/program.h"

using namespace lockstep;

namespace {

struct PotentialConfig {
  std::int64_t atoms = 0;
  std::int64_t width = 64;   // features of the perceptron's layers
  std::int64_t radial = 32;  // Gaussians, from `nearest` to `cutoff`
  double nearest = 0.7;      // the smallest distance of two atoms
  double cutoff = 4;         // the distance from which on atoms do not see each other
};

// (1, ...): numbers that stay as they are.
Parameter constant(std::vector<std::int64_t> shape, const std::function<double(std::size_t)>& value) {
  const auto fill = [value](const Shape&, std::span<double> values, RandomStream&) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(i);
  };
  return {.shape = Shape(std::move(shape)), .initialize = fill, .role = Role::Buffer, .trainable = false};
}

class Potential final : public nn::Module {
 public:
  explicit Potential(const PotentialConfig& c)
      : config_(checked(c)),
        // 1 for an atom beside itself, whose distance 0 has no derivative.
        self_(add("self", constant({1, c.atoms, c.atoms},
                                   [n = static_cast<std::size_t>(c.atoms)](std::size_t i) { return i / n == i % n; }))),
        centres_(
            add("centres", constant({1, 1, 1, c.radial},
                                    [c](std::size_t i) { return c.nearest + static_cast<double>(i) * spacing(c); }))),
        linear1_(this, "linear1", {.in = c.radial, .out = c.width}),
        linear2_(this, "linear2", {.in = c.width, .out = c.width}),
        linear3_(this, "linear3", {.in = c.width, .out = 1}) {}

  // (samples, atoms, 3) -> (samples)
  Value operator()(Value position) const {
    const Value self = position.graph().parameter(self_), centres = position.graph().parameter(centres_);
    const Value between = unsqueeze(position, 2) - unsqueeze(position, 1);  // (samples, atoms, atoms, 3)
    const Value distance = sqrt(sum(square(between), {3}) + self);
    const Value sees = (0.5 * cos(clamp(distance, 0, config_.cutoff) * (std::numbers::pi / config_.cutoff)) + 0.5) *
                       (1.0 - self);  // smooth, 0 from the cutoff on
    const Value near = square((unsqueeze(distance, 3) - centres) * (1 / spacing(config_)));
    const Value seen = sum(exp(near * -0.5) * unsqueeze(sees, 3), {2});  // (samples, atoms, radial)
    const Value energies = linear3_(lockstep::tanh(linear2_(lockstep::tanh(linear1_(seen)))));
    return sum(energies, {1, 2});
  }

 private:
  static const PotentialConfig& checked(const PotentialConfig& c) {
    check(c.width >= 1 && c.radial >= 2 && c.cutoff > c.nearest, "forces",
          "--width is {}, --radial {} and --cutoff {}, expected at least 1 and 2, and more than {}", c.width, c.radial,
          c.cutoff, c.nearest);
    return c;
  }
  static double spacing(const PotentialConfig& c) { return (c.cutoff - c.nearest) / static_cast<double>(c.radial - 1); }

  PotentialConfig config_;
  Parameter& self_;
  Parameter& centres_;
  nn::Child<nn::Linear> linear1_, linear2_, linear3_;
};

}  // namespace

int main(int argc, char** argv) {
  train::Program program("train_forces", "Trains a potential on energies and forces of clusters of atoms.",
                         {.dataset = {.name = "clusters",
                                      .fields = {.inputs = "positions",
                                                 .targets = "energies,forces",
                                                 .normalise = data::FieldScaling::None}},
                          .epochs = 50,
                          .batch_size = 16,
                          .optimizer = {.rule = optim::Rule::Adam},
                          .rate = {.peak = 2e-3, .warmup_epochs = 1}},
                         datasets::force_catalogue());
  PotentialConfig config;
  double energy_weight = 1;
  program.option("width", config.width, "features of the layers of the network");
  program.option("radial", config.radial, "Gaussians of the distance that an atom sees");
  program.option("cutoff", config.cutoff, "distance from which on atoms do not see each other");
  program.option("energy-weight", energy_weight,
                 "weight of the energies in the loss: squared error per atom, beside that of the forces' components");
  return program.run(argc, argv, [&](train::Session& session) {
    config.atoms = session.data().shape_of("position")[0];
    const Potential potential(config);
    const double per_atom = 1 / static_cast<double>(config.atoms);
    train::Trainer& trainer = session.build(potential, [&](const plan::Inputs& in) {
      const Value position = in["position"], energy = potential(position);
      const Value force = -gradient(energy, position);
      const Value mine = energy * per_atom, target = in["energy"] * per_atom;
      return plan::Traced{
          .loss = mean_squared_error(force, in["force"]).mean + energy_weight * mean_squared_error(mine, target).mean,
          .metrics = {metrics::mean_absolute_error(force, in["force"], "force_mae"),
                      metrics::r_squared(force, in["force"], "force_r2"),
                      metrics::mean_absolute_error(mine, target, "energy_mae")},
          .prediction = force};
    });
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) {
        session.report(trainer.step(batch, session.learning_rate()));  // forward, backward, reduction, update
      }
      session.finish_epoch();  // evaluation, checkpoint
    }
  });
}

// Variational autoencoder of fields over 1 to 3 spatial axes (Kingma and Welling, "Auto-encoding variational Bayes",
// 2013): the convolutional autoencoder, whose smallest level is a normal distribution of a few independent numbers. In
// training these are drawn by (seed, step, sample), with the gradient through their mean and deviation (section 2.4 of
// the paper); at evaluation they are the mean. Layers: those of Autoencoder, "mean", "log_variance", "expand".
#pragma once

#include "models/zoo/field_cnn.h"

namespace lockstep::models {

struct VaeConfig {
  AutoencoderConfig coder{};
  Shape sizes{};             // of the fields
  std::int64_t latent = 32;  // numbers
  // Of the Kullback-Leibler divergence from the standard normal distribution, which appendix B of the paper computes.
  // At 1, the mean squared error plus the penalty is, up to a factor and a constant, the negative bound on the
  // likelihood for predictions with errors of variance 1.
  double kl_weight = 1;
};

template <int Axes>
class Vae final : public Autoencoder<Axes> {
 public:
  explicit Vae(const VaeConfig& config);
  Value operator()(Value input) const override { return with_penalty(input).prediction; }
  // The penalty is kl_weight * 2 KL / (elements of a prediction), a mean over samples.
  FieldModel::Result with_penalty(Value input) const override;

 private:
  double kl_weight_;
  Shape smallest_;  // (channels, sizes) between encoder and decoder
  nn::Child<nn::Linear> mean_, log_variance_, expand_;
};

FieldModelEntry vae_entry();

}  // namespace lockstep::models

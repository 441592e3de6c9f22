// Vision Transformer (Dosovitskiy et al., "An image is worth 16x16 words", 2021): patches of an image and a class token
// through a Transformer encoder, and a linear layer on the class token. Parameters have torchvision's names and shapes:
// class_token, conv_proj, encoder.pos_embedding, encoder.layers.encoder_layer_0 (zoo/encoder_block.h), ..., encoder.ln,
// heads.head. Initial values are torchvision's, but for conv_proj, with a normal distribution in place of a truncated
// one, and heads.head, with a deviation of 0.02 in place of zeros, as DeiT has it.
// Neither class_token nor encoder.pos_embedding decays with --no-decay-norm-bias, as in DeiT's recipe.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/nn/layers.h"
#include "models/zoo/classifier.h"
#include "models/zoo/registry.h"

namespace lockstep::models {

struct VitConfig {
  Shape image{3, 224, 224};
  std::int64_t classes = 1000;
  std::int64_t patch = 16;  // pixels; it divides both sides
  std::int64_t width = 768, layers = 12, heads = 12;
  std::int64_t hidden = 0;  // inside an MLP; 0: 4 width
  double dropout = 0;
  double stochastic_depth = 0;  // of the last block; it grows linearly from 0 at the first one
};

// The sizes of ViT-Ti (192 wide, 3 heads), ViT-S (384, 6) and ViT-B (768, 12), of 12 blocks. Throws Error for another
// name than ti, s and b.
VitConfig vit_config(std::string_view size);

class Vit final : public Classifier {
 public:
  // Throws Error where patches do not divide the image.
  explicit Vit(const VitConfig& config);
  ~Vit() override;
  Value operator()(Value images) const override;

 private:
  class Encoder;
  class Heads;

  VitConfig config_;
  Parameter& class_token_;
  nn::Child<nn::Conv2d> conv_proj_;
  std::unique_ptr<nn::Child<Encoder>> encoder_;
  std::unique_ptr<nn::Child<Heads>> heads_;
};

std::vector<ModelEntry> vit_entries();

}  // namespace lockstep::models

// The erased type of the zoo: what tools, benches and programs that take any model by name call. Images (samples,
// channels, height, width), or (samples, features) for models of vectors, become logits (samples, classes).
#pragma once

#include "lockstep/nn/module.h"

namespace lockstep::models {

class Classifier : public nn::Module {
 public:
  virtual Value operator()(Value images) const = 0;
};

}  // namespace lockstep::models

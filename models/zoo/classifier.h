// The common type of the models in the zoo, for tools, benches and programs that take any model by name. A call turns
// images (samples, channels, height, width), or vectors (samples, features), into logits (samples, classes).
#pragma once

#include "lockstep/nn/module.h"

namespace lockstep::models {

class Classifier : public nn::Module {
 public:
  virtual Value operator()(Value images) const = 0;
};

}  // namespace lockstep::models

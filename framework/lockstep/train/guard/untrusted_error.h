// The error that ends a training whose values cannot be trusted.
#pragma once

#include "lockstep/comm/agreement.h"

namespace lockstep::train {

// Thrown by all ranks together when training would continue from wrong values. Programs exit with kExitUntrusted (77).
class UntrustedError : public comm::AgreedError {
 public:
  using AgreedError::AgreedError;
};

}  // namespace lockstep::train

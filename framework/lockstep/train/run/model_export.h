// Writes the model of a run that trains nothing to the file of --onnx, and an example of its input and output.
#pragma once

#include "lockstep/nn/module.h"
#include "lockstep/plan/trace.h"
#include "lockstep/train/run/run_parts.h"

namespace lockstep::train {

// Of one rank. The trainer has the weights. Throws Error for a model with ops that ONNX does not have, and where a file
// cannot be written.
void export_model(const RunParts& run, const nn::Module& module, const plan::ModelFunction& model);

}  // namespace lockstep::train

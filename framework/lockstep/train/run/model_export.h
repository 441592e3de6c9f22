// Writes the model of a run that trains nothing to the file of --onnx, and an example of its input and output.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lockstep/nn/module.h"
#include "lockstep/onnx/c/c_source.h"
#include "lockstep/plan/trace.h"
#include "lockstep/train/run/run_parts.h"

namespace lockstep::train {

// Of one rank. The trainer has the weights. Throws Error for a model with ops that ONNX does not have, and where a file
// cannot be written.
void export_model(const RunParts& run, const nn::Module& module, const plan::ModelFunction& model);

// The line of --json for the C source of a model, whose first file is `path`.
nlohmann::ordered_json result_of(const onnx::CSource& source, const std::string& path);

}  // namespace lockstep::train

// A described model as a file for inference without Lockstep.
#pragma once

#include <filesystem>

#include "bindings/c/description.h"
#include "bindings/c/inference.h"

namespace lockstep::bindings {

// Whether a path names such a file: it ends in .onnx or .c.
bool is_exported(const std::filesystem::path& path);

// Writes the network for evaluation in f32, of one sample: as ONNX (input "input", output "output"), and for a path
// that ends in .c also as C99 source beside it (onnx/c/c_source.h). Throws Error for a layer that ONNX does not have,
// and for a path beside which the model of ONNX would replace the one that is read.
void export_model(const DescribedModel& model, const Inference& inference, const std::filesystem::path& path);

}  // namespace lockstep::bindings

// Weights in Hugging Face's format safetensors: eight bytes with the length of a header, the header in JSON (name ->
// dtype, shape, data_offsets), and the elements in row-major order, little-endian. A file is taken into memory as a
// whole. Functions throw Error at site "safetensors" with the file and what is wrong in it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"

namespace lockstep::tools {

// Returns the bytes of a file with these tensors. Throws Error for two of one name, and for bf16.
std::string write_safetensors(std::span<const io::NamedTensor> tensors);

// Reads all tensors, sorted by name: F32, F64, I32, I64 and U8 as they are, F16 and BF16 as f32.
std::vector<io::NamedTensor> read_safetensors(const std::filesystem::path& path);

}  // namespace lockstep::tools

// A model's weights as a plain HDF5 state dict in torchvision's names and shapes, for exchange with PyTorch through
// h5py: one dataset per parameter at the root ("layer1.0.conv1.weight"), no prefix, no metadata. Errors name file and
// tensor.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/io/named_tensor.h"

namespace lockstep::checkpoint {

inline constexpr std::string_view kModelPrefix = "model/";  // a model's tensors in a checkpoint

// Replaces the file as a whole, as save() does, and puts the same hash into the HDF5 user block, which h5py skips.
void save_weights(const std::filesystem::path& path, std::span<const io::NamedTensor> tensors);

// Reads such a file, the model's part of a Lockstep checkpoint (both verified by their hash), or a file that h5py wrote
// (f32, f64, i32, i64, u8 in either byte order, chunked or packed as HDF5 likes). The last kind has no hash and is read
// in a child process, so a damaged one that HDF5 does not survive is an Error as well. Sorted by name.
std::vector<io::NamedTensor> load_weights(const std::filesystem::path& path);

}  // namespace lockstep::checkpoint

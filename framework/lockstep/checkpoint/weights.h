// A model's weights as a plain HDF5 state dict with torchvision's names and shapes, for exchange with PyTorch through
// h5py: one dataset per parameter at the root ("layer1.0.conv1.weight"), without prefix and metadata. Any thread may
// call the functions; they throw Error with file and tensor.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/io/named_tensor.h"
#include "lockstep/io/tensor_source.h"

namespace lockstep::checkpoint {

inline constexpr std::string_view kModelPrefix = "model/";  // begins the names of a model's tensors in a checkpoint
// The average of the weights (optim/average.h) in a checkpoint: of parameters, of running statistics, and the number of
// weights in it, which is 0 before there is an average.
inline constexpr std::string_view kAveragedParameter = "optimizer/average/", kAveragePrefix = "average/",
                                  kAverageCount = "average/count";

// Writes the tensors to `path`; like save(), it replaces the file as a whole and writes a hash into the HDF5 user
// block, which h5py skips.
void save_weights(const std::filesystem::path& path, std::span<const io::NamedTensor> tensors);

// Such a file, the model's part of a Lockstep checkpoint (both are verified by their hash), with the average of the
// weights in their place if the checkpoint has one, or a file that h5py wrote (f32, f64, i32, i64, u8 in either byte
// order, also chunked and compressed). A file of h5py has no hash and is read in child processes, so a damaged file on
// which HDF5 crashes gives an Error too. One thread at a time.
class WeightsFile {
 public:
  explicit WeightsFile(const std::filesystem::path& path);
  ~WeightsFile();
  WeightsFile(const WeightsFile&) = delete;
  WeightsFile& operator=(const WeightsFile&) = delete;

  // Returns the tensors, sorted by name, each read when it is requested: as a whole, valid until the next request, or
  // some of its rows. The source must not outlive this object.
  io::TensorSource tensors();

 private:
  struct Opened;
  std::unique_ptr<Opened> opened_;
};

// Reads all tensors of such a file into memory; returns them sorted by name.
std::vector<io::NamedTensor> load_weights(const std::filesystem::path& path);

}  // namespace lockstep::checkpoint

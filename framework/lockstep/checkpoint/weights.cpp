#include "lockstep/checkpoint/weights.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/io/envelope.h"
#include "lockstep/io/image.h"
#include "lockstep/io/isolated_read.h"
#include "lockstep/io/read_file.h"
#include "lockstep/io/sealed_file.h"

namespace lockstep::checkpoint {
namespace {

// HDF5's signature stands at 0, 512, 1024, 2048, ... (HDF5 File Format Specification, "Disk Format: Level 0A").
bool has_hdf5_signature(std::span<const std::byte> file) {
  constexpr std::array<unsigned char, 8> signature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  for (std::size_t at = 0; at + signature.size() <= file.size(); at = std::max<std::size_t>(512, at * 2)) {
    if (std::memcmp(file.data() + at, signature.data(), signature.size()) == 0) return true;
  }
  return false;
}

std::vector<NamedTensor> model_part(std::vector<NamedTensor> tensors, const std::string& file) {
  std::erase_if(tensors, [](const NamedTensor& entry) { return !entry.name.starts_with(kModelPrefix); });
  check(!tensors.empty(), "checkpoint", "{}: a checkpoint without tensors in \"{}\"", file, kModelPrefix);
  for (NamedTensor& entry : tensors) entry.name.erase(0, kModelPrefix.size());
  return tensors;
}

}  // namespace

void save_weights(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  const SealedFile file(source_of(tensors), {}, path.string());
  const Folder folder = folder_of(path);
  AtomicFile out(folder, path.filename().string(), {.bytes = file.bytes()});
  file.write(out);
  out.commit();
}

std::vector<NamedTensor> load_weights(const std::filesystem::path& path) {
  FileReader reader(path);
  std::vector<std::byte> bytes = allocate_for(reader.size(), reader.path());
  reader.read(bytes);
  const bool ours = begins_like_checkpoint(bytes);
  if (ours) {
    verify_bytes(bytes, reader.path());
  } else {
    check(has_hdf5_signature(bytes), "checkpoint", "{}: neither a Lockstep checkpoint nor an HDF5 file", reader.path());
  }
  Image image = ours ? read_image(bytes, reader.path()) : read_image_isolated(bytes, reader.path());
  return image.metadata ? model_part(std::move(image.tensors), reader.path()) : std::move(image.tensors);
}

}  // namespace lockstep::checkpoint

#include "lockstep/checkpoint/weights.h"

#include <algorithm>
#include <array>

#include "lockstep/io/isolated_read.h"
#include "lockstep/io/sealed_file.h"
#include "lockstep/io/verified_file.h"

namespace lockstep::checkpoint {
namespace {

// HDF5's signature is at offset 0, 512, 1024, 2048, ... (HDF5 File Format Specification, "Disk Format: Level 0A").
bool has_hdf5_signature(const io::FileReader& reader) {
  constexpr std::array<unsigned char, 8> kSignature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  for (std::uint64_t at = 0; at + kSignature.size() <= reader.size(); at = std::max<std::uint64_t>(512, at * 2)) {
    if (std::ranges::equal(reader.peek(at, kSignature.size()), std::as_bytes(std::span(kSignature)))) return true;
  }
  return false;
}

// Reads all tensors of a weights file, or the model's part of a checkpoint.
std::vector<io::NamedTensor> read_ours(io::FileReader& reader) {
  const io::VerifiedFile file(reader, io::read_envelope(reader));
  const io::ImageReader& image = file.image();
  const bool is_checkpoint = image.metadata().has_value();
  std::vector<io::NamedTensor> tensors;
  for (std::size_t i = 0; i < image.tensors().size(); ++i) {
    const std::string& name = image.tensors()[i].name;
    if (!is_checkpoint) {
      tensors.push_back({name, image.read(i)});
    } else if (name.starts_with(kModelPrefix)) {
      tensors.push_back({name.substr(kModelPrefix.size()), image.read(i)});
    }
  }
  check(!is_checkpoint || !tensors.empty(), "checkpoint", "{}: the checkpoint has no tensors in \"{}\"", file.path(),
        kModelPrefix);
  return tensors;
}

std::vector<io::NamedTensor> read_foreign(const io::FileReader& reader) {
  check(has_hdf5_signature(reader), "checkpoint", "{}: is neither a Lockstep checkpoint nor an HDF5 file",
        reader.path());
  const io::MappedFile mapping(reader.descriptor(), reader.size(), reader.path());
  io::Image image = io::read_image_isolated(mapping.bytes(), reader.path());
  if (!image.metadata) return std::move(image.tensors);
  std::erase_if(image.tensors, [](const io::NamedTensor& entry) { return !entry.name.starts_with(kModelPrefix); });
  check(!image.tensors.empty(), "checkpoint", "{}: the checkpoint has no tensors in \"{}\"", reader.path(),
        kModelPrefix);
  for (io::NamedTensor& entry : image.tensors) entry.name.erase(0, kModelPrefix.size());
  return std::move(image.tensors);
}

}  // namespace

void save_weights(const std::filesystem::path& path, std::span<const io::NamedTensor> tensors) {
  const io::SealedFile file(io::source_of(tensors), {}, path.string());
  const io::Folder folder = io::folder_of(path);
  io::AtomicFile out(folder, path.filename().string(), {.bytes = file.bytes()});
  file.write(out);
  out.commit();
}

std::vector<io::NamedTensor> load_weights(const std::filesystem::path& path) {
  io::FileReader reader(path);
  return io::begins_like_checkpoint(reader.peek(0, io::kEnvelopeBytes)) ? read_ours(reader) : read_foreign(reader);
}

}  // namespace lockstep::checkpoint

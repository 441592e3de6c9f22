#include "lockstep/checkpoint/weights.h"

#include <algorithm>
#include <array>
#include <map>

#include "lockstep/checkpoint/file.h"
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

// A tensor of the model's weights, and the tensor of the checkpoint that has its values.
struct WeightSource {
  std::string name;
  std::size_t index;
};

// Finds the weights among a checkpoint's tensors; `has_average` tells whether the average at an index is not empty.
template <class HasAverage>
std::vector<WeightSource> weights_of(std::span<const std::string> names, const std::string& file,
                                     const HasAverage& has_average) {
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) places[names[i]] = i;
  const auto count = places.find(kAverageCount);
  const bool averaged = count != places.end() && has_average(count->second);
  std::vector<WeightSource> weights;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].starts_with(kModelPrefix)) continue;
    const std::string name = names[i].substr(kModelPrefix.size());
    std::size_t from = i;
    for (const std::string_view prefix : {kAveragedParameter, kAveragePrefix}) {
      const auto found = places.find(std::string(prefix) + name);
      if (found == count) continue;  // a weight may be named "count", and the number of averages is none of a weight
      if (averaged && found != places.end()) from = found->second;
    }
    weights.push_back({name, from});
  }
  check(!weights.empty(), "checkpoint", "{}: the checkpoint has no tensors in \"{}\"", file, kModelPrefix);
  return weights;
}

bool is_above_zero(const Tensor& count) {
  return count.dtype() == DType::F64 && count.elements() == 1 && count.data<double>()[0] > 0;
}

// Reads the model's part of a checkpoint that has, of some tensors, the changed rows alone.
std::vector<io::NamedTensor> read_increment(io::FileReader& reader, io::Envelope envelope) {
  StoredCheckpoint file(reader, std::move(envelope), base_beside(reader.path()));
  const io::TensorSource source = file.tensors();
  std::vector<std::string> names;
  for (const io::TensorInfo& info : source.infos) names.push_back(info.name);
  std::vector<io::NamedTensor> tensors;
  for (const WeightSource& w :
       weights_of(names, file.path(), [&](std::size_t i) { return is_above_zero(source.tensor(i).tensor); }))
    tensors.push_back({w.name, source.tensor(w.index).tensor.clone()});
  return tensors;
}

// Reads all tensors of a weights file, or the model's part of a checkpoint.
std::vector<io::NamedTensor> read_ours(io::FileReader& reader) {
  io::Envelope envelope = io::read_envelope(reader);
  if (base_of(envelope.note)) return read_increment(reader, std::move(envelope));
  const io::VerifiedFile file(reader, std::move(envelope));
  const io::ImageReader& image = file.image();
  std::vector<io::NamedTensor> tensors;
  std::vector<std::string> names;
  for (const auto& info : image.tensors()) names.push_back(info.name);
  if (!image.metadata().has_value()) {
    for (std::size_t i = 0; i < names.size(); ++i) tensors.push_back({names[i], image.read(i)});
    return tensors;
  }
  for (const WeightSource& w :
       weights_of(names, file.path(), [&](std::size_t i) { return is_above_zero(image.read(i)); }))
    tensors.push_back({w.name, image.read(w.index)});
  return tensors;
}

std::vector<io::NamedTensor> read_foreign(const io::FileReader& reader) {
  check(has_hdf5_signature(reader), "checkpoint", "{}: is neither a Lockstep checkpoint nor an HDF5 file",
        reader.path());
  const io::MappedFile mapping(reader.descriptor(), reader.size(), reader.path());
  io::Image image = io::read_image_isolated(mapping.bytes(), reader.path());
  if (!image.metadata) return std::move(image.tensors);
  std::vector<io::NamedTensor> tensors;
  std::vector<std::string> names;
  for (const io::NamedTensor& entry : image.tensors) names.push_back(entry.name);
  for (const WeightSource& w :
       weights_of(names, reader.path(), [&](std::size_t i) { return is_above_zero(image.tensors[i].tensor); }))
    tensors.push_back({w.name, std::move(image.tensors[w.index].tensor)});
  return tensors;
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

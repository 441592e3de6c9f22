#include "lockstep/checkpoint/weights.h"

#include <algorithm>
#include <array>
#include <map>

#include "lockstep/checkpoint/file.h"
#include "lockstep/io/isolated_read.h"
#include "lockstep/io/sealed_file.h"
#include "lockstep/io/verified_file.h"

namespace lockstep::checkpoint {

// A tensor of the model's weights, and the tensor of the checkpoint that has its values.
struct WeightSource {
  std::string name;
  std::size_t index;
};

namespace {

// HDF5's signature is at offset 0, 512, 1024, 2048, ... (HDF5 File Format Specification, "Disk Format: Level 0A").
bool has_hdf5_signature(const io::FileReader& reader) {
  constexpr std::array<unsigned char, 8> kSignature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  for (std::uint64_t at = 0; at + kSignature.size() <= reader.size(); at = std::max<std::uint64_t>(512, at * 2)) {
    if (std::ranges::equal(reader.peek(at, kSignature.size()), std::as_bytes(std::span(kSignature)))) return true;
  }
  return false;
}

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

std::vector<WeightSource> all_of(std::span<const std::string> names) {
  std::vector<WeightSource> all;
  for (std::size_t i = 0; i < names.size(); ++i) all.push_back({names[i], i});
  return all;
}

}  // namespace

// One of increment, ours and foreign is there.
struct WeightsFile::Opened {
  std::unique_ptr<StoredCheckpoint> increment;
  std::unique_ptr<io::VerifiedFile> ours;
  std::unique_ptr<io::MappedFile> mapping;  // of a file that others wrote
  std::unique_ptr<io::IsolatedImage> foreign;
  io::TensorSource all;               // the tensors of the file; of `foreign`, infos alone
  std::vector<WeightSource> weights;  // those of them that are weights
  io::NamedTensor current;            // requested last

  explicit Opened(const std::filesystem::path& path) {
    io::FileReader reader(path);
    const bool is_checkpoint =
        io::begins_like_checkpoint(reader.peek(0, io::kEnvelopeBytes)) ? open_ours(reader) : open_foreign(reader);
    std::vector<std::string> names;
    for (const io::TensorInfo& info : all.infos) names.push_back(info.name);
    weights = is_checkpoint ? weights_of(names, reader.path(), [this](std::size_t i) { return is_above_zero(read(i)); })
                            : all_of(names);
  }

  // These return whether the file is a checkpoint, else it has weights alone.
  bool open_ours(io::FileReader& reader) {
    io::Envelope envelope = io::read_envelope(reader);
    if (base_of(envelope.note)) {  // a checkpoint that has, of some tensors, the changed rows alone
      increment = std::make_unique<StoredCheckpoint>(reader, std::move(envelope), base_beside(reader.path()));
      all = increment->tensors();
      return true;
    }
    ours = std::make_unique<io::VerifiedFile>(reader, std::move(envelope));
    all = ours->tensors();
    return ours->image().metadata().has_value();
  }
  bool open_foreign(const io::FileReader& reader) {
    check(has_hdf5_signature(reader), "checkpoint", "{}: is neither a Lockstep checkpoint nor an HDF5 file",
          reader.path());
    mapping = std::make_unique<io::MappedFile>(reader.descriptor(), reader.size(), reader.path());
    foreign = std::make_unique<io::IsolatedImage>(mapping->bytes(), reader.path());
    all.infos = foreign->tensors();
    // A checkpoint that another program has written again; a text "metadata" may stand in any file.
    const auto is_of_model = [](const io::TensorInfo& info) { return info.name.starts_with(kModelPrefix); };
    return foreign->metadata().has_value() && std::ranges::any_of(all.infos, is_of_model);
  }

  Tensor read(std::size_t i) const {
    if (foreign) return foreign->read(i);
    return ours ? ours->image().read(i) : all.tensor(i).tensor.clone();
  }
  Tensor read_rows(std::size_t i, Range rows) const {
    return foreign ? foreign->read_rows(i, rows) : all.read_rows(i, rows);
  }
};

WeightsFile::WeightsFile(const std::filesystem::path& path) : opened_(std::make_unique<Opened>(path)) {}
WeightsFile::~WeightsFile() = default;

io::TensorSource WeightsFile::tensors() {
  Opened* const file = opened_.get();
  io::TensorSource source;
  for (const WeightSource& weight : file->weights) {
    source.infos.push_back(file->all.infos[weight.index]);
    source.infos.back().name = weight.name;
  }
  source.tensor = [file](std::size_t i) -> const io::NamedTensor& {
    file->current = {};  // frees its memory before the next tensor is read
    file->current = {file->weights[i].name, file->read(file->weights[i].index)};
    return file->current;
  };
  if (file->increment) return source;  // whose large tensors are in pieces
  source.rows = [file](std::size_t i, Range rows) { return file->read_rows(file->weights[i].index, rows); };
  return source;
}

void save_weights(const std::filesystem::path& path, std::span<const io::NamedTensor> tensors) {
  const io::SealedFile file(io::source_of(tensors), {}, path.string());
  const io::Folder folder = io::folder_of(path, "weights");
  io::AtomicFile out(folder, path.filename().string(), {.bytes = file.bytes(), .site = "weights"});
  file.write(out);
  out.commit();
}

std::vector<io::NamedTensor> load_weights(const std::filesystem::path& path) {
  WeightsFile file(path);
  const io::TensorSource source = file.tensors();
  std::vector<io::NamedTensor> tensors;
  for (std::size_t i = 0; i < source.count(); ++i)
    tensors.push_back({source.infos[i].name, source.tensor(i).tensor.clone()});
  return tensors;
}

}  // namespace lockstep::checkpoint

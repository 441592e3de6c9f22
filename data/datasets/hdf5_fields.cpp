#include "data/datasets/hdf5_fields.h"

#include <algorithm>

#include "data/datasets/field_options.h"
#include "lockstep/core/error.h"
#include "lockstep/data/convert_array.h"
#include "lockstep/data/file_pattern.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kHdf5 = "hdf5";

std::string without_slashes(const std::string& path) {
  const std::size_t first = path.find_first_not_of('/');
  return first == path.npos ? std::string() : path.substr(first);
}

// "GROUP/NAME/DATASET", without doubled slashes at the joints.
std::string below(const std::string& group, const std::string& name, const std::string& dataset) {
  std::string path = without_slashes(group);
  while (path.ends_with('/')) path.pop_back();
  if (!path.empty()) path += "/";
  path += name;
  path += "/";
  path += without_slashes(dataset);
  return path;
}

// The field's shape, type and name in words.
std::string text_of(const data::Field& field) {
  return formatted("{} {} {}", field.name, field.shape.str(), name_of(field.dtype));
}

}  // namespace

Hdf5Dataset::Hdf5Dataset(Hdf5Options options) : options_(std::move(options)) {
  check(!options_.inputs.empty(), kHdf5, "there are no inputs, expected the name of at least one dataset");
  check(options_.sample_axis >= -1, kHdf5, "sample axis {}, expected an axis from 0 on, or -1 for the last one",
        options_.sample_axis);
  for (const auto* texts : {&options_.inputs, &options_.targets}) {
    for (data::FieldSelection& field : data::parse_fields(*texts)) {
      if (field.name.empty()) field.name = without_slashes(field.path);
      const bool is_taken =
          std::ranges::find(selections_, field.name, &data::FieldSelection::name) != selections_.end();
      check_name_is_free(kHdf5, is_taken, field.name, field.path);
      selections_.push_back(std::move(field));
    }
  }
  make_readers();
  for (const std::filesystem::path& path : data::expand_files(options_.files, options_.dir)) add_file(path.string());
  check(size_ > 0, kHdf5, "{} have no samples{}, expected at least one", joined(options_.files, ", "),
        options_.groups ? formatted(" (no groups in group '{}')", options_.group) : "");
  data::check_fields(kHdf5, fields_);
}

void Hdf5Dataset::make_readers() {
  check(options_.processes >= 0 && options_.processes <= 1024, kHdf5, "{} reader processes, expected 0 to 1024",
        options_.processes);
  const auto readers = static_cast<std::size_t>(std::max(options_.processes, 1));
  const std::size_t sets = selections_.size() * static_cast<std::size_t>(std::clamp(options_.open_files, 1, 8));
  const io::Hdf5ReaderOptions each{.open_files = options_.open_files,
                                   .chunk_cache = options_.cache / (readers * sets),
                                   .all_caches = options_.cache / readers,
                                   .sets_at_once = selections_.size()};
  for (std::size_t i = 0; i < readers; ++i)
    readers_.push_back(options_.processes == 0 ? io::make_hdf5_reader(each) : io::make_isolated_hdf5_reader(each));
}

std::int64_t Hdf5Dataset::axis_of(const io::Hdf5Info& info, const std::string& path, const std::string& dataset) const {
  if (options_.groups) return -1;
  const int rank = info.shape.rank();
  const std::int64_t axis = options_.sample_axis < 0 ? rank - 1 : options_.sample_axis;
  check(axis >= 0 && axis < rank, kHdf5, "{}: '{}' has shape {}, expected an axis {} that counts samples", path,
        dataset, info.shape.str(), options_.sample_axis);
  return axis;
}

Hdf5Dataset::Part Hdf5Dataset::open_part(const std::string& path, const std::string& dataset,
                                         const data::FieldSelection& selection) const {
  io::Hdf5Reader& reader = *readers_.front();
  if (const ClickBag* const bag = find_bag(options_.bags, selection.name); bag != nullptr && !options_.groups) {
    Part part{.bag = Hdf5Bag::open(reader, path, dataset, *bag)};
    check(!part.bag || (selection.axes.empty() && !selection.ellipsis && !selection.dtype), kHdf5,
          "{}: '{}' has bags of any length, expected its name without a slice and a type", path, dataset);
    if (part.bag) return part;
  }
  Part part{.info = reader.info(path, dataset)};
  part.axis = axis_of(part.info, path, dataset);
  part.ranges = data::resolve(selection, part.info.shape, part.axis, path);
  return part;
}

void Hdf5Dataset::add_file(const std::string& path) {
  File file{.path = path, .first = size_};
  if (options_.groups) {
    file.groups = readers_.front()->groups(path, options_.group);
    file.samples = static_cast<std::int64_t>(file.groups.size());
  }
  for (std::size_t f = 0; f < selections_.size(); ++f) {
    if (options_.groups && (file.groups.empty() || !files_.empty())) break;
    const std::string dataset =
        options_.groups ? below(options_.group, file.groups.front(), selections_[f].path) : selections_[f].path;
    Part part = open_part(path, dataset, selections_[f]);
    if (!options_.groups) {
      const std::int64_t samples = part.samples();
      if (f == 0) file.samples = samples;
      check(samples == file.samples, kHdf5, "{}: '{}' has {} samples, '{}' has {}; expected equal numbers", path,
            dataset, samples, selections_[0].path, file.samples);
    }
    add_field(file, f, dataset, part);
    file.parts.push_back(std::move(part));
  }
  size_ += file.samples;
  if (!options_.groups || file.samples > 0) files_.push_back(std::move(file));
}

// Takes the field from the first file, and compares those of later files.
void Hdf5Dataset::add_field(const File& file, std::size_t field, const std::string& dataset, const Part& part) {
  const data::FieldSelection& selection = selections_[field];
  const data::Field found{.name = selection.name,
                          .shape = part.bag ? Shape{part.bag->places()} : data::selected_shape(part.ranges, part.axis),
                          .dtype = part.bag ? DType::I64 : selection.dtype.value_or(part.info.dtype)};
  if (files_.empty()) {
    fields_.push_back(found);
    return;
  }
  check(found == fields_[field], kHdf5, "{}: samples of '{}' are {}, but in {} {}; expected equal ones", file.path,
        dataset, text_of(found), files_.front().path, text_of(fields_[field]));
}

std::string Hdf5Dataset::describe() const {
  std::vector<std::string> fields;
  for (const data::Field& field : fields_) fields.push_back(text_of(field));
  return formatted("HDF5: {} samples in {} file{} from {} on: {}", size_, files_.size(), files_.size() == 1 ? "" : "s",
                   files_.front().path, joined(fields, ", "));
}

const Hdf5Dataset::File& Hdf5Dataset::file_of(std::int64_t index) const {
  const auto next = std::ranges::upper_bound(files_, index, {}, &File::first);  // also skips files without samples
  return *(next - 1);
}

std::string Hdf5Dataset::locate(std::int64_t index) const {
  check_index(index);
  const File& file = file_of(index);
  const std::int64_t sample = index - file.first;
  if (options_.groups) return formatted("{}, group {}", file.path, file.groups[static_cast<std::size_t>(sample)]);
  return formatted("{}, sample {}", file.path, sample);
}

// Samples of one chunk go to one reader, whose cache then has the chunk.
io::Hdf5Reader& Hdf5Dataset::reader_for(const File& file, std::int64_t sample) const {
  std::int64_t block = sample;
  if (!options_.groups && file.parts[0].axis >= 0 && !file.parts[0].info.chunk.empty()) {
    const Part& part = file.parts[0];
    const auto axis = static_cast<std::size_t>(part.axis);
    const data::AxisRange& range = part.ranges[axis];
    block = (range.begin + sample * range.step) / std::max<std::int64_t>(part.info.chunk[axis], 1);
  }
  return *readers_[static_cast<std::size_t>(file.first + block) % readers_.size()];
}

void Hdf5Dataset::read_field(const File& file, std::int64_t sample, std::size_t field, std::byte* out) const {
  const Part& part = options_.groups ? files_.front().parts[field] : file.parts[field];
  const std::string dataset =
      options_.groups ? below(options_.group, file.groups[static_cast<std::size_t>(sample)], selections_[field].path)
                      : selections_[field].path;
  if (part.bag)
    return part.bag->read(reader_for(file, sample), file.path, sample, reinterpret_cast<std::int64_t*>(out));
  io::Hdf5Slab slab;
  for (std::size_t i = 0; i < part.ranges.size(); ++i) {
    const data::AxisRange& range = part.ranges[i];
    const bool counts = static_cast<std::int64_t>(i) == part.axis;
    slab.start.push_back(counts ? range.begin + sample * range.step : range.begin);
    slab.count.push_back(counts ? 1 : range.count);
    slab.step.push_back(counts ? 1 : range.step);
  }
  const std::size_t bytes = fields_[field].bytes();
  io::Hdf5Reader& reader = reader_for(file, sample);
  if (part.info.dtype == fields_[field].dtype) return reader.read(file.path, dataset, part.info, slab, {out, bytes});
  const std::int64_t elements = fields_[field].shape.elements();
  std::vector<std::byte> stored(static_cast<std::size_t>(elements) * size_of(part.info.dtype));
  reader.read(file.path, dataset, part.info, slab, stored);
  const std::int64_t bad = data::convert_array(part.info.dtype, stored.data(), fields_[field].dtype, out, elements);
  check(bad < 0, kHdf5, "{}: '{}', sample {}: element {} does not fit {}, expected numbers that do", file.path, dataset,
        sample, bad, name_of(fields_[field].dtype));
}

void Hdf5Dataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  const File& file = file_of(index);
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    if (fields_[field].bytes() > 0) read_field(file, index - file.first, field, out[field]);
  }
}

}  // namespace lockstep::datasets

#include "lockstep/data/records/record_writer.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/core/tensor.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kPack = "pack";
constexpr std::size_t kWriteBytes = std::size_t{4} << 20;  // collected before they are written

void append(std::vector<std::byte>& bytes, std::span<const std::byte> more) {
  const std::size_t before = bytes.size();
  bytes.resize(before + more.size());
  if (!more.empty()) std::memcpy(bytes.data() + before, more.data(), more.size());
}

std::vector<std::byte> file_header(std::uint64_t records, std::uint64_t index) {
  std::vector<std::byte> bytes;
  append(bytes, std::as_bytes(std::span(kRecordFileMagic)));
  append_u32(bytes, kRecordVersion);
  append_u32(bytes, 0);
  append_u64(bytes, records);
  append_u64(bytes, index);
  return bytes;
}

// The samples in the order in which they are packed.
std::vector<std::int64_t> pack_order(std::int64_t size, const PackOptions& options) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!options.shuffle_seed) return order;
  RandomStream random(mix(*options.shuffle_seed, hash_name("pack order")), 0);
  for (std::size_t i = order.size(); i > 1; --i)  // Fisher-Yates shuffle (Durstenfeld 1964)
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(i))]);
  return order;
}

RecordWriterOptions writer_options(const PackOptions& options, RecordLayout layout) {
  return {
      .folder = options.folder, .name = options.name, .layout = std::move(layout), .file_bytes = options.file_bytes};
}

}  // namespace

struct RecordWriter::Part {
  Part(const io::Folder& folder, std::string file_name) : name(file_name), file(folder, std::move(file_name)) {}

  // Writes what was collected.
  void flush() {
    file.write(pending);
    pending.clear();
  }

  std::string name;
  io::AtomicFile file;
  std::vector<std::byte> pending{}, index{};  // not written yet
  std::uint64_t records = 0, bytes = 0;       // bytes: written or pending
};

RecordWriter::RecordWriter(RecordWriterOptions options) : options_(std::move(options)), folder_(options_.folder) {
  const std::string& name = options_.name;
  const bool plain = !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
  check(plain, kPack, "the name of the set is '{}', expected letters, digits, '.', '_' and '-', not with '.' in front",
        name);
  check(options_.file_bytes > 0, kPack, "files of {} bytes, expected at least 1", options_.file_bytes);
  check_layout(kPack, options_.layout);
  check(!folder_.has(name + ".index"), kPack, "{} exists, expected a new set: remove it, or choose another name",
        (folder_.path() / (name + ".index")).string());
}

RecordWriter::~RecordWriter() = default;

void RecordWriter::begin_part() {
  part_ = std::make_unique<Part>(folder_, formatted("{}-{:05}.records", options_.name, files_.size()));
  part_->pending = file_header(0, 0);  // replaced at the end
  part_->bytes = part_->pending.size();
}

void RecordWriter::end_part() {
  const std::vector<std::byte> header = file_header(part_->records, part_->bytes);
  std::vector<std::byte> hashed = header;
  append(hashed, part_->index);
  append(part_->pending, part_->index);
  part_->flush();
  part_->file.overwrite(header);
  part_->file.commit();
  files_.push_back({.name = part_->name,
                    .records = part_->records,
                    .bytes = part_->bytes + part_->index.size(),
                    .index_hash = XXH3_64bits(hashed.data(), hashed.size())});
  part_.reset();
}

void RecordWriter::add(std::span<const std::byte> record) {
  const std::size_t fixed = options_.layout.fixed_bytes();
  const bool fits = options_.layout.image_file < 0 ? record.size() == fixed : record.size() >= fixed;
  check(fits, kPack, "record {} has {} bytes, expected {}{}", records_, record.size(),
        options_.layout.image_file < 0 ? "" : "at least ", fixed);
  if (!part_) begin_part();
  append(part_->pending, record);
  part_->bytes += record.size();
  append_u64(part_->index, part_->bytes);
  append_u64(part_->index, XXH3_64bits(record.data(), record.size()));
  ++part_->records;
  ++records_;
  if (part_->pending.size() >= kWriteBytes) part_->flush();
  if (part_->bytes >= options_.file_bytes) end_part();
}

void RecordWriter::finish() {
  if (part_) end_part();
  io::replace_file(folder_, options_.name + ".index", encode_record_set({.layout = options_.layout, .files = files_}),
                   kPack);
}

std::int64_t pack_dataset(const Dataset& dataset, const PackOptions& options) {
  RecordWriter writer(writer_options(options, {.description = dataset.describe(),
                                               .fields = dataset.fields(),
                                               .classes = dataset.classes(),
                                               .class_names = {}}));
  // Readers expect each field at an address that suits its type, which it need not have in a record.
  std::vector<Tensor> sample;
  std::vector<std::byte*> out;
  for (const Field& field : dataset.fields()) out.push_back(sample.emplace_back(field.shape, field.dtype).raw());
  std::vector<std::byte> record;
  for (const std::int64_t index : pack_order(dataset.size(), options)) {
    dataset.read(index, out);
    record.clear();
    for (const Tensor& field : sample) append(record, {field.raw(), field.bytes()});
    writer.add(record);
  }
  writer.finish();
  return writer.records();
}

std::int64_t pack_images(const ImageFiles& files, const PackOptions& options) {
  RecordWriter writer(
      writer_options(options, {.description = files.describe(),
                               .fields = {{"image", Shape{}, DType::U8}, {"label", Shape{}, DType::I32}},
                               .image_file = 0,
                               .classes = static_cast<std::int64_t>(files.class_names().size()),
                               .class_names = files.class_names()}));
  for (const std::int64_t index : pack_order(files.size(), options)) {
    ImageFile file = files.read(index);
    append(file.bytes, std::as_bytes(std::span(&file.label, 1)));
    writer.add(file.bytes);
  }
  writer.finish();
  return writer.records();
}

}  // namespace lockstep::data

#include "data/generate/generator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/io/image_write.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kGeneratorSite = "generate";
constexpr std::int64_t kBlockBytes = std::int64_t{64} << 20;  // of the samples that are computed at once

void check_options(const Generator& generator, const GenerateOptions& o) {
  check(o.samples >= 1, kGeneratorSite, "--samples is {}, expected at least 1", o.samples);
  check(o.dtype == DType::F32 || o.dtype == DType::F64, kGeneratorSite, "values of type {}, expected f32 or f64",
        name_of(o.dtype));
  std::error_code error;
  check(!std::filesystem::exists(o.output, error), kGeneratorSite,
        "--output {} exists, expected a new file; remove it first", o.output.string());
  const std::filesystem::path folder = o.output.has_parent_path() ? o.output.parent_path() : ".";
  check(std::filesystem::is_directory(folder, error), kGeneratorSite, "--output {}: there is no folder {}",
        o.output.string(), folder.string());
  for (const data::Field& field : generator.fields()) {
    std::int64_t values = 0, bytes = 0;
    check(!__builtin_mul_overflow(field.shape.elements(), o.samples, &values) &&
              !__builtin_mul_overflow(values, std::int64_t{8}, &bytes),
          kGeneratorSite, "{} samples of '{}' {} have more bytes than memory has addresses", o.samples, field.name,
          field.shape.str());
  }
}

// Puts the values of samples [first, first + count) of a field into its dataset.
template <class T>
void store(const data::Field& field, std::int64_t first, std::span<const double> values, std::span<T> dataset) {
  const std::int64_t elements = field.shape.elements();
  T* const out = dataset.data() + first * elements;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[i] = static_cast<T>(values[i]);
    check(std::isfinite(out[i]), kGeneratorSite, "sample {} has {} in '{}', expected a finite {}",
          first + static_cast<std::int64_t>(i) / elements, values[i], field.name, name_of(dtype_of<T>));
  }
}

std::vector<io::NamedTensor> compute(const Generator& generator, const GenerateOptions& o,
                                     const std::function<void(std::int64_t)>& progress) {
  const std::vector<data::Field>& fields = generator.fields();
  std::vector<io::NamedTensor> sets;
  std::int64_t largest = 1;
  for (const data::Field& field : fields) {
    sets.push_back({field.name, Tensor(field.shape.batched(o.samples), o.dtype)});
    largest = std::max(largest, field.shape.elements());
  }
  const std::int64_t block = std::clamp<std::int64_t>(kBlockBytes / 8 / largest, 1, 64);
  std::vector<std::vector<double>> values(fields.size());
  std::vector<double*> pointers(fields.size());
  for (std::int64_t first = 0; first < o.samples; first += block) {
    const std::int64_t count = std::min(block, o.samples - first);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      values[f].resize(static_cast<std::size_t>(count * fields[f].shape.elements()));
      pointers[f] = values[f].data();
    }
    generator.generate(o.seed, first, count, pointers);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (o.dtype == DType::F32) store<float>(fields[f], first, values[f], sets[f].tensor.data<float>());
      if (o.dtype == DType::F64) store<double>(fields[f], first, values[f], sets[f].tensor.data<double>());
    }
    if (progress) progress(first + count);
  }
  return sets;
}

}  // namespace

void write_samples(const Generator& generator, const GenerateOptions& options,
                   const std::function<void(std::int64_t)>& progress) {
  check_options(generator, options);
  const std::vector<io::NamedTensor> sets = compute(generator, options, progress);
  const nlohmann::json metadata{{"generator", generator.name()},
                                {"parameters", nlohmann::json::parse(generator.parameters())},
                                {"samples", options.samples},
                                {"seed", options.seed}};
  const io::ImageStream image(io::source_of(sets), {.metadata = metadata.dump()}, options.output.string());
  const io::Folder folder = io::folder_of(options.output, kGeneratorSite);
  io::AtomicFile file(folder, options.output.filename().string(),
                      {.bytes = image.bytes(), .site = std::string(kGeneratorSite)});
  image.write([&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

}  // namespace lockstep::datasets

// Random access to samples: the interface that readers of data sets implement and loaders call. A sample is a tuple of
// fields with fixed shape and dtype; image sets have "image" (U8, channels x height x width) and "label" (I32 scalar).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/core/shape.h"
#include "lockstep/data/sample_key.h"

namespace lockstep::data {

enum class Split { Train, Eval };

struct Field {
  std::string name{};
  Shape shape{};  // shape of one sample
  DType dtype = DType::F32;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
  bool operator==(const Field&) const = default;
};

// Throws Error at `site` unless there is at least one field, all names differ, and no shape has a negative dimension.
void check_fields(std::string_view site, const std::vector<Field>& fields);
// Returns the position of the field called `name`; throws Error at `site`, with the known names, if there is none.
std::size_t find_field(std::string_view site, const std::vector<Field>& fields, std::string_view name);

// A data set. The functions are const, and any number of threads may call them at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;  // number of samples
  virtual const std::vector<Field>& fields() const = 0;
  virtual std::int64_t classes() const { return 0; }  // labels are in [0, classes()); 0: no classes
  virtual std::string describe() const = 0;           // one line for a log
  // The origin of a sample, for messages: "run1.h5, sample 12".
  virtual std::string locate(std::int64_t index) const { return "sample " + std::to_string(index); }
  // The class of a sample, where the set knows it without reading the sample; -1: it does not.
  virtual std::int32_t label(std::int64_t /*index*/) const { return -1; }
  // The number of a sample in the set of which subsets and splits took it.
  virtual std::int64_t origin(std::int64_t index) const { return index; }
  // Whether read_random() makes random choices, which a copy of a sample in memory would repeat.
  virtual bool is_random() const { return false; }
  // Writes field i of sample `index` to out[i], which has fields()[i].bytes() bytes. Throws Error for an index outside
  // [0, size()), and for a sample that cannot be read.
  virtual void read(std::int64_t index, std::span<std::byte* const> out) const = 0;
  // The same, for training: a data set that makes random choices while it reads, such as a crop of which it decodes no
  // more than is needed, takes them from `key` alone. Loaders call this function; a data set that reads samples of
  // another one passes the key on. Without random choices it is read().
  virtual void read_random(std::int64_t index, const SampleKey& key, std::span<std::byte* const> out) const;

 protected:
  void check_index(std::int64_t index) const;  // throws Error for an index outside [0, size())
};

}  // namespace lockstep::data

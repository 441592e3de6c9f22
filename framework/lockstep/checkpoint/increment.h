// An increment: a checkpoint that has, of large tensors, only the rows that changed since an earlier checkpoint of the
// same run, its base, which has all rows. Of the base's tensor NAME the increment has the changed rows as
// "increment/values/NAME" and their numbers, I32 and rising, as "increment/rows/NAME"; all other tensors are complete.
// The note of the file names the base. Any thread may call the functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/io/tensor_source.h"
#include "lockstep/io/verified_file.h"

namespace lockstep::checkpoint {

inline constexpr std::string_view kRowsPrefix = "increment/rows/", kValuesPrefix = "increment/values/";

struct Base {
  std::int64_t step = 0;
  std::string hash = {};    // of the base's contents, as in its envelope
  std::int64_t number = 0;  // of the increment among those of its base, from 1
};

// Returns the note of an increment: `note`, a JSON object, and the base.
std::string note_with_base(const std::string& note, const Base& base);
// Returns the base that a note names; empty: the file is no increment.
std::optional<Base> base_of(const std::string& note);

// The tensors of an increment and its base as those of a complete checkpoint. One thread at a time.
class MergedTensors {
 public:
  // Both must outlive this object. Throws Error with the file if the increment does not fit the base.
  MergedTensors(io::VerifiedFile& file, io::VerifiedFile& base);

  // Returns the tensors, sorted by name; with `changes` also the numbers of changed rows. A tensor is valid until the
  // next one is requested. The source must not outlive this object.
  io::TensorSource tensors(bool changes);

 private:
  struct Entry {
    io::TensorInfo info;
    std::size_t index;  // in the increment; in the base if the increment has changed rows
    std::optional<std::size_t> rows = {}, values = {};  // of these, in the increment
  };
  const io::NamedTensor& read(const Entry& entry);
  void put_rows(const Entry& entry, Tensor& into) const;

  io::VerifiedFile& file_;
  io::VerifiedFile& base_;
  std::vector<Entry> entries_;
  io::NamedTensor current_;  // the tensor that was requested last
};

}  // namespace lockstep::checkpoint

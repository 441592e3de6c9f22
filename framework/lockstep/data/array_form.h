// The forms in which ArrayFile (array_file.h) writes: for that class alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/data/array_file.h"
#include "lockstep/io/atomic_file.h"

namespace lockstep::data {

inline constexpr std::string_view kArrayFileSite = "predict";

// A file that is being written.
class ArrayFile::Form {
 public:
  explicit Form(const std::filesystem::path& path)
      : path_(path),
        folder_(io::folder_of(path, "predict")),
        file_(folder_, path.filename().string(), {.site = "predict"}) {
    io::remove_abandoned(folder_);
  }
  virtual ~Form() = default;

  virtual void begin(const std::vector<Field>& arrays, std::int64_t samples, const ArrayNotes& notes) = 0;
  virtual void append(std::span<const NamedTensor> part, std::int64_t first) = 0;
  virtual void finish() {}  // after the last append()
  void commit() {
    finish();
    check(!folder_.has(path_.filename().string()), kArrayFileSite,
          "{} exists now, and did not before: it is left as it is", path_.string());
    file_.commit();
  }

 protected:
  const std::filesystem::path& path() const { return path_; }
  io::AtomicFile& file() { return file_; }

 private:
  std::filesystem::path path_;
  io::Folder folder_;
  io::AtomicFile file_;
};

std::unique_ptr<ArrayFile::Form> make_npy_form(const std::filesystem::path& path);
std::unique_ptr<ArrayFile::Form> make_npz_form(const std::filesystem::path& path);
std::unique_ptr<ArrayFile::Form> make_csv_form(const std::filesystem::path& path);

}  // namespace lockstep::data

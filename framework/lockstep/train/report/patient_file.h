// A file to which a run appends records, and that outlives a full disk: records that cannot be written wait in memory,
// with a warning, and are written without a gap when there is space again. For one process, in one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::train {

class PatientFile {
 public:
  // `unit` names one record in warnings: "line".
  PatientFile(std::string site, std::string unit) : site_(std::move(site)), unit_(std::move(unit)) {}
  PatientFile(const PatientFile&) = delete;
  PatientFile& operator=(const PatientFile&) = delete;
  ~PatientFile();  // tries once more to write the waiting records

  // Takes a file that is open for appending; `path` names it in warnings. A record that was written in part to an
  // earlier file is lost.
  void open(io::FileDescriptor file, std::filesystem::path path);
  bool is_open() const { return file_.open(); }
  int descriptor() const { return file_.get(); }
  // Has `record` written before those that wait, at the beginning of a file that open() has just taken.
  void prepend(std::string record);
  // Appends a record; after open(). While the file cannot be written, up to 8 MiB of records wait in memory; further
  // ones are dropped and counted.
  void append(std::string record);

 private:
  int write_out();

  std::string site_, unit_;
  io::FileDescriptor file_;
  std::filesystem::path path_;
  std::deque<std::string> waiting_;
  std::size_t written_ = 0, bytes_ = 0;  // of the first waiting record; of all of them
  bool failing_ = false;
  std::int64_t lost_ = 0;  // records dropped since the file cannot be written
};

}  // namespace lockstep::train

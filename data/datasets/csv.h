// Tables in CSV files as samples: one record is one sample, with the field "input" (the numbers of some columns), the
// field "target" (those of others) and the class "label" of one column. A file is read and parsed once, block by block,
// by several threads, and only the columns that are asked for stay in memory. Columns are named by the header, or by
// number from 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

struct CsvOptions {
  std::vector<std::string> files{};  // names or patterns; their records one file after the other; .gz is unpacked
  std::filesystem::path dir{};       // the folder of relative names
  // Columns of numbers. "*": all columns that no other entry names.
  std::vector<std::string> inputs{}, targets{};
  std::string label{};                 // the column with a class; empty: no classes
  std::vector<std::string> classes{};  // the texts of the classes 0, 1, ...; empty: found in the files (class_names())
  bool header = true;                  // each file's first record has the names of the columns
  char separator = ',';
  // The rule for a number that is missing, in a cell that is empty or has NA, NaN, null or another text by which
  // pandas means that; and of a class whose cell is empty or has such a text without quotes.
  std::optional<double> missing{};  // in place of a number; none: the cell is an error
  bool skip_missing = false;        // records with a missing cell are left out; with `missing`, those without a number
                                    // of a target or a class
  std::string advice{};             // the end of the error of a missing cell, as "; --missing skip ..."
  DType dtype = DType::F32;         // of numbers: F32 or F64
  int threads = 1;                  // that parse
  std::size_t block = std::size_t{32} << 20;  // bytes of text that are in memory at once, at least one record
};

// The cells that were missing in the records of a set.
struct CsvGaps {
  std::int64_t left_out = 0;  // records
  std::int64_t replaced = 0;  // numbers
  std::string first{};        // the place of the first one: "a.csv, line 7, column 2 ('width')"
};

// Immutable after construction: any thread may read.
class CsvDataset : public data::Dataset {
 public:
  // Throws Error with file, line and column for records of different lengths, cells that are no numbers or missing, and
  // quotes that do not fit; for names of columns that are not there, with those that are.
  explicit CsvDataset(CsvOptions options);

  std::int64_t size() const override { return size_; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::int64_t classes() const override { return static_cast<std::int64_t>(options_.classes.size()); }
  std::string describe() const override;
  std::int32_t label(std::int64_t index) const override {
    return labels_.empty() ? -1 : labels_[static_cast<std::size_t>(index)];
  }
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

  // The text of each class. Found in the files: all integers from 0 on in their order (up to 65535), if every text is
  // one of them (class n is then number n, also where some are missing); otherwise all texts, sorted by bytes. Give the
  // list of the training set to other sets of the same task.
  const std::vector<std::string>& class_names() const { return options_.classes; }
  const std::vector<std::string>& input_names() const { return input_names_; }  // of the columns of "input"
  const std::vector<std::string>& target_names() const { return target_names_; }
  const CsvGaps& gaps() const { return gaps_; }

 private:
  class Reader;
  void number_classes(const std::vector<std::string>& texts);

  CsvOptions options_;
  std::vector<std::string> input_names_, target_names_;
  std::vector<data::Field> fields_;
  std::vector<std::byte> inputs_, targets_;  // sample by sample
  std::vector<std::int32_t> labels_;
  std::int64_t size_ = 0;
  CsvGaps gaps_;
};

}  // namespace lockstep::datasets

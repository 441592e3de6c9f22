// Rows of text files as samples of a click model: dense numbers, ids and a label in columns. Criteo's files, ratings
// and any CSV table are such files; .gz is unpacked. All samples are in memory: 4 bytes for a dense number and a label,
// 8 for an id, and 4 for the line.
//
// An id is a whole number from 0 to 2^63 - 1, which stays; hexadecimal digits; or another text, of which it is the hash
// (FNV-1a, without its last bit). A cell that is empty, NA, N/A, NaN or null is a missing id, -1. The cell of a bag
// (data/datasets/click_bags.h) has any number of ids with separators between them, from missing ones apart.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/click_bags.h"
#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

enum class IdForm : std::uint8_t { NumberOrText, Hexadecimal };

struct ClickTableOptions {
  std::vector<std::string> files{};         // names or patterns; their records one file after the other
  std::filesystem::path dir{};              // the folder of relative names
  std::vector<std::string> dense{}, ids{};  // columns, by name or by number from 0
  std::string label{};                      // the column of the label; empty: there is none
  bool header = true;                       // each file's first record has the names of the columns
  char separator = ',';
  std::size_t columns = 0;       // of each record; 0: as many as the file's first one has
  std::vector<ClickBag> bags{};  // by the names, or numbers, of their columns
  char bag_separator = '|';
  IdForm form = IdForm::NumberOrText;
  bool texts = true;    // an id that is a text is its hash; else it is an error, as ids are rows of a table
  bool counts = false;  // a dense number is log(1 + max(x, 0)), and 0 where it is missing
  std::optional<double> positive{};  // the label is 1 from this number on, else 0; empty: it is a number from 0 to 1
  std::size_t block = std::size_t{32} << 20;  // bytes of text that are in memory at once, at least one record
};

// Criteo's display advertising files: a label, 13 counts and 26 hexadecimal ids with tabs between them, no header. With
// `labelled` false there is no label.
ClickTableOptions criteo_options(bool labelled = true);
// MovieLens' ratings.csv: userId, movieId, rating, timestamp; the label is 1 for ratings of at least `positive`.
ClickTableOptions ratings_options(double positive, bool labelled = true);

// Returns the id of a cell. Throws Error at `site` with place() for a negative number, for a text that is not
// hexadecimal where it should be, and without `texts` for any text.
std::int64_t parse_id(std::string_view cell, IdForm form, bool texts, std::string_view site,
                      const std::function<std::string()>& place);

// Fields: "dense" F32 (columns), unless there are none; "ids" I64 (columns, of which a bag takes as many as it has
// places); "label" F32 (), unless there is none.
// Immutable after construction: any thread may read.
class ClickTable : public data::Dataset {
 public:
  // Throws Error with file, line and column for records of another length, missing or wrong numbers, and labels that
  // are neither 0 nor 1 nor between, and bags with more ids than places.
  explicit ClickTable(ClickTableOptions options);

  std::int64_t size() const override { return static_cast<std::int64_t>(lines_.size()); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::string describe() const override;
  std::string locate(std::int64_t index) const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

  const std::vector<std::string>& dense_names() const { return dense_names_; }
  const std::vector<std::string>& id_names() const { return id_names_; }
  const std::vector<std::int64_t>& id_places() const { return id_places_; }  // of each field of ids: 0, or a bag's

 private:
  class Reader;
  struct File {
    std::string path;
    std::int64_t first;  // sample
  };

  ClickTableOptions options_;
  std::vector<std::string> dense_names_, id_names_;
  std::vector<std::int64_t> id_places_;
  std::vector<data::Field> fields_;
  std::vector<File> files_;
  std::vector<std::uint32_t> lines_;  // of each sample
  std::vector<float> dense_, labels_;
  std::vector<std::int64_t> ids_;
};

}  // namespace lockstep::datasets

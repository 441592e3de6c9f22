// Reads the records of a CSV file, or of one of another separator, block by block: memory for one block, whatever the
// size of the file. A byte order mark at the beginning is skipped, .gz is unpacked.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

#include "data/datasets/csv_text.h"

namespace lockstep::datasets {

// Calls `take` with the records of each block of about `block` bytes, in their order; views are valid during the call.
// Throws Error with the file and the line as split_records() does, and for a record of more than 1 GiB.
void read_csv_records(const std::filesystem::path& path, std::size_t block,
                      const std::function<void(std::span<const CsvRecord>)>& take);

}  // namespace lockstep::datasets

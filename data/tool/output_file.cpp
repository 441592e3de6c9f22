#include "data/tool/output_file.h"

namespace lockstep::datasets {

OutputFile::OutputFile(const std::filesystem::path& path)
    : folder_(io::folder_of(path, "data")), file_(folder_, path.filename().string(), {.site = "data"}) {}

void OutputFile::write(std::span<const std::uint8_t> bytes) { file_.write(std::as_bytes(bytes)); }

void OutputFile::commit() { file_.commit(); }

}  // namespace lockstep::datasets

#include "data/tool/unpack.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>
#include <span>

#include "data/tool/output_file.h"
#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

struct ArchiveEnd {
  void operator()(archive* a) const { archive_read_free(a); }
};

std::string reason(archive* a) {
  const char* text = archive_error_string(a);
  return text == nullptr ? "unknown" : text;
}

void write_member(archive* reader, const std::string& site, const std::filesystem::path& to) {
  std::filesystem::create_directories(to.parent_path());
  OutputFile file(to);
  std::vector<std::uint8_t> buffer(1 << 18);
  while (true) {
    const la_ssize_t got = archive_read_data(reader, buffer.data(), buffer.size());
    check(got >= 0, site, "{} cannot be unpacked: {}", to.filename().string(), reason(reader));
    if (got == 0) break;
    file.write(std::span<const std::uint8_t>(buffer).first(static_cast<std::size_t>(got)));
  }
  file.commit();
}

}  // namespace

void unpack(const std::filesystem::path& path, const std::vector<std::string>& members,
            const std::filesystem::path& folder) {
  const std::string site = path.string();
  const std::unique_ptr<archive, ArchiveEnd> reader(archive_read_new());
  check(reader != nullptr, site, "there is no memory to read it");
  check(archive_read_support_filter_all(reader.get()) >= ARCHIVE_WARN &&
            archive_read_support_format_tar(reader.get()) == ARCHIVE_OK &&
            archive_read_open_filename(reader.get(), site.c_str(), 1 << 18) == ARCHIVE_OK,
        site, "cannot be opened as an archive: {}", reason(reader.get()));
  std::vector<std::string> missing = members;
  archive_entry* entry = nullptr;
  int code = ARCHIVE_OK;
  while (!missing.empty() && (code = archive_read_next_header(reader.get(), &entry)) <= ARCHIVE_OK &&
         code >= ARCHIVE_WARN) {
    const char* name = archive_entry_pathname(entry);
    const auto member = name == nullptr ? missing.end() : std::ranges::find(missing, name);
    if (member == missing.end()) continue;
    check(archive_entry_filetype(entry) == AE_IFREG && archive_entry_hardlink(entry) == nullptr, site,
          "{} is not a regular file", *member);
    write_member(reader.get(), site, folder / *member);
    missing.erase(member);
  }
  check(code >= ARCHIVE_WARN, site, "not a usable archive: {}", reason(reader.get()));
  check(missing.empty(), site, "the archive lacks {}", joined(missing, ", "));
}

}  // namespace lockstep::datasets

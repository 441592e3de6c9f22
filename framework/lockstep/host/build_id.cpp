#include "lockstep/host/build_id.h"

#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "lockstep/core/format.h"

namespace lockstep::host {
namespace {

constexpr std::size_t kNoteAlignment = 4;

std::size_t padded(std::size_t bytes) { return (bytes + kNoteAlignment - 1) / kNoteAlignment * kNoteAlignment; }

// Returns the build id in a segment of ELF notes (elf(5): headers, each followed by name and content); "" if none.
std::string id_in(std::span<const std::byte> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof(header));
    const std::size_t content = sizeof(header) + padded(header.n_namesz);
    const std::size_t end = content + padded(header.n_descsz);
    if (end > notes.size()) break;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(notes.data() + sizeof(header), "GNU", 4) == 0) {
      std::string text;
      for (const std::byte b : notes.subspan(content, header.n_descsz))
        text += formatted("{:02x}", std::to_integer<int>(b));
      return text;
    }
    notes = notes.subspan(end);
  }
  return "";
}

struct Loaded {
  std::string name;  // of the file; empty: the program
  std::string id;
  bool holds_this = false;
};

int visit(dl_phdr_info* info, std::size_t, void* argument) {
  auto& all = *static_cast<std::vector<Loaded>*>(argument);
  const auto here = reinterpret_cast<std::uintptr_t>(&build_id);
  Loaded loaded;
  std::string sizes;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) {
      loaded.holds_this = loaded.holds_this || (here >= begin && here < begin + part.p_memsz);
      sizes += formatted("{:x}+", part.p_memsz);
    }
    if (part.p_type == PT_NOTE && loaded.id.empty())
      loaded.id = id_in({reinterpret_cast<const std::byte*>(begin), static_cast<std::size_t>(part.p_memsz)});
  }
  if (loaded.id.empty()) loaded.id = sizes;
  loaded.name = std::filesystem::path(info->dlpi_name == nullptr ? "" : info->dlpi_name).filename().string();
  all.push_back(std::move(loaded));
  return 0;
}

std::vector<Loaded> loaded_files() {  // the program comes first
  std::vector<Loaded> all;
  dl_iterate_phdr(visit, &all);
  return all;
}

}  // namespace

std::string build_id() {
  std::string text;
  bool first = true;
  for (const Loaded& file : loaded_files()) {
    if (std::exchange(first, false) || file.holds_this) text += (text.empty() ? "" : " ") + file.id;
  }
  return text;
}

std::vector<LibraryId> library_ids() {
  std::vector<LibraryId> libraries;
  for (Loaded& file : loaded_files()) {
    if (!file.name.empty()) libraries.push_back({std::move(file.name), std::move(file.id)});
  }
  std::ranges::sort(libraries, {}, &LibraryId::name);
  return libraries;
}

}  // namespace lockstep::host

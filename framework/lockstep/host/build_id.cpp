#include "lockstep/host/build_id.h"

#include <link.h>

#include <cstdint>
#include <cstring>
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

struct Search {
  std::uintptr_t here;  // an address in this library
  bool first = true;    // dl_iterate_phdr visits the program first
  std::string found{};
};

int visit(dl_phdr_info* info, std::size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  std::string id, sizes;
  bool holds = std::exchange(search.first, false);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) {
      holds = holds || (search.here >= begin && search.here < begin + part.p_memsz);
      sizes += formatted("{:x}+", part.p_memsz);
    }
    if (part.p_type == PT_NOTE && id.empty())
      id = id_in({reinterpret_cast<const std::byte*>(begin), static_cast<std::size_t>(part.p_memsz)});
  }
  if (holds) search.found += (search.found.empty() ? "" : " ") + (id.empty() ? sizes : id);
  return 0;
}

}  // namespace

std::string build_id() {
  Search search{.here = reinterpret_cast<std::uintptr_t>(&build_id)};
  dl_iterate_phdr(visit, &search);
  return search.found;
}

}  // namespace lockstep::host

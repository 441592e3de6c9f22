// Archives of arrays, as numpy.savez writes them: zip archives with a member NAME.npy for each array.
#include <minizip/unzip.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "data/datasets/npy.h"
#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::datasets {
namespace {

struct ZipEnd {
  void operator()(void* zip) const { unzClose(zip); }
};

class Archive {
 public:
  explicit Archive(const std::filesystem::path& path) : site_(path.string()), zip_(unzOpen64(site_.c_str())) {
    check(zip_ != nullptr, site_, "cannot be opened as a .npz, expected a complete zip archive");
  }

  // Returns the names of all members, in the order of the archive.
  std::vector<std::string> names() {
    std::vector<std::string> names;
    int code = unzGoToFirstFile(zip_.get());
    for (; code == UNZ_OK; code = unzGoToNextFile(zip_.get())) names.push_back(present_name());
    check(code == UNZ_END_OF_LIST_OF_FILE, site_, "not a usable .npz (a zip archive): minizip's error {}", code);
    return names;
  }

  // Reads member `index`, which is called `name`. Throws Error unless the member ends where its array does.
  NpyArray read(std::size_t index, const std::string& name) {
    int code = unzGoToFirstFile(zip_.get());
    for (std::size_t i = 0; code == UNZ_OK && i < index; ++i) code = unzGoToNextFile(zip_.get());
    if (code == UNZ_OK) code = unzOpenCurrentFile(zip_.get());
    check(code == UNZ_OK, site_, "{} cannot be unpacked: minizip's error {}", name, code);
    data::FileSource source(formatted("{}/{}", site_, name), [&](std::span<std::uint8_t> out) {
      const std::size_t most = std::min(out.size(), std::size_t{1} << 30);
      const int got = unzReadCurrentFile(zip_.get(), out.data(), static_cast<unsigned>(most));
      check(got >= 0, site_, "{} cannot be unpacked: minizip's error {}", name, got);
      return static_cast<std::size_t>(got);
    });
    NpyArray array = read_npy(source);
    code = unzCloseCurrentFile(zip_.get());
    check(code == UNZ_OK, site_, "{} cannot be unpacked: its checksum does not match", name);
    return array;
  }

 private:
  std::string present_name() {
    std::string name(1024, '\0');
    const int code = unzGetCurrentFileInfo64(zip_.get(), nullptr, name.data(), name.size(), nullptr, 0, nullptr, 0);
    check(code == UNZ_OK, site_, "not a usable .npz (a zip archive): minizip's error {}", code);
    name.resize(std::char_traits<char>::length(name.c_str()));
    return name;
  }

  std::string site_;
  std::unique_ptr<void, ZipEnd> zip_;
};

}  // namespace

NpyArray read_npz(const std::filesystem::path& path, const std::string& name) {
  constexpr std::size_t kMostShown = 20;
  Archive archive(path);
  std::vector<std::string> names = archive.names();
  const std::string wanted = name + ".npy";
  const auto count = std::ranges::count(names, wanted);
  check(count <= 1, path.string(), "the archive has {} entries {}, expected one: it is unknown which of them is meant",
        count, wanted);
  if (const auto at = std::ranges::find(names, wanted); at != names.end())
    return archive.read(static_cast<std::size_t>(at - names.begin()), wanted);
  const std::size_t more = names.size() > kMostShown ? names.size() - kMostShown : 0;
  names.resize(names.size() - more);
  fail(path.string(), "no array '{}', the archive has: {}{}", name, names.empty() ? "none" : joined(names, ", "),
       more > 0 ? formatted(" and {} more", more) : "");
}

std::vector<io::NamedTensor> read_npz_tensors(const std::filesystem::path& path) {
  constexpr std::string_view kSuffix = ".npy";
  Archive archive(path);
  const std::vector<std::string> names = archive.names();
  std::set<std::string> seen;
  std::vector<io::NamedTensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    check(name.size() > kSuffix.size() && name.ends_with(kSuffix), path.string(),
          "the archive has an entry '{}', expected names that end in .npy", printable(name));
    check(seen.insert(name).second, path.string(), "the archive has two entries {}, expected names that differ",
          printable(name));
    tensors.push_back({name.substr(0, name.size() - kSuffix.size()), tensor_of(archive.read(i, name))});
  }
  check(!tensors.empty(), path.string(), "the archive has no arrays, expected at least one .npy");
  return tensors;
}

}  // namespace lockstep::datasets

#include "data/datasets/image_folder.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "lockstep/core/error.h"
#include "lockstep/io/read_file.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolder = "image folder";
constexpr int kDeepest = 16;  // folders below a class: symbolic links may lead in a circle

bool is_image_name(const std::string& name) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  constexpr std::array<std::string_view, 3> kEndings{".jpg", ".jpeg", ".png"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return lower.ends_with(ending); });
}

struct FolderNames {
  std::vector<std::string> folders, files;  // sorted
};

FolderNames names_in(const fs::path& folder) {
  FolderNames names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code unknown;
    const std::string name = at->path().filename().string();
    const bool is_folder = at->is_directory(unknown);
    check(!unknown || unknown == std::errc::no_such_file_or_directory, kFolder, "{}: {}", at->path().string(),
          unknown.message());  // a link that leads nowhere is left out
    if (is_folder) {
      names.folders.push_back(name);
    } else if (is_image_name(name)) {
      names.files.push_back(name);
    }
  }
  check(!error, kFolder, "{}: cannot be listed: {}", folder.string(), error.message());
  std::ranges::sort(names.folders);
  std::ranges::sort(names.files);
  return names;
}

// Collects the folders `below` the root, and those below them, with their files.
void walk(const fs::path& root, const std::string& below, int depth,
          std::vector<std::pair<std::string, std::vector<std::string>>>& found) {
  check(depth <= kDeepest, kFolder, "{}: more than {} folders in each other; does a symbolic link lead in a circle?",
        (root / below).string(), kDeepest);
  FolderNames names = names_in(root / below);
  found.emplace_back(below, std::move(names.files));
  for (const std::string& name : names.folders)
    walk(root, below.empty() ? name : formatted("{}/{}", below, name), depth + 1, found);
}

// The files of a walk, in the order of their whole paths, as torchvision sorts.
void add_files(const fs::path& root, const std::string& below, std::vector<std::string>& files) {
  std::vector<std::pair<std::string, std::vector<std::string>>> folders;
  walk(root, below, 0, folders);
  std::ranges::sort(folders);
  for (const auto& [folder, names] : folders) {
    for (const std::string& name : names) files.push_back(folder.empty() ? name : formatted("{}/{}", folder, name));
  }
}

}  // namespace

ImageList list_image_folder(const fs::path& root) {
  ImageList list{.root = root, .classes = names_in(root).folders};
  check(!list.classes.empty(), kFolder, "{}: no folders, expected one for each class", root.string());
  for (std::size_t c = 0; c < list.classes.size(); ++c) {
    const std::size_t before = list.files.size();
    add_files(root, list.classes[c], list.files);
    check(list.files.size() > before, kFolder, "{}: no .jpg, .jpeg or .png file, expected images of this class",
          (root / list.classes[c]).string());
    list.labels.resize(list.files.size(), static_cast<std::int32_t>(c));
  }
  return list;
}

ImageList list_unlabelled_images(const fs::path& root, std::vector<std::string> classes) {
  ImageList list{.root = root, .classes = std::move(classes)};
  add_files(root, "", list.files);
  check(!list.files.empty(), kFolder, "{}: no .jpg, .jpeg or .png file, expected images", root.string());
  list.labels.resize(list.files.size(), 0);
  return list;
}

fs::path split_folder(const fs::path& root, data::Split split) {
  std::error_code error;
  check(fs::is_directory(root, error), kFolder, "{}: no such folder", root.string());
  if (!fs::is_directory(root / "train", error)) return {};
  if (split == data::Split::Train) return root / "train";
  for (const char* name : {"val", "test"}) {
    if (fs::is_directory(root / name, error)) return root / name;
  }
  fail(kFolder, "{}: there is a folder train, but neither val nor test; expected one of them for evaluation",
       root.string());
}

void check_same_classes(const ImageList& train, const ImageList& eval) {
  const auto missing = [](const ImageList& from, const ImageList& in) {
    for (const std::string& name : from.classes) {
      check(std::ranges::binary_search(in.classes, name), kFolder,
            "class '{}' is in {}, but not in {}; expected the same classes, as their order gives the labels", name,
            from.root.string(), in.root.string());
    }
  };
  missing(train, eval);
  missing(eval, train);
}

ImageFolder::ImageFolder(ImageList list) : list_(std::move(list)) {
  check(list_.files.size() == list_.labels.size(), kFolder, "{}: {} files and {} labels, expected equal numbers",
        list_.root.string(), list_.files.size(), list_.labels.size());
  for (std::size_t i = 0; i < list_.labels.size(); ++i) {
    check(list_.labels[i] >= 0 && list_.labels[i] < std::ssize(list_.classes), kFolder,
          "{}: label {} of {}, expected 0 to {}", list_.root.string(), list_.labels[i], list_.files[i],
          std::ssize(list_.classes) - 1);
  }
}

std::string ImageFolder::describe() const {
  return formatted("image folder {}: {} files, {} classes", list_.root.string(), size(), list_.classes.size());
}

data::ImageFile ImageFolder::read(std::int64_t index) const {
  const auto i = static_cast<std::size_t>(index);
  io::FileReader reader(list_.root / list_.files[i], std::string(kFolder));
  check(reader.size() <= kMostImageBytes, kFolder, "{}: {} bytes, expected an image of at most {}", reader.path(),
        reader.size(), kMostImageBytes);
  data::ImageFile file{.bytes = std::vector<std::byte>(reader.size()), .label = list_.labels[i]};
  reader.read(file.bytes);
  return file;
}

std::string ImageFolder::place(std::int64_t index) const {
  return (list_.root / list_.files[static_cast<std::size_t>(index)]).string();
}

std::unique_ptr<data::DecodedImages> open_image_folder(const fs::path& root, data::Split split,
                                                       const data::DecodeOptions& options) {
  const fs::path folder = split_folder(root, split);
  check(!folder.empty(), kFolder, "{}: no folder train, expected train/CLASS/FILE and val/CLASS/FILE", root.string());
  const bool train = split == data::Split::Train;
  ImageList list = list_image_folder(folder);
  const ImageList other = list_image_folder(split_folder(root, train ? data::Split::Eval : data::Split::Train));
  if (train) {
    check_same_classes(list, other);
  } else {
    check_same_classes(other, list);
  }
  return std::make_unique<data::DecodedImages>(std::make_unique<ImageFolder>(std::move(list)), options);
}

}  // namespace lockstep::datasets

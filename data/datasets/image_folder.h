// Image files in folders, one folder per class, as torchvision's ImageFolder reads them: ROOT/SPLIT/CLASS/FILE, or
// ROOT/CLASS/FILE where the caller divides the samples. Classes are numbered in the order of their names; samples come
// in the order of classes, folders below a class, and names, by bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/images/decoded_images.h"

namespace lockstep::datasets {

inline constexpr std::uint64_t kMostImageBytes = std::uint64_t{1} << 30;  // of a file

// The files below a folder, without their contents.
struct ImageList {
  std::filesystem::path root{};  // the folder of the classes
  std::vector<std::string> classes{};
  std::vector<std::string> files{};    // paths below `root`
  std::vector<std::int32_t> labels{};  // of the files
};

// Lists the .jpg, .jpeg and .png files (in any case) of the class folders in `root`; follows symbolic links, and leaves
// other files out. Throws Error if a folder cannot be read, if there is no class, or if a class has no such file.
ImageList list_image_folder(const std::filesystem::path& root);

// Lists all such files in `root` and in its folders, without labels (they are 0), by their whole paths. Throws Error if
// a folder cannot be read, and if there is no file.
ImageList list_unlabelled_images(const std::filesystem::path& root, std::vector<std::string> classes);

// The folder of a split: ROOT/train, or ROOT/val, else ROOT/test. Empty: ROOT has no folder "train", and its folders
// are classes. Throws Error if ROOT/train is there and both others are not.
std::filesystem::path split_folder(const std::filesystem::path& root, data::Split split);

// Throws Error, which names a class, unless both lists have the same classes.
void check_same_classes(const ImageList& train, const ImageList& eval);

// The files of a list; each is read when its sample is.
class ImageFolder : public data::ImageFiles {
 public:
  explicit ImageFolder(ImageList list);

  std::int64_t size() const override { return static_cast<std::int64_t>(list_.files.size()); }
  const std::vector<std::string>& class_names() const override { return list_.classes; }
  std::string describe() const override;
  data::ImageFile read(std::int64_t index) const override;
  std::int32_t label(std::int64_t index) const override { return list_.labels[static_cast<std::size_t>(index)]; }
  std::string place(std::int64_t index) const override;

 private:
  ImageList list_;
};

// Opens a split of ROOT/SPLIT/CLASS/FILE. Throws Error as the functions above; also unless the splits have the same
// classes.
std::unique_ptr<data::DecodedImages> open_image_folder(const std::filesystem::path& root, data::Split split,
                                                       const data::DecodeOptions& options);

}  // namespace lockstep::datasets

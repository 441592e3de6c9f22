#include "data/tool/sources.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

constexpr const char* kMnist = "https://ossci-datasets.s3.amazonaws.com/mnist/";
constexpr const char* kCifar = "https://www.cs.toronto.edu/~kriz/";
constexpr const char* kCifarTerms = "cite Krizhevsky, \"Learning multiple layers of features from tiny images\" (2009)";

std::vector<std::string> in_folder(const std::string& folder, std::vector<std::string> names) {
  for (std::string& name : names) name.insert(0, folder + "/");
  return names;
}

std::vector<Source> make_table() {
  const auto idx = [](const char* name, const char* sha256) {
    return RemoteFile{.name = name, .sha256 = sha256, .of = RemoteFile::Checksum::Content};
  };
  const auto cifar = [](const char* name, const char* dataset, RemoteFile archive) {
    return Source{.name = name,
                  .dataset = dataset,
                  .url = kCifar,
                  .folder = {},
                  .license = kCifarTerms,
                  .files = {std::move(archive)}};
  };
  return {
      {.name = "mnist",
       .dataset = "mnist",
       .url = kMnist,
       .folder = "mnist",
       .license = "CC BY-SA 3.0; LeCun, Cortes and Burges",
       .files = {idx("train-images-idx3-ubyte.gz", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
                 idx("train-labels-idx1-ubyte.gz", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
                 idx("t10k-images-idx3-ubyte.gz", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
                 idx("t10k-labels-idx1-ubyte.gz", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2")}},
      cifar("cifar10", "cifar10",
            {.name = "cifar-10-binary.tar.gz",
             .sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
             .bytes = 170052171,
             .members = in_folder("cifar-10-batches-bin",
                                  {"batches.meta.txt", "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                   "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"})}),
      cifar(
          "cifar10-python", "cifar10",
          {.name = "cifar-10-python.tar.gz",
           .sha256 = "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
           .bytes = 170498071,
           .members = in_folder("cifar-10-batches-py", {"batches.meta", "data_batch_1", "data_batch_2", "data_batch_3",
                                                        "data_batch_4", "data_batch_5", "test_batch"})}),
      cifar("cifar100", "cifar100",
            {.name = "cifar-100-binary.tar.gz",
             .sha256 = "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
             .bytes = 168513733,
             .members = in_folder("cifar-100-binary",
                                  {"coarse_label_names.txt", "fine_label_names.txt", "train.bin", "test.bin"})}),
      cifar("cifar100-python", "cifar100",
            {.name = "cifar-100-python.tar.gz",
             .sha256 = "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
             .bytes = 169001437,
             .members = in_folder("cifar-100-python", {"meta", "train", "test"})}),
  };
}

}  // namespace

std::span<const Source> sources() {
  static const std::vector<Source> table = make_table();
  return table;
}

const Source& find_source(std::string_view name) {
  const auto found = std::ranges::find(sources(), name, &Source::name);
  if (found == sources().end()) {
    std::vector<std::string> names;
    for (const Source& source : sources()) names.push_back(source.name);
    fail("fetch", "'{}' cannot be fetched, expected one of {}", name, joined(names, ", "));
  }
  return *found;
}

}  // namespace lockstep::datasets

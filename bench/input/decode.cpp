// Images per second that one process reads from a folder, decodes, crops and normalises: bench_input FOLDER. FOLDER has
// a folder for each class. bench/input/decode.py makes such a folder and runs torchvision beside this program.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "data/datasets/image_folder.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/records/record_reader.h"

namespace {

using namespace lockstep;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string folder, crop = "random";
  std::int64_t size = 224, batch = 32;
  int threads = 1;
  double seconds = 5;
  bool whole = false;
};

std::unique_ptr<data::Dataset> open(const Arguments& a) {
  const data::CropOptions crop{.crop = a.crop == "random" ? data::Crop::Random : data::Crop::Centre,
                               .height = a.size,
                               .width = a.size,
                               .shorter_side = a.size * 256 / 224};
  const data::DecodeOptions options{.crop = crop, .reduce = !a.whole};
  if (a.folder.ends_with(".index")) return data::open_records(a.folder, options);
  auto files = std::make_unique<datasets::ImageFolder>(datasets::list_image_folder(a.folder));
  return std::make_unique<data::DecodedImages>(std::move(files), options);
}

void measure(const Arguments& a) {
  const auto set = open(a);
  const data::Transforms transforms{std::make_shared<data::ImageTransform>(
      data::ImageOptions{.flip = true, .mean = {0.485F, 0.456F, 0.406F}, .stddev = {0.229F, 0.224F, 0.225F}})};
  data::Loader loader(*set, data::DistributedSampler({.size = set->size(), .global_batch = a.batch}), transforms,
                      {.threads = a.threads});
  loader.recycle(loader.next());
  const auto start = Clock::now();
  double passed = 0;
  std::int64_t images = 0;
  while (passed < a.seconds) {
    data::Batch batch = loader.next();
    images += batch.samples();
    loader.recycle(std::move(batch));
    passed = std::chrono::duration<double>(Clock::now() - start).count();
  }
  fmt::print("{:.1f}\n", static_cast<double>(images) / passed);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Images per second of one process: read, decoded, cropped, normalised");
  Arguments a;
  app.add_option("FOLDER", a.folder, "Folder of class folders, or the index of packed records")->required();
  app.add_option("--crop", a.crop, "random: RandomResizedCrop; centre: resize and centre crop")
      ->check(CLI::IsMember({"random", "centre"}));
  app.add_option("--size", a.size, "Side of the result")->check(CLI::Range(1, 4096));
  app.add_option("--batch", a.batch, "Images of a batch")->check(CLI::Range(1, 4096));
  app.add_option("--threads", a.threads, "Loader threads; 0: in the caller's thread")->check(CLI::Range(0, 256));
  app.add_option("--seconds", a.seconds, "How long")->check(CLI::Range(0.1, 3600.0));
  app.add_flag("--whole", a.whole, "Decode at full size, as torchvision does");
  CLI11_PARSE(app, argc, argv);
  try {
    measure(a);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_input: {}\n", error.what());
    return 1;
  }
  return 0;
}

// A program that trains on its own data: a catalogue with one entry, made here from a function that writes one sample.
// The images are stripes, whose direction is the class.
//
//   mpirun -n 2 own_data --epochs 2
#include <cstring>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/train/run/program.h"
#include "models/zoo/classify.h"
#include "models/zoo/registry.h"

using namespace lockstep;

namespace {

constexpr std::int64_t kSide = 28;

// Writes sample `index` of a split. It depends on its number alone, so any rank and any thread can read it.
void write_stripes(std::uint64_t seed, std::int64_t index, std::span<std::byte* const> out) {
  RandomStream random(mix(seed, hash_name("stripes")), static_cast<std::uint64_t>(index));
  const auto label = static_cast<std::int32_t>(index % 2);
  const double width = random.uniform(2, 6), shift = random.uniform(0, width);
  auto* pixels = reinterpret_cast<std::uint8_t*>(out[0]);
  for (std::int64_t y = 0; y < kSide; ++y) {
    for (std::int64_t x = 0; x < kSide; ++x) {
      const double along = (static_cast<double>(label == 0 ? x : y) + shift) / width;
      pixels[y * kSide + x] = static_cast<std::int64_t>(along) % 2 == 0 ? 255 : 0;
    }
  }
  std::memcpy(out[1], &label, sizeof label);
}

std::unique_ptr<data::Dataset> open_stripes(const data::DatasetOptions& options, data::Split split) {
  const bool training = split == data::Split::Train;
  const std::uint64_t seed = mix(options.seed, training ? 0 : 1);
  return std::make_unique<data::FunctionDataset>(data::FunctionDatasetOptions{
      .size = training ? 1024 : 256,
      .fields = {{"image", {1, kSide, kSide}, DType::U8}, {"label", Shape{}, DType::I32}},
      .classes = 2,
      .description = "stripes",
      .read = [seed](std::int64_t index, std::span<std::byte* const> out) { write_stripes(seed, index, out); }});
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<data::DatasetEntry> own{{.name = "stripes",
                                             .description = "made here",
                                             .open = open_stripes,
                                             .pixels = {.mean = {0.5f}, .stddev = {0.5f}}}};
  train::Program program("own_data", "Trains on stripes.", {.dataset = {.name = "stripes"}, .rate = {.peak = 0.05}},
                         own);
  double accuracy = 0;
  const int status = program.run(argc, argv, [&](train::Session& session) {
    const auto network = models::build_model("mnist_mlp", session.data().classes(), session.data().image_shape());
    train::Trainer& trainer = session.build(*network, models::classify(*network));
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) session.report(trainer.step(batch, session.learning_rate()));
      session.finish_epoch();
    }
    accuracy = session.evaluate().metric("accuracy").value_or(0);
  });
  return status != 0 ? status : accuracy > 0.9 ? 0 : 3;
}

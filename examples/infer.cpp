// Inference from a checkpoint of a training program: `infer RUN` reads the newest checkpoint of `train_mnist --model
// mlp
// --output RUN` and prints how many unseen digits the network classifies correctly. No MPI.
#include <algorithm>
#include <cstdio>

#include "data/datasets/catalogue.h"
#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/error.h"
#include "lockstep/data/loader.h"
#include "lockstep/infer/predictor.h"
#include "lockstep/train/run/guard_main.h"
#include "models/zoo/registry.h"

using namespace lockstep;

// Rows of `logits` whose largest element is at the row's label.
std::int64_t count_right(const Tensor& logits, const Tensor& labels) {
  const std::int64_t classes = logits.shape()[1];
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < labels.elements(); ++i) {
    const auto row =
        logits.data<float>().subspan(static_cast<std::size_t>(i * classes), static_cast<std::size_t>(classes));
    right += std::ranges::max_element(row) - row.begin() == labels.data<std::int32_t>()[static_cast<std::size_t>(i)];
  }
  return right;
}

double accuracy(const std::filesystem::path& run) {
  const auto newest = checkpoint::newest_whole(run / "checkpoints");
  check(newest.has_value(), "infer", "no whole checkpoint in {}", (run / "checkpoints").string());

  const auto network = models::build_model("mnist_mlp");
  infer::Predictor predict(*network, [&](const plan::Inputs& in) { return (*network)(in["image"]); });
  predict.load(newest->path);

  // Pixels as training saw them: normalised by the mean and deviation of the training set.
  const data::RunData digits = data::open_data(datasets::catalogue(), {.name = "digits", .seed = 1});
  const data::ImageTransform normalise({.mean = digits.images.pixels.mean, .stddev = digits.images.pixels.stddev});
  data::Loader loader(*digits.eval,
                      data::DistributedSampler({.size = digits.eval->size(), .global_batch = 300, .shuffle = false}),
                      {std::make_shared<data::ImageTransform>(normalise)});
  std::int64_t right = 0;
  for (const data::Batch& batch : loader.epoch()) right += count_right(predict(batch.at("image")), batch.at("label"));
  return static_cast<double>(right) / static_cast<double>(digits.eval->size());
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: infer RUN\n");
    return 2;
  }
  return train::guard_main([&] { std::printf("%.2f%% right\n", 100 * accuracy(argv[1])); });
}

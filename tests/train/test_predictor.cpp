#include "lockstep/infer/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "lockstep/checkpoint/weights.h"
#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/normal_noise.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "models/zoo/registry.h"
#include "tests/memory_limit.h"
#include "tests/messages.h"
#include "tests/train/streams.h"

namespace lockstep::train {
namespace {

Tensor random_tensor(Shape shape, std::uint64_t seed, DType dtype = DType::F32) {
  Tensor tensor(std::move(shape), DType::F64);
  RandomStream random(seed, 0);
  for (double& v : tensor.data<double>()) v = random.uniform() * 2 - 1;
  return tensor.to(dtype);
}

Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t count) {
  Tensor part(tensor.shape().tail().batched(count), tensor.dtype());
  const std::size_t row = tensor.bytes() / static_cast<std::size_t>(tensor.shape()[0]);
  std::copy_n(tensor.raw() + static_cast<std::size_t>(begin) * row, part.bytes(), part.raw());
  return part;
}

// Convolution, normalisation, dropout and a head on 2 x 6 x 6 images.
class Network : public nn::Module {
 public:
  Value operator()(Value x) const { return head_(dropout_(flatten(observe("features", relu(norm_(conv_(x))))))); }

 private:
  nn::Child<nn::Conv2d> conv_{this, "conv", {.in = 2, .out = 3, .kernel = 3}};
  nn::Child<nn::BatchNorm2d> norm_{this, "norm", {.channels = 3}};
  nn::Child<nn::Dropout> dropout_{this, "dropout", 0.5};
  nn::Child<nn::Linear> head_{this, "head", {.in = 48, .out = 4}};
};

infer::Predictor make(const Network& network, infer::PredictorOptions options = {}) {
  return infer::Predictor(
      network, [&network](const plan::Inputs& in) { return network(in["image"]); }, std::move(options));
}

// Fills the weights, running statistics included, with numbers.
std::vector<io::NamedTensor> some_weights(const infer::Predictor& predictor, DType dtype = DType::F64) {
  std::vector<io::NamedTensor> tensors = checkpoint::weights(predictor.parameters());
  std::uint64_t seed = 7;
  for (auto& [name, tensor] : tensors) {
    if (tensor.dtype() == DType::I64) continue;
    tensor = random_tensor(tensor.shape(), ++seed, DType::F64);
    if (name == "norm.running_var") std::ranges::for_each(tensor.data<double>(), [](double& v) { v = v * v + 0.5; });
    tensor = tensor.to(dtype);
  }
  return tensors;
}

const Tensor& find(const std::vector<io::NamedTensor>& tensors, const std::string& name) {
  return std::ranges::find(tensors, name, &io::NamedTensor::name)->tensor;
}

// The network by hand in f64, without dropout and with running statistics.
std::vector<double> reference(const std::vector<io::NamedTensor>& w, const Tensor& images) {
  const auto at = [&](const char* name) { return find(w, name).data<double>(); };
  const auto conv = at("conv.weight"), conv_bias = at("conv.bias"), head = at("head.weight"),
             head_bias = at("head.bias");
  const auto gamma = at("norm.weight"), beta = at("norm.bias"), mean = at("norm.running_mean"),
             variance = at("norm.running_var");
  const auto x = images.data<double>();
  std::vector<double> logits;
  for (std::size_t n = 0; n < static_cast<std::size_t>(images.shape()[0]); ++n) {
    std::vector<double> features;
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < 16; ++i) {
        double sum = conv_bias[c];
        for (std::size_t k = 0; k < 18; ++k) {  // input channel, filter row, filter column
          const std::size_t channel = k / 9, row = i / 4 + k % 9 / 3, column = i % 4 + k % 3;
          sum += conv[c * 18 + k] * x[((n * 2 + channel) * 6 + row) * 6 + column];
        }
        const double y = gamma[c] * (sum - mean[c]) / std::sqrt(variance[c] + 1e-5) + beta[c];
        features.push_back(std::max(0.0, y));
      }
    }
    for (std::size_t o = 0; o < 4; ++o) {
      double sum = head_bias[o];
      for (std::size_t i = 0; i < 48; ++i) sum += head[o * 48 + i] * features[i];
      logits.push_back(sum);
    }
  }
  return logits;
}

TEST(Predictor, ComputesTheLoadedModelWithRunningStatisticsAndNoDropout) {
  const Network network;
  infer::Predictor predict = make(network, {.dtype = DType::F64});
  const auto tensors = some_weights(predict);
  EXPECT_TRUE(predict.load(tensors).complete());
  const Tensor images = random_tensor({5, 2, 6, 6}, 1, DType::F64);
  const Tensor logits = predict(images);
  ASSERT_EQ(logits.shape(), (Shape{5, 4}));
  const std::vector<double> expected = reference(tensors, images);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(logits.data<double>()[i], expected[i], 1e-12) << i;
}

TEST(Predictor, SingleAndDoublePrecisionAgreeAndInputsConvert) {
  const Network network;
  infer::Predictor single = make(network), twice = make(network, {.dtype = DType::F64});
  const auto tensors = some_weights(single);
  single.load(tensors);
  twice.load(tensors);
  const Tensor images = random_tensor({3, 2, 6, 6}, 1, DType::F64);
  const Tensor a = single(images), b = twice(images.to(DType::F32));
  EXPECT_EQ(a.dtype(), DType::F32);
  EXPECT_EQ(b.dtype(), DType::F64);
  for (std::size_t i = 0; i < a.data<float>().size(); ++i)
    EXPECT_NEAR(static_cast<double>(a.data<float>()[i]), b.data<double>()[i], 1e-4);
}

TEST(Predictor, AnyBatchGivesEachSampleItsRow) {
  const Network network;
  infer::Predictor whole = make(network), parts = make(network, {.batch = 4});
  const auto tensors = some_weights(whole);
  whole.load(tensors);
  parts.load(tensors);
  const Tensor images = random_tensor({11, 2, 6, 6}, 1);
  const Tensor at_once = whole(images), in_parts = parts(images);  // 4, 4, 3
  ASSERT_EQ(in_parts.shape(), (Shape{11, 4}));
  for (std::size_t i = 0; i < 44; ++i) EXPECT_NEAR(at_once.data<float>()[i], in_parts.data<float>()[i], 1e-5f) << i;
  for (std::int64_t i = 0; i < 11; ++i) {
    const Tensor one = whole(rows(images, i, 1));
    for (std::size_t c = 0; c < 4; ++c)
      EXPECT_NEAR(one.data<float>()[c], at_once.data<float>()[static_cast<std::size_t>(i) * 4 + c], 1e-5f);
  }
}

// Random numbers of an evaluation are those of step 0 and of the sample's place in the input.
TEST(Predictor, DrawsTheSameNumbersForASampleInAnyBatch) {
  const nn::Module nothing;
  const auto noise = [](const plan::Inputs& in) { return normal_noise_like(in["image"], "noise"); };
  infer::Predictor whole(nothing, noise, {}), parts(nothing, noise, {.batch = 2});
  const Tensor image = random_tensor({5, 3}, 1);
  const Tensor at_once = whole(image), in_parts = parts(image);
  EXPECT_TRUE(std::ranges::equal(at_once.data<float>(), in_parts.data<float>()));
  EXPECT_NE(at_once.data<float>()[0], at_once.data<float>()[3]);
}

TEST(Predictor, ReadsFilesAndHoldsNoTrainingMemory) {
  const auto network = models::build_model("mnist_mlp");
  const auto folder = std::filesystem::path(testing::TempDir()) / "lockstep_predictor";
  std::filesystem::create_directories(folder);
  const auto function = [&](const plan::Inputs& in) { return (*network)(in["image"]); };
  infer::Predictor first(*network, function), second(*network, function);
  std::vector<io::NamedTensor> tensors = checkpoint::weights(first.parameters());
  for (auto& [name, tensor] : tensors) tensor = random_tensor(tensor.shape(), hash_name(name));
  first.load(tensors);
  checkpoint::save_weights(folder / "weights.h5", tensors);
  second.load(folder / "weights.h5");
  const Tensor images = random_tensor({2, 1, 28, 28}, 3);
  const Tensor a = first(images), b = second(images);
  EXPECT_TRUE(std::ranges::equal(a.data<float>(), b.data<float>()));
  EXPECT_TRUE(first.parameters().buckets().empty());
  std::filesystem::remove_all(folder);
}

TEST(Predictor, WeightsWrittenBetweenPredictionsCount) {
  const Network network;
  infer::Predictor predict = make(network);
  const Tensor images = random_tensor({2, 2, 6, 6}, 1);
  predict(images);
  predict.parameters().write("head.weight", Tensor({4, 48}, DType::F32));
  predict.parameters().write("head.bias", Tensor::from<float>({4}, std::vector<float>{1, 2, 3, 4}));
  predict.parameters().write("conv.weight", random_tensor({3, 2, 3, 3}, 9));
  predict.parameters().refresh();
  const Tensor logits = predict(images);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(logits.data<float>()[i], static_cast<float>(i % 4 + 1));
}

TEST(Predictor, TakesInputsByName) {
  struct Pair : nn::Module {
    nn::Child<nn::Linear> left{this, "left", {.in = 3, .out = 2}};
    nn::Child<nn::Linear> right{this, "right", {.in = 5, .out = 2}};
  } const pair;
  infer::Predictor predict(pair, [&](const plan::Inputs& in) { return pair.left(in["l"]) - pair.right(in["r"]); },
                           {.batch = 2});
  const Tensor a = random_tensor({3, 3}, 1), b = random_tensor({3, 5}, 2);
  const Tensor difference = predict({{"l", a}, {"r", b}});
  const Tensor wl = predict.parameters().read("left.weight"), wr = predict.parameters().read("right.weight");
  const Tensor bl = predict.parameters().read("left.bias"), br = predict.parameters().read("right.bias");
  for (std::size_t n = 0; n < 3; ++n) {
    for (std::size_t o = 0; o < 2; ++o) {
      float sum = bl.data<float>()[o] - br.data<float>()[o];
      for (std::size_t i = 0; i < 3; ++i) sum += wl.data<float>()[o * 3 + i] * a.data<float>()[n * 3 + i];
      for (std::size_t i = 0; i < 5; ++i) sum -= wr.data<float>()[o * 5 + i] * b.data<float>()[n * 5 + i];
      EXPECT_NEAR(difference.data<float>()[n * 2 + o], sum, 1e-5f);
    }
  }
}

TEST(Predictor, ObservedValuesAreReadableUnderTheirModulesName) {
  const Network network;
  infer::Predictor predict(network, [&](const plan::Inputs& in) { return observe("logits", network(in["image"])); });
  EXPECT_TRUE(has(error_of([&] { predict.observed("features"); }), "before the first prediction"));
  const Tensor logits = predict(random_tensor({2, 2, 6, 6}, 1));
  const Tensor features = predict.observed("features"), seen = predict.observed("logits");
  EXPECT_EQ(features.shape(), (Shape{2, 3, 4, 4}));
  EXPECT_TRUE(std::ranges::all_of(features.data<float>(), [](float v) { return v >= 0; }));
  EXPECT_TRUE(std::ranges::equal(seen.data<float>(), logits.data<float>()));
  EXPECT_TRUE(has(error_of([&] { predict.observed("other"); }), "'other'"));
}

TEST(Observe, NamesValuesByTheModuleThatTracesThem) {
  struct Inner : nn::Module {
    Value operator()(Value x) const { return observe("twice", 2.0 * x); }
  };
  struct Outer : nn::Module {
    nn::Child<Inner> inner{this, "inner"};
  } const outer;
  infer::Predictor predict(outer, [&](const plan::Inputs& in) { return outer.inner(in["image"]) + 1.0; });
  const Tensor y = predict(Tensor::from<float>({1, 2}, std::vector<float>{3, 4}));
  const Tensor twice = predict.observed("inner.twice");
  EXPECT_EQ(twice.data<float>()[1], 8);
  EXPECT_EQ(y.data<float>()[1], 9);
}

TEST(Predictor, SaysWhatIsWrongWithItsInputs) {
  const Network network;
  infer::Predictor predict = make(network);
  EXPECT_TRUE(has(error_of([&] { predict(Tensor({0, 2, 6, 6}, DType::F32)); }), "first dimension of samples"));
  EXPECT_TRUE(has(error_of([&] {
                    predict({{"picture", random_tensor({1, 2, 6, 6}, 1)}});
                  }),
                  "there is no input 'image'"));
  EXPECT_TRUE(has(error_of([&] { predict(random_tensor({1, 3, 6, 6}, 1)); }), "conv"));
  EXPECT_TRUE(has(error_of([&] { make(network, {.dtype = DType::I32}); }), "expected f32 or f64"));
  EXPECT_TRUE(has(error_of([&] {
                    infer::Predictor total(network, [&](const plan::Inputs& in) { return sum(network(in["image"])); },
                                           {.batch = 2});
                    total(random_tensor({3, 2, 6, 6}, 1));
                  }),
                  "one row per sample"));
}

TEST(Predictor, OnePerThreadIsIndependent) {
  const Network network;
  const Tensor images = random_tensor({6, 2, 6, 6}, 1);
  infer::Predictor reference = make(network);
  const auto tensors = some_weights(reference);
  reference.load(tensors);
  const Tensor expected = reference(images);
  std::vector<std::thread> threads;
  std::vector<int> wrong(3, 0);
  for (int& count : wrong) {
    threads.emplace_back([&] {
      infer::Predictor predict = make(network);
      predict.load(tensors);
      for (int i = 0; i < 20; ++i) count += !std::ranges::equal(predict(images).data<float>(), expected.data<float>());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(3, 0));
}

// A sparse table of 5 rows, and a dense layer behind it.
class TableNetwork : public nn::Module {
 public:
  Value operator()(Value id) const { return head_(table_(id)); }

 private:
  nn::Child<nn::Embedding> table_{this, "table", {.num_embeddings = 5, .embedding_dim = 2, .sparse = true}};
  nn::Child<nn::Linear> head_{this, "head", {.in = 2, .out = 1}};
};

class TablePredictor : public testing::Test {
 protected:
  using Pieces = std::vector<std::pair<std::string, std::int64_t>>;  // names and numbers of rows

  // Loads ones in place of the table's rows, and the head with a bias or without.
  std::string error_with(const Pieces& pieces, bool has_bias = true) {
    std::vector<io::NamedTensor> tensors;
    tensors.push_back({"head.weight", random_tensor({1, 2}, 1)});
    if (has_bias) tensors.push_back({"head.bias", random_tensor({1}, 2)});
    for (const auto& [name, count] : pieces) {
      tensors.push_back({name, Tensor({count, 2}, DType::F32)});
      std::ranges::fill(tensors.back().tensor.data<float>(), 1.0F);
    }
    return error_of([&] { predict_.load(tensors); });
  }
  std::vector<float> outputs() {
    const std::vector<std::int32_t> ids{0, 1, 2, 3, 4};
    const Tensor y = predict_({{"id", Tensor::from<std::int32_t>({5}, ids)}});
    return {y.data<float>().begin(), y.data<float>().end()};
  }

  TableNetwork network_;
  infer::Predictor predict_{network_, [this](const plan::Inputs& in) { return network_(in["id"]); }};
};

TEST_F(TablePredictor, ALoadThatThrowsChangesNothing) {
  const std::vector<float> before = outputs();
  EXPECT_TRUE(has(error_with({{"table.weight", 5}}, false), "head.bias"));
  EXPECT_EQ(outputs(), before) << "the table fits, and the head is not complete";
  EXPECT_TRUE(has(error_with({{"table.weight/0", 3}}), "table.weight: pieces of 3 rows instead of 5"));
  EXPECT_EQ(outputs(), before);
}

TEST_F(TablePredictor, PiecesHaveEachRowOnce) {
  const std::vector<float> before = outputs();
  EXPECT_TRUE(has(error_with({{"table.weight/0", 3}, {"table.weight/2", 2}}), "begins at row 2 instead of 3"));
  EXPECT_TRUE(has(error_with({{"table.weight/0", 3}, {"table.weight/000", 2}}), "begins at row 0 instead of 2"));
  EXPECT_TRUE(has(error_with({{"table.weight/0", 3}, {"table.weight/", 2}}), "pieces of 3 rows instead of 5"));
  EXPECT_TRUE(has(error_with({{"table.weight/0", 3}, {"table.weight/99999999999999999999", 2}}),
                  "pieces of 3 rows instead of 5"));
  EXPECT_EQ(outputs(), before);
  EXPECT_EQ(error_with({{"table.weight/003", 2}, {"table.weight/000", 3}}), "no error");
  const std::vector<float> after = outputs();
  EXPECT_EQ(after, std::vector<float>(5, after[0])) << "all rows are ones now";
}

// A table of 64 MiB; what a load takes beside it is a part of that.
TEST(Predictor, LoadsATableInParts) {
  LOCKSTEP_SKIP_WITHOUT_LIMITS();
  constexpr std::int64_t kRows = 1 << 16, kWidth = 256;
  std::string name = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  {
    std::vector<io::NamedTensor> table;
    table.push_back({"table.weight", Tensor({kRows, kWidth}, DType::F32)});
    for (std::int64_t r = 0; r < kRows; ++r)
      table[0].tensor.data<float>()[static_cast<std::size_t>(r * kWidth)] = static_cast<float>(r);
    checkpoint::save_weights(folder / "w.h5", table);
  }
  struct Lookup : nn::Module {
    nn::Child<nn::Embedding> table{
        this, "table",
        nn::EmbeddingConfig{.num_embeddings = kRows,
                            .embedding_dim = kWidth,
                            .weight_init = [](const Shape&, std::span<double>, RandomStream&) {},
                            .sparse = true}};
  };
  EXPECT_TRUE(fits_in(std::size_t{112} << 20, [&] {
    Lookup network;
    infer::Predictor predict(network, [&](const plan::Inputs& in) { return network.table(in["id"]); });
    predict.load(folder / "w.h5");
    const std::vector<std::int32_t> ids{0, 17, kRows - 1};
    const Tensor rows = predict({{"id", Tensor::from<std::int32_t>({3}, ids)}});
    for (std::size_t i = 0; i < 3; ++i)
      check(rows.data<float>()[i * kWidth] == static_cast<float>(ids[i]), "test", "row {}", ids[i]);
  }));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::train

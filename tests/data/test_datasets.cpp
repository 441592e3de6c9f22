#include "lockstep/data/array_datasets.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

TEST(TensorDataset, ReadsSamplesOfAnyDtypeAndShape) {
  std::vector<NamedTensor> tensors;
  tensors.push_back({"x", Tensor::from<double>({3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6})});
  tensors.push_back({"id", Tensor::from<std::int64_t>({3}, std::vector<std::int64_t>{10, 20, 30})});
  const TensorDataset set(std::move(tensors));
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.fields(), (std::vector<Field>{{"x", {2}, DType::F64}, {"id", Shape{}, DType::I64}}));
  const auto sample = sample_of(set, 2);
  double x[2];
  std::memcpy(x, sample[0].data(), sizeof x);
  EXPECT_EQ(x[0], 5);
  EXPECT_EQ(x[1], 6);
  EXPECT_EQ(value_of<std::int64_t>(sample[1]), 30);
}

TEST(TensorDataset, DisagreementsAreNamed) {
  const auto make = [](const std::vector<std::pair<std::string, Shape>>& parts, std::int64_t classes = 0) {
    std::vector<NamedTensor> tensors;
    for (const auto& [name, shape] : parts) tensors.push_back({name, Tensor(shape, DType::F32)});
    return TensorDataset(std::move(tensors), classes);
  };
  expect_error([&] { make({{"x", {3, 2}}, {"y", {4}}}); }, {"'y' has 4", "'x' has 3"});
  expect_error([&] { make({{"x", {3}}, {"x", {3}}}); }, {"two fields", "'x'"});
  expect_error([&] { make({{"x", Shape{}}}); }, {"'x' is a scalar"});
  expect_error([&] { make({}); }, {"no fields"});
  std::vector<NamedTensor> labels;
  labels.push_back({"label", Tensor::from<std::int32_t>({3}, std::vector<std::int32_t>{0, 5, 1})});
  expect_error([&] { TensorDataset(std::move(labels), 5); }, {"element 1 is 5", "0 to 4"});
}

FunctionDatasetOptions squares(std::int64_t size) {
  return {.size = size, .fields = {{"y", Shape{}, DType::F64}}, .description = "squares", .read = [](auto i, auto out) {
            const auto value = static_cast<double>(i * i);
            std::memcpy(out[0], &value, sizeof value);
          }};
}

TEST(FunctionDataset, CallsBack) {
  const FunctionDataset set(squares(10));
  EXPECT_EQ(value_of<double>(sample_of(set, 7)[0]), 49);
  expect_error([&] { sample_of(set, 10); }, {"squares", "sample 10"});
  FunctionDatasetOptions none = squares(1);
  none.read = nullptr;
  expect_error([&] { FunctionDataset{none}; }, {"squares", "`read` is empty"});
}

TEST(SubsetDataset, TakesSamplesInOrder) {
  const SubsetDataset set(std::make_unique<FunctionDataset>(squares(10)), {9, 2});
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(value_of<double>(sample_of(set, 0)[0]), 81);
  EXPECT_EQ(value_of<double>(sample_of(set, 1)[0]), 4);
  expect_error([&] { SubsetDataset(std::make_unique<FunctionDataset>(squares(10)), {10}); }, {"index 10", "0 to 9"});
}

}  // namespace
}  // namespace lockstep::data

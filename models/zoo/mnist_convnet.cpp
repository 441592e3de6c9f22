#include "models/zoo/mnist_convnet.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/elementwise.h"
#include "lockstep/ops/reshape.h"

namespace lockstep {
namespace {

const Shape& checked(const Shape& image) {
  check(image.rank() == 3 && image[1] >= 6 && image[2] >= 6, "mnist_convnet",
        "images are {}, expected (channels, height, width) of at least 6x6", image.str());
  return image;
}

std::int64_t features(const Shape& image) {  // two 3x3 convolutions take 4 off a side, the pool halves it
  return 64 * ((image[1] - 4) / 2) * ((image[2] - 4) / 2);
}

}  // namespace

MnistConvNet::MnistConvNet(const MnistConvNetConfig& c)
    : conv1_({.in = checked(c.image)[0], .out = 32, .kernel = 3}),
      conv2_({.in = 32, .out = 64, .kernel = 3}),
      dropout1_(0.25),
      dropout2_(0.5),
      fc1_({.in = features(c.image), .out = 128}),
      fc2_({.in = 128, .out = c.classes}) {
  add("conv1", conv1_);
  add("conv2", conv2_);
  add("dropout1", dropout1_);
  add("dropout2", dropout2_);
  add("fc1", fc1_);
  add("fc2", fc2_);
}

Value MnistConvNet::operator()(Value images) const {
  const auto in_scope = scope(images);
  Value x = relu(conv2_(relu(conv1_(images))));
  x = dropout1_(nn::max_pool(x, {.kernel = 2}));
  x = dropout2_(relu(fc1_(flatten(x))));
  return fc2_(x);
}

}  // namespace lockstep

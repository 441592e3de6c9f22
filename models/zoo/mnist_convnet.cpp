#include "models/zoo/mnist_convnet.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"

namespace lockstep::models {
namespace {

const MnistConvNetConfig& checked(const MnistConvNetConfig& c) {
  check(c.image.rank() == 3 && c.image[1] >= 6 && c.image[2] >= 6, "mnist_convnet",
        "images are {}, expected (channels, height, width) of at least 6x6", c.image.str());
  return c;
}

}  // namespace

MnistConvNet::MnistConvNet(const MnistConvNetConfig& config) : c_(checked(config)) {}

// Two 3x3 convolutions take 4 off a side, the pool halves it.
std::int64_t MnistConvNet::features(const Shape& image) { return 64 * ((image[1] - 4) / 2) * ((image[2] - 4) / 2); }

Value MnistConvNet::operator()(Value images) const {
  Value x = relu(conv2_(relu(conv1_(images))));
  x = dropout1_(nn::max_pool(x, {.kernel = 2}));
  x = dropout2_(relu(fc1_(flatten(x))));
  return fc2_(x);
}

}  // namespace lockstep::models

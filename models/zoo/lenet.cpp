#include "models/zoo/lenet.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"

namespace lockstep::models {
namespace {

// The side of the maps after two 5x5 convolutions, each with a pool of 2.
std::int64_t reduced(std::int64_t side) { return ((side - 4) / 2 - 4) / 2; }

const LeNetConfig& checked(const LeNetConfig& c) {
  check(c.image.rank() == 3 && c.image[1] >= 16 && c.image[2] >= 16, "lenet",
        "images are {}, expected (channels, height, width) of at least 16x16", c.image.str());
  return c;
}

}  // namespace

LeNet::LeNet(const LeNetConfig& config) : c_(checked(config)) {}

std::int64_t LeNet::features(const Shape& image) { return 16 * reduced(image[1]) * reduced(image[2]); }

Value LeNet::operator()(Value images) const {
  Value x = nn::max_pool(relu(conv1_(images)), {.kernel = 2});
  x = nn::max_pool(relu(conv2_(x)), {.kernel = 2});
  x = relu(fc1_(flatten(x)));
  return fc3_(relu(fc2_(x)));
}

}  // namespace lockstep::models

#include "models/zoo/lenet.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/elementwise.h"
#include "lockstep/ops/reshape.h"

namespace lockstep {
namespace {

// What two 5x5 convolutions, each with a pool of 2, leave of a side.
std::int64_t reduced(std::int64_t side) { return ((side - 4) / 2 - 4) / 2; }

const Shape& checked(const Shape& image) {
  check(image.rank() == 3 && image[1] >= 16 && image[2] >= 16, "lenet",
        "images are {}, expected (channels, height, width) of at least 16x16", image.str());
  return image;
}

std::int64_t features(const Shape& image) { return 16 * reduced(image[1]) * reduced(image[2]); }

}  // namespace

LeNet::LeNet(const LeNetConfig& c)
    : conv1_({.in = checked(c.image)[0], .out = 6, .kernel = 5}),
      conv2_({.in = 6, .out = 16, .kernel = 5}),
      fc1_({.in = features(c.image), .out = 120}),
      fc2_({.in = 120, .out = 84}),
      fc3_({.in = 84, .out = c.classes}) {
  add("conv1", conv1_);
  add("conv2", conv2_);
  add("fc1", fc1_);
  add("fc2", fc2_);
  add("fc3", fc3_);
}

Value LeNet::operator()(Value images) const {
  const auto in_scope = scope(images);
  Value x = nn::max_pool(relu(conv1_(images)), {.kernel = 2});
  x = nn::max_pool(relu(conv2_(x)), {.kernel = 2});
  x = relu(fc1_(flatten(x)));
  return fc3_(relu(fc2_(x)));
}

}  // namespace lockstep

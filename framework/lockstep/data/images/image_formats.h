// The formats behind open_image(): each function expects bytes that begin as its format does.
#pragma once

#include "lockstep/data/images/encoded_image.h"

namespace lockstep::data {

std::unique_ptr<EncodedImage> open_jpeg(std::span<const std::byte> bytes, std::string place, const ImageLimits& limits);
std::unique_ptr<EncodedImage> open_png(std::span<const std::byte> bytes, std::string place, const ImageLimits& limits);

}  // namespace lockstep::data

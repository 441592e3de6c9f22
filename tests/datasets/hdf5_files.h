// HDF5 files that tests write.
#pragma once

#include <string>
#include <vector>

#include "lockstep/io/image_write.h"
#include "tests/data/support.h"

namespace lockstep::datasets {

inline void write_hdf5(const data::TempDir& dir, const std::string& name, std::vector<io::NamedTensor> tensors) {
  data::Bytes image;
  io::ImageStream(io::source_of(tensors), {}, name).write([&](std::span<const std::byte> bytes) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    image.insert(image.end(), first, first + bytes.size());
  });
  dir.write(name, image);
}

}  // namespace lockstep::datasets

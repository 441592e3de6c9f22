// The sizes of HDF5's caches of decoded chunks. Internal.
#pragma once

#include <cstddef>

#include "lockstep/io/hdf5_reader.h"

namespace lockstep::io {

// Bytes of the chunks that a slab touches, of elements of `element` bytes; SIZE_MAX: more than that.
std::size_t touched_chunk_bytes(const Hdf5Info& info, const Hdf5Slab& slab, std::size_t element);

// Bytes of the cache of a dataset that is opened for a slab.
std::size_t chunk_cache_bytes(const Hdf5Info& info, const Hdf5Slab& slab, const Hdf5ReaderOptions& options);

// What the caches of all datasets may have together, however many are open.
std::size_t cache_share(const Hdf5ReaderOptions& options);

// The same when one more dataset is opened beside `open` others.
std::size_t most_cache_bytes(std::size_t open, const Hdf5ReaderOptions& options);

// The number of slots of a cache of `bytes` for chunks of this dataset.
std::size_t chunk_cache_slots(const Hdf5Info& info, std::size_t bytes);

}  // namespace lockstep::io

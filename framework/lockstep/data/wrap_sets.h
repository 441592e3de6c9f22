// Changes of data sets that do not depend on their kind, as SampleOptions say (data/catalogue.h): a part by a file of
// indices, replacement of unreadable samples, a cache, weighted sampling, and the memory of all ranks as one store.
// open_data() and prepare_data() call these functions for all entries of a catalogue.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "lockstep/data/catalogue.h"

namespace lockstep::data {

// Throws Error, in a run with a stream, for options that have no effect there.
void check_stream_options(const SampleOptions& options);

// Returns the samples that `file` names, one index per line (read_indices()); the set itself if `file` is empty. Throws
// Error, with the option's name, for a file without indices and an index outside of the set.
std::unique_ptr<Dataset> subset_of(std::unique_ptr<Dataset> set, const std::filesystem::path& file,
                                   std::string_view option);

// Replaces unreadable samples and keeps decoded samples in memory, in all sets of `data`. The cache's bytes are divided
// among the sets by their numbers of samples. Throws Error for a cache of a set that makes random choices as it reads.
enum class Caching : std::uint8_t { Here, ByEntry };  // ByEntry: the entry of the catalogue has cached samples already
void wrap_sets(RunData& data, const SampleOptions& options, Caching caching = Caching::Here);

// Sets the order of RunData::epoch for balanced classes or given weights. Collective over the ranks of `comm`, which is
// null for a process alone: each reads a part of the classes, unless the set knows them. Throws AgreedError.
void order_samples(RunData& data, const SampleOptions& options, const comm::Communicator* comm);

// Replaces the training set by a SampleStore over the ranks of `comm`, and sets the supply of RunData::epoch, if
// options ask for it: the last change of the set. Collective; throws AgreedError.
void store_samples(RunData& data, const SampleOptions& options, const comm::Communicator& comm, int threads);

}  // namespace lockstep::data

// The entries of the catalogue for models of clicks: samples of dense numbers, ids and a label that is 1 or 0. A model
// gets the fields "dense" (numbers), unless there are none, "ids" I32 (fields), rows of one table of embeddings
// (data/datasets/id_rows.h), and "label" ().
//
//   clicks   built in: drawn from a known model (data/datasets/synthetic_clicks.h)
//   criteo   Criteo's text files: --files
//   ratings  MovieLens' ratings.csv: --files
//   csv      columns of CSV tables: --files, --inputs, --ids, --label
//   hdf5     arrays of HDF5 files, arrays: NumPy's files; the same options
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/datasets/id_rows.h"
#include "data/datasets/synthetic_clicks.h"
#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

struct ClickSetOptions {
  SyntheticClicksOptions synthetic{};
  std::int64_t eval_samples = 20000;  // of the synthetic set
  std::string ids{};                  // csv, hdf5, arrays: the columns or arrays of ids, with commas between them
  double positive = 4;                // ratings: the label is 1 from this rating on
  std::int64_t hash_ids = 0;          // rows of each field, to which ids are hashed; 0: no hashing
  std::int64_t vocabulary = 0;        // rows of each field, which a vocabulary gives to ids; 0: no vocabulary
  std::function<void(data::Batch&)> finish_eval{};  // with a vocabulary: PredictionFacts::finish
  // PredictionFacts::decode; empty: logits become probabilities.
  std::function<std::vector<data::NamedTensor>(Tensor)> decode{};
};

// The entries read `options` when they open data; it outlives them. Errors name the options of train_recsys.
std::vector<data::DatasetEntry> click_entries(const ClickSetOptions& options);

}  // namespace lockstep::datasets

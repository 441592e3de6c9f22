// The entries of the catalogue for models of clicks: samples of dense numbers, ids and a label that is 1 or 0. A model
// gets the fields "dense" (numbers), unless there are none, "ids" I32 (fields), rows of one table of embeddings
// (data/datasets/id_rows.h), and "label" ().
//
//   clicks   built in: drawn from a known model (data/datasets/synthetic_clicks.h)
//   criteo   Criteo's text files: --files
//   ratings  MovieLens' ratings.csv: --files
//   csv      columns of CSV tables: --files, --inputs, --ids, --label
//   hdf5     arrays of HDF5 files, arrays: NumPy's files; the same options
//   records  packed by `lockstep pack` of any of these (data/datasets/click_records.h): --data-dir, or --files
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
  std::string bags{};                 // fields with several ids (data/datasets/click_bags.h)
  std::string bag_separator = "|";    // between the ids of a bag in text files
  double positive = 4;                // ratings: the label is 1 from this rating on
  std::int64_t hash_ids = 0;          // rows of each field, to which ids are hashed; 0: no hashing
  std::int64_t vocabulary = 0;        // rows of each field, which a vocabulary gives to ids; 0: no vocabulary
  bool keeps_ids = false;             // ids become no rows of tables: those that are texts stay hashes (lockstep pack)
  std::int64_t negatives = 0;         // items that are drawn for each training sample (data/datasets/click_negatives.h)
  double negative_exponent = 0.75;    // of their frequencies
  std::int64_t item_field = 1;        // the first field of ids that belongs to the item
  std::function<void(data::Batch&)> finish_eval{};  // with a vocabulary: PredictionFacts::finish
  // PredictionFacts::decode; empty: logits become probabilities.
  std::function<std::vector<data::NamedTensor>(Tensor)> decode{};
};

// Calls visit(name, value, text) for each option of these data sets that programs offer, so that all of them have the
// same names, and visit(name, value, text, argument) for texts, for which `argument` stands in --help.
template <class Visit>
void for_click_options(ClickSetOptions& o, const Visit& visit) {
  visit("ids", o.ids, "csv, hdf5, arrays, records: columns or arrays of ids, with commas between them", "NAMES");
  visit(
      "bags", o.bags,
      "fields with several ids, or none, as in genres,tags:sum:50: rows are joined by mean, sum or max; a bag of a "
      "text or HDF5 file has at most 16 ids, or so many; counts=NAME is the array of their numbers, offsets=NAME that "
      "of the places where bags begin (hdf5)",
      "FIELDS");
  visit("bag-separator", o.bag_separator, "the character between the ids of a bag in text files", "CHARACTER");
  visit("positive-rating", o.positive, "ratings: the label is 1 from this rating on");
  SyntheticClicksOptions& clicks = o.synthetic;
  visit("click-samples", clicks.samples, "clicks: samples for training");
  visit("click-eval-samples", o.eval_samples, "clicks: samples for evaluation");
  visit("click-dense", clicks.dense, "clicks: dense numbers of a sample");
  visit("click-fields", clicks.fields, "clicks: fields of ids");
  visit("click-ids", clicks.ids, "clicks: ids of each field");
  visit("click-latent", clicks.latent, "clicks: elements of the vectors of ids in the model that draws clicks");
  visit("click-exponent", clicks.exponent, "clicks: the n-th most frequent id occurs in proportion to n^-X");
  visit("click-wide", clicks.wide, "clicks: ids are hashes of 63 bits");
  visit("click-seed", clicks.seed, "clicks: seed of the model that draws them");
}

// The entries read `options` when they open data; it outlives them. Errors name the options of train_recsys.
std::vector<data::DatasetEntry> click_entries(const ClickSetOptions& options);

}  // namespace lockstep::datasets

// Trains a recommender on clicks or ratings: dense numbers and ids of users, items and contexts in, a probability out.
#include <memory>
#include <span>
#include <vector>

#include "lockstep/nn/embedding.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/callbacks/grow_vocabulary.h"
#include "lockstep/train/run/program.h"
#include "models/recsys/choice.h"
#include "models/recsys/retriever.h"

using namespace lockstep;

int main(int argc, char** argv) {
  recsys::Choice choice;
  const std::vector<data::DatasetEntry> catalogue = datasets::click_entries(choice.data);
  train::Program program(
      "train_recsys", "Trains a recommender on clicks or ratings.",
      {.dataset = {.name = "clicks", .fields = {.inputs = "dense", .normalise = data::FieldScaling::None}},
       .epochs = 3,
       .batch_size = 256,
       .optimizer = {.rule = optim::Rule::Adam},
       .rate = {.peak = 1e-3},
       .trainer = {.tables = {.rules = {.all = {.rule = optim::RowRule::Adam}}}}},
      catalogue);
  choice.add_options(program);
  train::GrowVocabulary* vocabulary = nullptr;  // the session's; null: ids need none
  std::unique_ptr<recsys::Retriever> retriever;
  choice.data.finish_eval = [&](data::Batch& batch) { vocabulary->look_up(batch); };
  program.check([&] {
    choice.check(program.options());
    choice.data.item_field = choice.network.user_fields;
    if (choice.top_k == 0) return;
    retriever = std::make_unique<recsys::Retriever>(choice.top_k, choice.network.user_fields);
    choice.data.decode = [&](const Tensor& vectors) { return retriever->decode(vectors); };
  });
  return program.run(argc, argv, [&](train::Session& session) {
    const auto network = choice.build(session);
    if (choice.data.vocabulary > 0)
      vocabulary = &session.add<train::GrowVocabulary>(
          train::GrowVocabulary::Setup{
              .options = choice.vocabulary,
              .columns = choice.columns,
              .buffer = recsys::kVocabulary,
              .hash_every = session.options().hash_every,
              .store = [&]() -> plan::ParameterStore& { return session.trainer().model().parameters(); },
              .reset =
                  [&](std::span<const std::int64_t> rows) {
                    for (const NamedTable& named : nn::named_tables(*network))
                      session.trainer().reset_rows(*named.table, rows);
                  }},
          session.comm());
    train::Trainer& trainer =
        session.build(*network, [&](const plan::Inputs& in) { return models::click_task(*network, in, choice.task); });
    if (retriever) retriever->prepare(session);
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) {
        if (vocabulary != nullptr) vocabulary->grow(batch);
        session.report(trainer.step(batch, session.learning_rate()));  // forward, backward, reduction, update
      }
      session.finish_epoch();  // evaluation, checkpoint
    }
  });
}

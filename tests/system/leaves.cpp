// A program of a user's own with a Session, whose body returns early on the ranks from --from on, after --after steps.
#include <cstdint>

#include "data/datasets/catalogue.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/run/program.h"
#include "models/zoo/classify.h"
#include "models/zoo/mlp.h"

using namespace lockstep;

int main(int argc, char** argv) {
  std::int64_t after = 3, from = 0;
  train::Program program("system_leaves", "Leaves its loop early.",
                         {.dataset = {.name = "synthetic"}, .epochs = 2, .batch_size = 8}, datasets::catalogue());
  program.option("after", after, "steps until it returns");
  program.option("from", from, "the first rank that does");
  return program.run(argc, argv, [&](train::Session& session) {
    const data::RunData& data = session.data();
    const models::Mlp network(std::vector<std::int64_t>{data.image_shape().elements(), 8, data.classes()});
    train::Trainer& trainer = session.build(network, models::classify(network));
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) {
        session.report(trainer.step(batch, session.learning_rate()));
        if (trainer.updates() == after && session.comm().rank() >= from) return;
      }
      session.finish_epoch();
    }
  });
}

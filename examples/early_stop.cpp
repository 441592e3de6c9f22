// A program with its own callback: it ends the run when the evaluation has not improved for some epochs, and counts the
// parts of steps that all ranks have trained, by a sum over ranks that travels in the control block of each step. Its
// state is in each checkpoint, so a run that was killed and resumed ends where an undisturbed one does.
//
//   mpirun -n 2 early_stop --dataset digits --epochs 50 --own-patience 2
#include <cstdio>

#include "data/datasets/catalogue.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/run/program.h"
#include "models/zoo/classify.h"
#include "models/zoo/registry.h"

using namespace lockstep;

namespace {

class EarlyStop : public train::Callback {
 public:
  explicit EarlyStop(const int& patience) : Callback({.sums = 1, .state = "early stop"}), patience_(patience) {}

  // The values that a checkpoint contains, and that a resumed run gets back.
  void save_state(train::CallbackState& state) override {
    state.set("waited", waited_);
    state.set("best", best_);
    state.set("parts", parts_);
  }
  void load_state(const train::CallbackState& state) override {
    waited_ = state.integer("waited", 0, 1'000'000);
    best_ = state.number("best");
    parts_ = state.number("parts");
  }
  // A run that this callback has finished, and that is started again with --resume auto.
  void make_up(const train::EpochEvent& /*event*/, train::Orders& orders) override {
    if (waited_ > 0 && waited_ >= patience_) orders.finish("the evaluation had not become better before this start");
  }

  // Before each step: this rank's part of the sum.
  void vote(train::StepVote& vote) override { vote.add(0, 1); }
  // After it: the sum over all ranks.
  void after_step(const train::StepEvent& event, train::Orders& /*orders*/) override { parts_ += event.sums[0]; }

  // Evaluations are the same on all ranks, so all give the same order.
  void after_evaluation(const train::EvaluationEvent& event, train::Orders& orders) override {
    if (!event.scheduled || !event.totals.whole) return;
    const bool better = best_ < 0 || event.totals.loss < best_;
    if (better) best_ = event.totals.loss;
    waited_ = better ? 0 : waited_ + 1;
    if (waited_ >= patience_) orders.finish("the evaluation has not become better");
  }
  double parts() const { return parts_; }

 private:
  const int& patience_;  // epochs
  std::int64_t waited_ = 0;
  double best_ = -1, parts_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  train::Program program("early_stop", "Trains until the evaluation becomes no better.",
                         {.dataset = {.name = "digits"}, .epochs = 50, .batch_size = 64, .rate = {.peak = 0.05}},
                         datasets::catalogue());
  int patience = 2;
  program.option("own-patience", patience, "epochs without a better evaluation, until the run ends");
  return program.run(argc, argv, [&](train::Session& session) {
    const EarlyStop& early = session.add<EarlyStop>(patience);
    const data::RunData& data = session.data();
    const auto network = models::build_model("mnist_mlp", data.classes(), data.image_shape());
    train::Trainer& trainer = session.build(*network, models::classify(*network));
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) session.report(trainer.step(batch, session.learning_rate()));
      session.finish_epoch();
    }
    if (session.comm().is_root()) std::printf("%.0f parts of steps trained by all ranks\n", early.parts());
  });
}

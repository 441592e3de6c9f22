// The state around a step: gradients that can be read, frozen parameters, parameter groups, state that goes out and in
// again, and inputs that do not fit.
#include <algorithm>
#include <cstring>

#include "lockstep/checkpoint/state.h"
#include "lockstep/checkpoint/state_snapshot.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/kernels/registry.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

using comm::Communicator;

Task small(std::int64_t shards) {
  Task task;
  task.samples = 70;
  task.options.global_batch = 32;
  task.options.shards = shards;
  task.options.precision = DType::F64;
  task.options.rule = optim::sgd({.momentum = 0.9});
  return task;
}

io::NamedTensor& tensor_of(std::vector<io::NamedTensor>& state, const std::string& name) {
  const auto found = std::ranges::find(state, name, &io::NamedTensor::name);
  check(found != state.end(), "test", "no '{}'", name);
  return *found;
}

TEST(Gradient, IsThatOfTheMeanLossOverAllSamples) {
  for (const std::int64_t shards : {std::int64_t{0}, std::int64_t{5}}) {
    Task task = small(shards);
    task.network = [] { return std::make_unique<DropoutNet>(0.0); };
    task.options.rule = nullptr;  // plain SGD, which a rate of 0 keeps where it is
    Rig rig(world(), task);
    const data::Batch batch = rig.loader->next();
    const double loss = rig.trainer->step(batch, 0).loss;
    EXPECT_GT(loss, 0);
    for (const char* name : {"in.weight", "in.bias", "out.weight", "out.bias"}) {
      EXPECT_EQ(rig.trainer->step(batch, 0).loss, loss) << "a rate of 0 changes nothing";
      const Tensor gradient = rig.trainer->gradient(name);
      for (const std::int64_t element : {std::int64_t{0}, gradient.elements() / 2, gradient.elements() - 1}) {
        const auto loss_at = [&](double shift) {
          auto moved = rig.trainer->state();
          tensor_of(moved, "model/" + std::string(name)).tensor.data<double>()[static_cast<std::size_t>(element)] +=
              shift;
          const auto original = rig.trainer->state();
          rig.trainer->load(moved, 0);
          const double moved_loss = rig.trainer->step(batch, 0).loss;
          rig.trainer->load(original, 0);
          return moved_loss;
        };
        constexpr double kShift = 1e-5;
        const double difference = (loss_at(kShift) - loss_at(-kShift)) / (2 * kShift);
        EXPECT_NEAR(gradient.data<double>()[static_cast<std::size_t>(element)], difference, 1e-8)
            << name << "[" << element << "], " << shards << " shards";
      }
    }
  }
}

TEST(Gradient, UpdatesByItsRule) {
  Task task = small(4);
  task.options.rule = nullptr;
  Rig rig(world(), task);
  auto before = rig.trainer->state();
  rig.train(1);
  auto after = rig.trainer->state();
  const Tensor gradient = rig.trainer->gradient("2.weight");
  for (std::size_t i = 0; i < gradient.data<double>().size(); ++i) {
    const double expected =
        tensor_of(before, "model/2.weight").tensor.data<double>()[i] - task.lr * gradient.data<double>()[i];
    EXPECT_NEAR(tensor_of(after, "model/2.weight").tensor.data<double>()[i], expected, 1e-15);
  }
}

// By the norm of each parameter first, then by value; one of the limits touches some parameters or elements alone.
TEST(Gradient, IsClippedByParameterAndByValue) {
  constexpr double kNorm = 0.2, kValue = 0.02;
  Task task = small(4);
  task.options.rule = nullptr;
  task.options.update = {.clip_value = kValue, .clip_layer_norm = kNorm};
  Rig rig(world(), task);
  const auto before = rig.trainer->state();
  rig.train(1);
  const auto after = rig.trainer->state();
  int shrunk = 0, whole = 0;
  for (std::size_t t = 0; t < before.size(); ++t) {
    const Tensor gradient = rig.trainer->gradient(before[t].name.substr(6));  // behind "model/"
    double squares = 0;
    for (const double g : gradient.data<double>()) squares += g * g;
    const double factor = std::min(1.0, kNorm / (std::sqrt(squares) + 1e-6));
    ++(factor < 1 ? shrunk : whole);
    for (std::size_t i = 0; i < gradient.data<double>().size(); ++i) {
      const double step = std::clamp(factor * gradient.data<double>()[i], -kValue, kValue);
      EXPECT_NEAR(after[t].tensor.data<double>()[i], before[t].tensor.data<double>()[i] - task.lr * step, 1e-14)
          << before[t].name;
    }
  }
  EXPECT_GT(shrunk, 0);
  EXPECT_GT(whole, 0);
}

// The contents of a copy are the state of its step, while training goes on and when it is taken again into the same
// memory.
TEST(Snapshot, IsTheStateOfItsStep) {
  for (const bool resnet : {false, true}) {
    for (const bool shard_optimizer : {false, true}) {
      Task task;
      task.samples = 70;
      task.options.global_batch = 32;
      task.options.rule = optim::adam({});
      task.options.parallel = {.path = train::ParallelOptions::Path::Messages, .shard_optimizer = shard_optimizer};
      if (resnet) {
        task.channels = 3;
        task.network = make_resnet;
      }
      Rig rig(world(), task);
      const auto copy = world().is_root() ? rig.trainer->make_snapshot() : nullptr;
      for (int round = 0; round < 2; ++round) {
        rig.train(2);
        const auto expected = rig.trainer->state(world().is_root());
        rig.trainer->snapshot(copy.get());
        rig.train(1);
        if (!copy) continue;
        const io::TensorSource source = copy->tensors();
        ASSERT_EQ(source.count(), expected.size());
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < source.count(); ++i) {
          const auto& [name, tensor] = source.tensor(i);
          EXPECT_EQ(name, expected[i].name);
          ASSERT_EQ(tensor.shape(), expected[i].tensor.shape()) << name;
          ASSERT_EQ(tensor.dtype(), expected[i].tensor.dtype()) << name;
          EXPECT_EQ(source.infos[i].name, name);
          EXPECT_EQ(source.infos[i].shape, tensor.shape()) << name;
          EXPECT_EQ(source.infos[i].dtype, tensor.dtype()) << name;
          EXPECT_EQ(std::memcmp(tensor.raw(), expected[i].tensor.raw(), tensor.bytes()), 0) << name;
          bytes += tensor.bytes();
        }
        EXPECT_EQ(source.bytes(), bytes);
      }
    }
  }
}

TEST(Parameters, FrozenOnesStay) {
  Task task = small(0);
  task.options.update.weight_decay = 0.1;
  task.network = [] {
    auto network = std::make_unique<DropoutNet>(0.0);
    for (const NamedParameter& p : network->named_parameters()) p.parameter->trainable = !p.name.starts_with("in.");
    return network;
  };
  Rig rig(world(), task);
  auto before = rig.trainer->state();
  rig.train(3);
  auto after = rig.trainer->state();
  for (const char* name : {"model/in.weight", "model/in.bias", "model/out.weight", "model/out.bias"}) {
    const bool frozen = std::string(name).find("in.") != std::string::npos;
    const auto a = tensor_of(before, name).tensor.data<double>(), b = tensor_of(after, name).tensor.data<double>();
    EXPECT_EQ(std::ranges::equal(a, b), frozen) << name;
  }
  EXPECT_NE(error_of([&] { rig.trainer->gradient("in.weight"); }).find("'in.weight' has no gradient"),
            std::string::npos);
  EXPECT_EQ(std::ranges::count_if(after,
                                  [](const auto& t) {
                                    return t.name.starts_with("optimizer/") && t.name.find("/in.") != std::string::npos;
                                  }),
            0);
}

TEST(Parameters, AllFrozenStillGivesALoss) {
  Task task = small(4);
  task.network = [] {
    auto network = make_mlp();
    network->set_trainable(false);
    return network;
  };
  Rig rig(world(), task);
  const std::uint64_t before = rig.trainer->weights_hash();
  rig.train(2);
  EXPECT_EQ(rig.trainer->weights_hash(), before);
  EXPECT_GT(rig.losses[0], 0);
}

TEST(Parameters, GroupsHaveRatesAndDecayOfTheirOwn) {
  Task task = small(0);
  task.options.update = {.weight_decay = 0.5,
                         .groups = {{.pattern = "0.*", .rate_scale = 0}, {.pattern = "*.bias", .weight_decay = 0.0}}};
  task.options.rule = nullptr;
  Rig rig(world(), task);
  auto before = rig.trainer->state();
  rig.train(1);
  auto after = rig.trainer->state();
  for (const std::string name : {"0.weight", "0.bias", "2.weight", "2.bias"}) {
    const Tensor gradient = rig.trainer->gradient(name);
    const double rate = name.starts_with("0.") ? 0 : task.lr, decay = name.ends_with("bias") ? 0 : 0.5;
    for (std::size_t i = 0; i < gradient.data<double>().size(); ++i) {
      const double old = tensor_of(before, "model/" + name).tensor.data<double>()[i];
      EXPECT_NEAR(tensor_of(after, "model/" + name).tensor.data<double>()[i],
                  old - rate * (gradient.data<double>()[i] + decay * old), 1e-15)
          << name;
    }
  }
  task.options.update.groups = {{.pattern = "fc.*"}};
  EXPECT_NE(error_of([&] { Rig(world(), task); }).find("the pattern 'fc.*' of a group matches no parameter"),
            std::string::npos);
}

TEST(State, GoesOutAndInAndGoesOnBitForBit) {
  const std::vector<std::shared_ptr<optim::UpdateRule>> rules{optim::sgd({.momentum = 0.9, .nesterov = true}),
                                                              optim::adam({})};
  for (const auto& rule : rules) {
    Task task = small(4);
    task.options.precision = DType::F32;
    task.options.rule = rule;
    task.channels = 3;
    task.network = make_resnet;
    const auto undisturbed = [&] {
      task.steps = 7;
      return run_task(world(), task);
    }();
    task.steps = 4;  // in the middle of the second epoch
    const auto first = run_task(world(), task);
    Task other = task;
    other.options.seed = 99;  // weights that load() must replace
    Rig second(world(), other);
    Rig sampler_of(world(), task);
    second.trainer->load(first->trainer->state(), first->trainer->updates());
    second.loader = std::move(sampler_of.loader);  // with the task's own order of samples
    second.dataset = std::move(sampler_of.dataset);
    second.loader->seek(first->loader->position());
    second.train(3);
    EXPECT_EQ(second.losses, std::vector<double>(undisturbed->losses.begin() + 4, undisturbed->losses.end()))
        << rule->name();
    EXPECT_EQ(second.trainer->weights_hash(), undisturbed->trainer->weights_hash()) << rule->name();
    EXPECT_EQ(second.trainer->updates(), 7);
  }
}

// A network with two names for one parameter.
class TiedNet : public models::Classifier {
 public:
  TiedNet() { tie("again", in_.weight()); }
  Value operator()(Value x) const override { return out_(relu(in_(flatten(x)))); }

 private:
  nn::Child<nn::Linear> in_{this, "in", {.in = 36, .out = 24}};
  nn::Child<nn::Linear> out_{this, "out", {.in = 24, .out = 5}};
};

TEST(State, HasTheSizeThatIsForetold) {
  for (const bool tied : {false, true}) {
    Task task = small(0);
    if (tied) task.network = [] { return std::make_unique<TiedNet>(); };
    task.options.guards.gradient.spike = 100;
    Rig rig(world(), task);
    rig.trainer->step(rig.loader->next(), 0.1);
    std::size_t bytes = 0;
    for (const io::NamedTensor& each : rig.trainer->state()) bytes += each.tensor.bytes();
    EXPECT_EQ(rig.trainer->state_bytes(), bytes) << (tied ? "tied" : "not tied");
  }
}

TEST(State, ThatDoesNotFitNamesTheTensor) {
  const Task task = small(0);
  const auto rig = run_task(world(), task);
  const auto message = [&](const std::function<void(std::vector<io::NamedTensor>&)>& change) {
    auto state = rig->trainer->state();
    change(state);
    return error_of([&] { rig->trainer->load(state, 3); });
  };
  const std::string shape = message([](auto& s) {
    tensor_of(s, "model/2.weight").tensor = Tensor(Shape{3, 4}, DType::F64);
  });
  EXPECT_NE(shape.find("2.weight (3, 4) instead of (17, 31)"), std::string::npos) << shape;
  EXPECT_NE(shape.find("(3, 4)"), std::string::npos) << shape;
  const std::string missing =
      message([](auto& s) { std::erase_if(s, [](const auto& t) { return t.name == "model/0.bias"; }); });
  EXPECT_NE(missing.find("1 missing: 0.bias"), std::string::npos) << missing;
  const std::string momentum =
      message([](auto& s) { std::erase_if(s, [](const auto& t) { return t.name.starts_with("optimizer/"); }); });
  EXPECT_NE(momentum.find("6 missing: momentum/0.weight"), std::string::npos) << momentum;
  const std::string extra = message([](auto& s) { s.push_back({"model/9.weight", Tensor(Shape{1}, DType::F64)}); });
  EXPECT_NE(extra.find("1 unexpected: 9.weight"), std::string::npos) << extra;
  EXPECT_EQ(message([](auto&) {}), "no error");

  auto weights = rig->trainer->state();
  std::erase_if(weights, [](const auto& t) { return t.name.starts_with("optimizer/"); });
  EXPECT_EQ(error_of([&] { rig->trainer->load(weights, 0, true); }), "no error");
}

// Rank 0 alone has the state; ranks that share weights, and ranks that do not, go on as if there had been no stop.
TEST(State, OfRankZeroIsSentToTheRanksThatWriteIt) {
  for (const bool share : {true, false}) {
    for (const bool shard_optimizer : {false, true}) {
      if (shard_optimizer && !share) continue;  // which is refused
      Task task = small(4);
      task.options.precision = DType::F32;
      task.options.rule = optim::adam({});
      task.options.parallel = {.share_weights = share, .shard_optimizer = shard_optimizer};
      task.channels = 3;
      task.network = make_resnet;
      Rig first(world(), task);
      first.train(3);
      const auto state = first.trainer->state(world().is_root());
      task.options.seed = 99;  // weights that load() must replace
      Rig second(world(), task);
      const auto place = second.loader->position();
      second.train(1);
      second.loader->seek(place);
      second.trainer->load(io::source_of(state), "here", first.trainer->updates());
      EXPECT_EQ(second.trainer->updates(), 3);
      EXPECT_EQ(second.trainer->weights_hash(), first.trainer->weights_hash()) << share << shard_optimizer;
      const auto again = second.trainer->state(world().is_root());
      ASSERT_EQ(again.size(), state.size());
      for (std::size_t i = 0; i < state.size(); ++i) {
        EXPECT_EQ(again[i].name, state[i].name);
        EXPECT_EQ(std::memcmp(again[i].tensor.raw(), state[i].tensor.raw(), state[i].tensor.bytes()), 0)
            << state[i].name << " " << share << shard_optimizer;
      }
      const data::Batch batch = second.loader->next();
      const double loss = first.trainer->step(batch, 0.01).loss;
      EXPECT_EQ(second.trainer->step(batch, 0.01).loss, loss);
    }
  }
}

TEST(State, ThatRankZeroCannotReadIsAnErrorOfAllRanks) {
  const auto rig = run_task(world(), small(0));
  const auto state = rig->trainer->state(world().is_root());
  io::TensorSource source = io::source_of(state);
  source.tensor = [&](std::size_t i) -> const io::NamedTensor& {
    if (i == 2) fail("test", "the disk is gone");
    return state[i];
  };
  const std::string error = error_of([&] { rig->trainer->load(source, "here", 3); });
  EXPECT_NE(error.find("the disk is gone"), std::string::npos) << error;
  EXPECT_EQ(world().broadcast_string(error), error);
  EXPECT_EQ(error_of([&] { rig->trainer->load(io::source_of(state), "here", 3); }), "no error");
}

TEST(State, OfRankZeroThatDoesNotFitChangesNothing) {
  const auto rig = run_task(world(), small(0));
  const std::uint64_t before = rig->trainer->weights_hash();
  auto state = rig->trainer->state(world().is_root());
  for (auto& entry : state) {
    if (entry.tensor.dtype() == DType::F64) std::ranges::fill(entry.tensor.data<double>(), 1.0);
    if (entry.name == "optimizer/momentum/4.bias") entry.tensor = Tensor(Shape{1}, DType::F64);
  }
  const std::string error = error_of([&] { rig->trainer->load(io::source_of(state), "here", 3); });
  EXPECT_NE(error.find("momentum/4.bias (1) instead of "), std::string::npos) << error;
  EXPECT_EQ(rig->trainer->weights_hash(), before);
}

// A state that is refused must leave the weights as they were, whichever tensor was wrong.
TEST(State, ThatDoesNotFitChangesNothing) {
  const auto rig = run_task(world(), small(0));
  const std::uint64_t before = rig->trainer->weights_hash();
  auto state = rig->trainer->state();
  for (auto& entry : state) {
    if (entry.tensor.dtype() == DType::F64) std::ranges::fill(entry.tensor.data<double>(), 1.0);
  }
  tensor_of(state, "model/4.bias").tensor = Tensor(Shape{1}, DType::F64);
  EXPECT_NE(error_of([&] { rig->trainer->load(state, 3); }), "no error");
  EXPECT_EQ(rig->trainer->weights_hash(), before);
}

TEST(State, RankZerosWeightsAreEverybodys) {
  Task task = small(0);
  task.options.seed = 5 + static_cast<std::uint64_t>(world().rank());  // ranks that start from different numbers
  const Rig rig(world(), task);
  task.options.seed = 5;
  const Rig root(Communicator::self(), task);
  EXPECT_EQ(rig.trainer->weights_hash(), root.trainer->weights_hash());
  EXPECT_EQ(rig.trainer->options().seed, 5U) << "and so are the permutations of the samples";
}

TEST(Input, ThatDoesNotFitIsNamed) {
  Rig rig(comm::Communicator::world(), small(0));  // of its own: a batch that is refused poisons it
  data::Batch batch = rig.loader->next();
  batch.step.samples.push_back(0);
  EXPECT_NE(error_of([&] { rig.trainer->step(batch, 0.1); }).find("expected this rank's part"), std::string::npos);
  const auto refusal = [&](const train::TrainerOptions& options) {
    return error_of(
        [&] { train::Trainer(world(), *rig.network, models::classify(*rig.network), rig.loader->fields(), options); });
  };
  if (world().size() > 1) {
    EXPECT_NE(refusal({.global_batch = 8, .shards = world().size() - 1}).find("at least one for each rank"),
              std::string::npos);
  }
  EXPECT_NE(refusal({.global_batch = 0}).find("the global batch is 0"), std::string::npos);
  EXPECT_NE(refusal({.global_batch = 8, .accumulate = 0}).find("0 micro-batches"), std::string::npos);
}

TEST(Input, AFailedStepPoisons) {
  // Rank 0 alone takes a step, which fails: it must get out of it without the others.
  const comm::Communicator comm = comm::Communicator::world();
  Rig rig(comm, small(0));
  if (world().is_root()) {
    data::Batch batch = rig.loader->next();
    batch.at("image") = batch.at("image").to(DType::F32);
    EXPECT_NE(error_of([&] { rig.trainer->step(batch, 0.1); }).find("field 'image' of the batch is f32"),
              std::string::npos);
    EXPECT_TRUE(comm.poisoned());
  }
}

// y = x, without a gradient at run time.
class FailingOp : public Op {
 public:
  std::string_view name() const override { return "failing"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
  std::vector<Value> gradient(const Request& r) const override {
    return {apply_op(std::make_shared<FailingOp>(), {r.gradients[0]})};
  }
};

class FailingNet : public models::Classifier {
 public:
  Value operator()(Value x) const override { return out_(apply_op(std::make_shared<FailingOp>(), {in_(flatten(x))})); }

 private:
  nn::Child<nn::Linear> in_{this, "in", {.in = 36, .out = 2000}};
  nn::Child<nn::Linear> out_{this, "out", {.in = 2000, .out = 5}};
};

TEST(Input, AnErrorWithMessagesUnderWayNeedsNoOtherRankToEnd) {
  static int runs = 0;
  kernels::register_plain_kernel("failing", [](const kernels::KernelRequest& request, const kernels::Arguments& a) {
    check(++runs == 1, "failing", "no gradient today");
    std::copy_n(a.in<double>(0), request.outputs[0].shape.elements(), a.out<double>(0));
  });
  const comm::Communicator comm = comm::Communicator::world();
  Task task = small(0);
  task.network = [] { return std::make_unique<FailingNet>(); };
  task.options.bucket_bytes = 1;  // so that the gradients of `out` leave before the op fails
  {
    Rig rig(comm, task);
    if (world().is_root()) {
      EXPECT_NE(error_of([&] { rig.train(1); }).find("no gradient today"), std::string::npos);
      EXPECT_TRUE(comm.poisoned());
    }
    world().barrier();  // or it may be told that the others have left
  }
}

TEST(Model, AnUnusedParameterIsReportedByName) {
  Task task = small(0);
  task.network = [] { return std::make_unique<DropoutNet>(0.0); };
  task.model = [](const models::Classifier& n) {
    return [&n](const plan::Inputs& in) {
      in.graph().observe("logits", n(in["image"]));
      return plan::Traced{.loss = cross_entropy(scale_shift(flatten(in["image"]), 1), in["label"])};
    };
  };
  const std::string error = error_of([&] { Rig(world(), task); });
  EXPECT_NE(error.find("does not depend on 4 trainable parameters: in.weight, in.bias, out.weight, out.bias"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace lockstep::test

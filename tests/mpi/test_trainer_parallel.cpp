// However ranks share memory, update and talk, training gives the same bits: every path, weights and optimizer state
// shared or not, with and without a driving thread, for buckets of any size and ranks that lie on nodes in any way.
#include <memory>

#include "lockstep/comm/mpi_interop.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

using comm::Communicator;
using train::ParallelOptions;
using Path = ParallelOptions::Path;
using Overlap = ParallelOptions::Overlap;

// The ranks of the job as if they were on several nodes of their own.
struct Cluster {
  std::string name;
  Communicator comm;
};

std::vector<Cluster> clusters() {
  const int rank = world().rank(), size = world().size();
  std::vector<Cluster> all;
  const auto add = [&](std::string name, int node) {
    all.push_back({std::move(name), Communicator::world({.sharing_domain = formatted("node {}", node)})});
  };
  add("one node", 0);
  if (size > 1) add("a node each", rank);
  if (size > 2) add("1 and the others", rank > 0 ? 1 : 0);
  if (size > 3) add("two nodes", 2 * rank / size);
  if (size > 3) add("in turn", rank % 2);
  return all;
}

bool threads_may_call_mpi() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

struct Variant {
  std::string name;
  ParallelOptions parallel;
  std::int64_t bucket_bytes = 4096;
};

std::vector<Variant> variants(const Communicator& comm) {
  std::vector<Variant> all{
      {"auto", {}},
      {"one bucket", {}, 8 << 20},
      {"hierarchical", {.path = Path::Hierarchical}},
      {"messages", {.path = Path::Messages}},
      {"own weights", {.share_weights = false}},
      {"sharded optimizer", {.shard_optimizer = true}},
      {"sharded optimizer, own weights", {.share_weights = false, .shard_optimizer = true}, 8 << 20},
      {"sharded optimizer, messages", {.path = Path::Messages, .shard_optimizer = true}},
      {"late, hierarchical", {.late_updates = true}, 1},
      {"late, messages", {.path = Path::Messages, .late_updates = true}},
      {"late, sharded optimizer", {.path = Path::Messages, .shard_optimizer = true, .late_updates = true}, 1},
  };
  if (comm.node_count() == 1) all.push_back({"shared", {.path = Path::Shared}, 1});
  if (threads_may_call_mpi()) {
    all.push_back({"thread", {.overlap = Overlap::Thread}});
    all.push_back({"thread, messages", {.path = Path::Messages, .overlap = Overlap::Thread}, 1});
    all.push_back(
        {"late, thread, messages", {.path = Path::Messages, .overlap = Overlap::Thread, .late_updates = true}, 1});
    all.push_back({"thread, own weights", {.share_weights = false, .overlap = Overlap::Thread}});
    all.push_back({"thread, sharded optimizer", {.shard_optimizer = true, .overlap = Overlap::Thread}});
  }
  return all;
}

Task with(Task task, const Variant& variant) {
  const parallel::Wire wire = task.options.parallel.wire;
  task.options.parallel = variant.parallel;
  task.options.parallel.wire = wire;
  task.options.bucket_bytes = variant.bucket_bytes;
  return task;
}

// Wide enough for slices of several blocks; 301 samples by 128 end in a step of 45.
Task wide_task(std::shared_ptr<optim::UpdateRule> rule) {
  Task task;
  task.network = [] { return std::make_unique<models::Mlp>(std::vector<std::int64_t>{36, 131, 67, 5}); };
  task.options.rule = std::move(rule);
  task.lr = 0.01;
  task.steps = 4;
  return task;
}

using State = std::vector<io::NamedTensor>;

// The result of training, whole on the first rank.
struct ParallelOutcome {
  std::vector<double> losses;
  double evaluated;
  std::uint64_t hash;
  State state;
};

double evaluate_between(Rig& rig) {
  const auto position = rig.loader->position();
  rig.loader->seek({});
  const double loss = rig.trainer->evaluate(*rig.loader).loss;
  rig.loader->seek(position);
  return loss;
}

ParallelOutcome outcome_of(Rig& rig, double evaluated) {
  return {rig.losses, evaluated, rig.trainer->weights_hash(), rig.trainer->state()};
}

ParallelOutcome train_on(const Communicator& comm, const Task& task) {
  Rig rig(comm, task);
  rig.train(2);
  const double evaluated = evaluate_between(rig);
  rig.train(task.steps - 2);
  return outcome_of(rig, evaluated);
}

void expect_same(const ParallelOutcome& got, const ParallelOutcome& expected, bool is_root, const std::string& what) {
  EXPECT_EQ(got.losses, expected.losses) << what;
  EXPECT_EQ(got.evaluated, expected.evaluated) << what;
  EXPECT_EQ(got.hash, expected.hash) << what;
  if (!is_root) return;
  ASSERT_EQ(got.state.size(), expected.state.size()) << what;
  for (std::size_t t = 0; t < got.state.size(); ++t) {
    const Tensor &a = got.state[t].tensor, &b = expected.state[t].tensor;
    EXPECT_EQ(got.state[t].name, expected.state[t].name) << what;
    EXPECT_TRUE(a.bytes() == b.bytes() && std::equal(a.raw(), a.raw() + a.bytes(), b.raw()))
        << what << ": " << got.state[t].name;
  }
}

// In each cluster every `stride`-th variant, another first one in each.
void expect_same_everywhere(const Task& task, const std::string& what, std::size_t stride = 1) {
  const bool sharded = task.options.shards > 0;
  const Task plain = with(task, {"messages", {.path = Path::Messages}});
  const ParallelOutcome expected = sharded ? train_on(Communicator::self(), plain) : train_on(world(), plain);
  const std::vector<Cluster> all = clusters();
  for (std::size_t c = 0; c < all.size(); ++c) {
    const std::vector<Variant> of_cluster = variants(all[c].comm);
    for (std::size_t v = c % stride; v < of_cluster.size(); v += stride) {
      expect_same(train_on(all[c].comm, with(task, of_cluster[v])), expected, all[c].comm.is_root(),
                  formatted("{}: {}, {}", what, all[c].name, of_cluster[v].name));
    }
  }
}

TEST(Parallel, OneMachineCanBeSeveralNodes) {
  std::vector<int> nodes;
  for (const Cluster& c : clusters()) nodes.push_back(c.comm.node_count());
  const std::vector<int> expected{1, world().size(), 2, 2, 2};
  EXPECT_TRUE(std::equal(nodes.begin(), nodes.end(), expected.begin()));
}

TEST(Parallel, NoOptionChangesABitOfMomentumSgd) {
  Task task = wide_task(optim::sgd({.momentum = 0.9}));
  task.options.shards = 9;
  expect_same_everywhere(task, "9 shards");
  task.options.shards = 0;
  expect_same_everywhere(task, "no shards", 2);
}

TEST(Parallel, NoOptionChangesABitOfAdam) {
  Task task = wide_task(optim::adam({}));
  task.options.update.weight_decay = 0.01;
  task.options.clip_norm = 0.3;
  expect_same_everywhere(task, "adam, clipped");
}

// Norms of whole parameters, of which each rank owns a part, and the average of the weights, which is evaluated.
TEST(Parallel, NoOptionChangesABitOfLamb) {
  Task task = wide_task(optim::lamb({}));
  task.options.update = {.weight_decay = 0.01, .clip_value = 0.01, .clip_layer_norm = 0.1};
  task.options.clip_norm = 0.3;
  task.options.average.ema = 0.75;
  expect_same_everywhere(task, "lamb, clipped in three ways, moving average", 3);
}

TEST(Parallel, NoOptionChangesABitOfLars) {
  Task task;
  task.samples = 50;
  task.channels = 3;
  task.side = 8;
  task.network = make_resnet;
  task.options.global_batch = 32;
  task.options.shards = 8;
  task.options.rule = optim::lars({});
  task.options.average.ema = 0.5;
  task.options.noise_scale = true;
  task.lr = 1;
  task.steps = 4;
  expect_same_everywhere(task, "resnet by lars, moving average, noise scale", 4);
}

TEST(Parallel, NoOptionChangesABitOfANarrowWire) {
  Task task = wide_task(optim::sgd({.momentum = 0.9}));
  task.options.shards = 5;
  task.options.parallel.wire = parallel::Wire::BF16;
  expect_same_everywhere(task, "bf16", 2);
  const Task exact = [&] {
    Task t = task;
    t.options.parallel.wire = parallel::Wire::Exact;
    return t;
  }();
  EXPECT_NE(train_on(Communicator::self(), task).losses, train_on(Communicator::self(), exact).losses);
}

TEST(Parallel, NoOptionChangesABitOfAConvNet) {
  Task task;
  task.samples = 50;
  task.channels = 3;
  task.side = 8;
  task.network = make_resnet;
  task.options.global_batch = 32;
  task.options.shards = 8;
  task.options.accumulate = 2;
  task.options.rule = optim::sgd({.momentum = 0.9});
  task.steps = 3;
  expect_same_everywhere(task, "resnet", 3);
}

// The first rank's state on all of them, as a checkpoint's reader gives it.
State broadcast_of(const Communicator& comm, State state) {
  for (io::NamedTensor& t : state) comm.broadcast(std::span(t.tensor.raw(), t.tensor.bytes()));
  return state;
}

TEST(Parallel, StateMovesBetweenOptions) {
  Task task = wide_task(optim::adam({}));
  task.options.shards = 9;
  const ParallelOutcome undisturbed = train_on(Communicator::self(), task);
  for (const auto& [node_name, comm] : clusters()) {
    const std::vector<Variant> all = variants(comm);
    for (std::size_t v = static_cast<std::size_t>(comm.node_count()) % 2; v < all.size(); v += 2) {
      const Variant &from = all[v], &to = all[(v + 5) % all.size()];
      Rig first(comm, with(task, from));
      first.train(2);
      const double evaluated = evaluate_between(first);
      Rig second(comm, with(task, to));
      second.train(1);  // values and states that load() replaces
      second.trainer->load(broadcast_of(comm, first.trainer->state()), first.trainer->updates());
      second.loader->seek(first.loader->position());
      second.losses = first.losses;
      second.train(task.steps - 2);
      expect_same(outcome_of(second, evaluated), undisturbed, comm.is_root(),
                  formatted("{}: {} to {}", node_name, from.name, to.name));
      first.train(task.steps - 2);  // state() left it as it was
      expect_same(outcome_of(first, evaluated), undisturbed, comm.is_root(),
                  formatted("{}: {} goes on", node_name, from.name));
    }
  }
}

TEST(Parallel, HalvesTrainIndependentModelsAtOnce) {
  const int colour = world().rank() % 2;
  const Communicator half = world().split(colour, -world().rank());
  Task task = wide_task(optim::sgd({.momentum = 0.9}));
  task.options.shards = 4;
  task.options.seed = 20 + static_cast<std::uint64_t>(colour);
  const ParallelOutcome expected = train_on(Communicator::self(), task);
  // Each half in its own way, so that their steps do not keep time.
  for (const Variant& variant : variants(half)) {
    Task mine = with(task, variant);
    if (colour == 1) mine.options.bucket_bytes = 1;
    expect_same(train_on(half, mine), expected, half.is_root(), formatted("half {}: {}", colour, variant.name));
  }
}

}  // namespace
}  // namespace lockstep::test

#include "lockstep/comm/communicator.h"

#include <algorithm>
#include <numeric>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/communicator_state.h"
#include "lockstep/comm/environment.h"
#include "lockstep/comm/mpi_interop.h"
#include "lockstep/core/error.h"

namespace lockstep::comm {
namespace {

constexpr const char* kNode = "node";
constexpr const char* kCross = "cross";

MPI_Group group_of(CommunicatorState& state) {
  MPI_Group group = MPI_GROUP_NULL;
  state.verify(MPI_Comm_group(state.handle(), &group), "translate", "MPI_Comm_group");
  return group;
}

// Returns for each of `ranks` in `from` its rank in `to`, or -1. Not collective.
std::vector<int> translate_ranks(CommunicatorState& from, std::span<const int> ranks, CommunicatorState& to) {
  std::vector<int> result(ranks.size(), -1);
  MPI_Group source = group_of(from), target = group_of(to);
  const int code =
      MPI_Group_translate_ranks(source, static_cast<int>(ranks.size()), ranks.data(), target, result.data());
  const int freed[] = {MPI_Group_free(&source), MPI_Group_free(&target)};
  to.verify(code, "translate", "{} ranks", ranks.size());
  for (const int each : freed) to.verify(each, "translate", "MPI_Group_free");
  std::replace(result.begin(), result.end(), static_cast<int>(MPI_UNDEFINED), -1);
  return result;
}

std::vector<int> iota(int n) {
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

// Builds communicators. Their constructors are private so that each communicator has a topology and its groups.
class CommunicatorFactory {
 public:
  static Communicator root(MPI_Comm caller, const CommunicatorOptions& options);
  static Communicator split(const Communicator& parent, std::optional<int> color, int key, const std::string& name);
  static Communicator duplicate(const Communicator& parent);
  static CommunicatorState& state(const Communicator& comm) { return *comm.state_; }

 private:
  static void agree_on_limit(const Communicator& comm, std::int64_t limit);
  static Topology discover(const Communicator& comm, const NodeIdentity& identity);
  static OwnedComm split_handle(CommunicatorState& state, int color, int key);
  static Communicator adopt_child(const Communicator& parent, MPI_Comm handle, const std::string& name);
  static void add_builtin_groups(Communicator& comm);
};

Communicator CommunicatorFactory::root(MPI_Comm caller, const CommunicatorOptions& options) {
  check(Environment::active(), "communicator", "MPI is not running: construct an Environment first");
  check(options.message_limit >= 1, "communicator", "message_limit is {} bytes, expected at least 1",
        options.message_limit);
  const NodeIdentity identity = detect_identity(options.sharing_domain);
  MPI_Comm handle = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(caller, &handle);
  check(code == MPI_SUCCESS, "communicator", "MPI_Comm_dup failed with code {} on host {}", code, identity.host);
  Communicator comm(std::make_shared<CommunicatorState>(handle, std::make_shared<Poison>(),
                                                        CommunicatorOptions{}.message_limit, identity.host));
  CommunicatorState& created = *comm.state_;
  created.parent_ranks = iota(created.size);
  agree_on_limit(comm, options.message_limit);
  created.message_limit = options.message_limit;
  created.topology = discover(comm, identity);
  add_builtin_groups(comm);
  return comm;
}

// With different limits, ranks would split one message into different parts and wait for each other.
void CommunicatorFactory::agree_on_limit(const Communicator& comm, std::int64_t limit) {
  const std::int64_t least = comm.allreduce(limit, ReduceOp::Min), most = comm.allreduce(limit, ReduceOp::Max);
  check(least == most, "communicator", "message_limit differs between ranks: {} to {} bytes", least, most);
}

// Splits by identity first, and by MPI's shared-memory split only within equal identities: over all ranks, MPI compares
// host names, and would take two machines with one name for one.
Topology CommunicatorFactory::discover(const Communicator& comm, const NodeIdentity& identity) {
  CommunicatorState& state = *comm.state_;
  const std::vector<std::string> hosts = comm.allgather_strings(identity.host);
  const std::vector<std::string> keys = comm.allgather_strings(identity.key);
  std::vector<NodeIdentity> identities;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    identities.push_back({hosts[rank], keys[rank]});
  }
  const Topology by_identity(identities);
  const OwnedComm same_identity = split_handle(state, by_identity.node_of(state.rank), state.rank);
  MPI_Comm_set_errhandler(same_identity.get(), MPI_ERRORS_RETURN);
  MPI_Comm shared = MPI_COMM_NULL;
  state.verify(MPI_Comm_split_type(same_identity.get(), MPI_COMM_TYPE_SHARED, state.rank, MPI_INFO_NULL, &shared),
               "communicator", "split into ranks that share memory");
  const OwnedComm shares_memory(shared);
  int lowest = state.rank;
  state.verify(MPI_Bcast(&lowest, 1, MPI_INT, 0, shared), "communicator", "agreeing on node numbers");
  return {hosts, comm.allgather(lowest)};
}

OwnedComm CommunicatorFactory::split_handle(CommunicatorState& state, int color, int key) {
  state.begin("split");
  MPI_Comm handle = MPI_COMM_NULL;
  state.verify(MPI_Comm_split(state.handle(), color, key, &handle), "split", "color {}, key {}", color, key);
  return OwnedComm(handle);
}

Communicator CommunicatorFactory::adopt_child(const Communicator& parent, MPI_Comm handle, const std::string& name) {
  CommunicatorState& from = *parent.state_;
  Communicator child(std::make_shared<CommunicatorState>(handle, from.poison, from.message_limit, from.host));
  CommunicatorState& state = *child.state_;
  state.group_name = name;
  state.parent_ranks = translate_ranks(state, iota(state.size), from);
  state.topology = from.topology.restricted_to(state.parent_ranks);
  if (name != kNode && name != kCross) {
    add_builtin_groups(child);
  }
  return child;
}

Communicator CommunicatorFactory::split(const Communicator& parent, std::optional<int> color, int key,
                                        const std::string& name) {
  OwnedComm handle = split_handle(*parent.state_, color.value_or(MPI_UNDEFINED), key);
  return handle.get() == MPI_COMM_NULL ? Communicator(nullptr) : adopt_child(parent, handle.release(), name);
}

Communicator CommunicatorFactory::duplicate(const Communicator& parent) {
  CommunicatorState& state = *parent.state_;
  state.begin("duplicate");
  MPI_Comm handle = MPI_COMM_NULL;
  state.verify(MPI_Comm_dup(state.handle(), &handle), "duplicate", "MPI_Comm_dup");
  return adopt_child(parent, handle, state.group_name);
}

void CommunicatorFactory::add_builtin_groups(Communicator& comm) {
  CommunicatorState& state = *comm.state_;
  const int node = state.topology.node_of(state.rank), local = state.topology.local_rank(state.rank);
  state.groups[kNode] = std::make_unique<Communicator>(split(comm, node, state.rank, kNode));
  state.groups[kCross] = std::make_unique<Communicator>(split(comm, local, state.rank, kCross));
}

Communicator::~Communicator() = default;
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;

Communicator Communicator::world(const CommunicatorOptions& options) {
  return CommunicatorFactory::root(MPI_COMM_WORLD, options);
}

Communicator Communicator::self() { return CommunicatorFactory::root(MPI_COMM_SELF, {}); }

Communicator duplicate_of(MPI_Comm caller, const CommunicatorOptions& options) {
  check(caller != MPI_COMM_NULL, "communicator", "the caller's communicator is MPI_COMM_NULL");
  return CommunicatorFactory::root(caller, options);
}

MPI_Comm handle_of(const Communicator& comm) { return CommunicatorFactory::state(comm).handle(); }

int Communicator::rank() const { return state_->rank; }
int Communicator::size() const { return state_->size; }
int Communicator::local_rank() const { return topology().local_rank(rank()); }
int Communicator::local_size() const { return topology().local_size(rank()); }
int Communicator::node_rank() const { return topology().node_of(rank()); }
int Communicator::node_count() const { return topology().node_count(); }
const Topology& Communicator::topology() const { return state_->topology; }
std::int64_t Communicator::message_limit() const { return state_->message_limit; }

Communicator Communicator::duplicate() const { return CommunicatorFactory::duplicate(*this); }

Communicator Communicator::split(int color, int key) const {
  state_->require(color >= 0, "split", "color is {}, expected 0 or more", color);
  return CommunicatorFactory::split(*this, color, key, "");
}

const Communicator* Communicator::add_group(const std::string& name, std::span<const int> ranks) {
  // Checked before the split, which would give ranks with different lists groups of different members.
  check_same(*this, formatted("group {}", name), joined(ranks, ", "));
  state_->require(!name.empty() && !state_->groups.contains(name), "group",
                  "a group '{}' exists already, expected a new name", name);
  state_->require(!ranks.empty(), "group", "group '{}' has no ranks, expected at least one", name);
  std::optional<int> key;
  std::vector<bool> seen(static_cast<std::size_t>(size()));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    state_->require_rank(ranks[i], "group", formatted("group '{}': rank", name));
    state_->require(!seen[static_cast<std::size_t>(ranks[i])], "group", "group '{}' names rank {} twice", name,
                    ranks[i]);
    seen[static_cast<std::size_t>(ranks[i])] = true;
    if (ranks[i] == rank()) {
      key = static_cast<int>(i);
    }
  }
  Communicator created =
      CommunicatorFactory::split(*this, key ? std::optional(0) : std::nullopt, key.value_or(0), name);
  auto& slot = state_->groups[name];
  if (key) {
    slot = std::make_unique<Communicator>(std::move(created));
  }
  return slot.get();
}

const Communicator* Communicator::find_group(const std::string& name) const {
  // The ranks of a node are all on one node, and the ranks across nodes all have one local rank.
  if (!name.empty() && name == state_->group_name) {
    return this;
  }
  const auto found = state_->groups.find(name);
  state_->require(found != state_->groups.end(), "group", "there is no group '{}'", name);
  return found->second.get();
}

const Communicator& Communicator::group(const std::string& name) const {
  const Communicator* found = find_group(name);
  state_->require(found != nullptr, "group", "this rank is not a member of group '{}'", name);
  return *found;
}

int Communicator::to_parent(int member) const {
  state_->require_rank(member, "translate", "rank");
  return state_->parent_ranks[static_cast<std::size_t>(member)];
}

std::optional<int> Communicator::from_parent(int parent_rank) const {
  const auto& ranks = state_->parent_ranks;
  const auto found = std::find(ranks.begin(), ranks.end(), parent_rank);
  return found == ranks.end() ? std::nullopt : std::optional(static_cast<int>(found - ranks.begin()));
}

std::optional<int> Communicator::translate(int member, const Communicator& other) const {
  state_->begin("translate");
  state_->require_rank(member, "translate", "rank");
  const int result = translate_ranks(*state_, std::span(&member, 1), *other.state_)[0];
  return result < 0 ? std::nullopt : std::optional(result);
}

void Communicator::poison(std::string_view reason) const { state_->set_poison(reason); }

bool Communicator::poisoned() const { return state_->poison->set.load(std::memory_order_acquire); }

bool Communicator::has_abandoned() const { return state_->poison->abandoned.load(std::memory_order_acquire); }

void Communicator::abort(int code) const { abort_job(code); }

}  // namespace lockstep::comm

#include "lockstep/train/run/session.h"

#include <fmt/format.h>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/core/log.h"
#include "lockstep/host/address_space.h"
#include "lockstep/host/process_memory.h"
#include "lockstep/train/options/command_line_error.h"
#include "lockstep/train/report/trace_file.h"
#include "lockstep/train/run/requests.h"
#include "lockstep/train/run/session_setup.h"
#include "lockstep/train/step/autotune.h"

namespace lockstep::train {
namespace {

// oneDNN 2.6 crashes where it is initialised without memory; a small model takes half as much.
constexpr std::size_t kKernelNeeds = std::size_t{32} << 20;
// Stacks and heaps of the threads that write checkpoints: HDF5 1.10 crashes where it is initialised without memory.
constexpr std::size_t kWriterNeeds = std::size_t{32} << 20;
constexpr std::int64_t kColdUpdates = 3;  // their memory and caches are not warm yet: a trace begins after them

}  // namespace

Session::Session(const comm::Communicator& comm, Options options, std::string name, nlohmann::json program,
                 data::Catalogue catalogue)
    : comm_(comm),
      options_(std::move(options)),
      name_(std::move(name)),
      program_(std::move(program)),
      dtype_(options_.precision == "f64" ? DType::F64 : DType::F32) {
  set_fault_rank(comm_.rank());
  check_together(comm_, [&] {
    validate(options_, comm_.size());
    data::check_dataset(catalogue, options_.dataset, options_.data_dir);
  });
  comm::check_same(comm_, "the program", name_);
  comm::check_same(comm_, "the options", options_by_line(options_, program_));
  threads_ = share_threads(comm_, options_);
  apply(threads_);
  // Kernels sum in another order with other threads or instructions; then who holds a shard would show in the bits.
  if (options_.shards > 0) comm::check_same(comm_, "with --shards, threads and instructions", arithmetic(threads_));
  comm::collectively(comm_, [&] {
    data_ = data::open_datasets(catalogue, {.name = options_.dataset,
                                            .dir = options_.data_dir,
                                            .limit_train = options_.limit_train,
                                            .limit_eval = options_.limit_eval,
                                            .seed = options_.seed});
  });
  check_together(comm_, [&] { validate_data(options_, comm_.size(), data_.train->size()); });
  comm::check_same(comm_, "the data", fingerprint(*data_.train) + "\n" + fingerprint(*data_.eval));
  open_output();
  watch_ranks();
}

Session::~Session() = default;

void Session::wait_for_others() {
  heartbeat_.wait();
  comm_.barrier();
}

void Session::open_output() {
  comm::collectively(comm_, [&] {
    if (comm_.is_root()) output_ = prepare_output(options_);
  });
  comm::collectively(comm_, [&] {
    log_ = std::make_unique<Log>(LogOptions{.output = options_.output,
                                            .rank = comm_.rank(),
                                            .host = comm_.host(),
                                            .quiet = options_.quiet,
                                            .folder = output_ ? output_->held() : nullptr});
  });
  if (output_ && !output_->warning().empty()) log()->warn("{}", output_->warning());
  for (const std::string& note : comm_.topology().notes()) log()->warn("{}", note);
}

// What can hinder the run comes before what changes files of an earlier one: a start that is refused leaves that whole.
void Session::take_output() {
  const auto output = output_->held();
  if (memory_.checkpoint > 0) check_address_space("a checkpoint", memory_.checkpoint + kWriterNeeds);
  if (saves_by_itself()) start_writer();
  MetricsWriter::check_file(*output);
  HashLog::check_file(*output);
  if (!options_.trace.empty()) trace_file_ = open_trace(options_.trace);
  // Lines of a run that is not this one go aside, also where this one begins from a checkpoint.
  const auto before = output_->run();
  const auto lines_until = before && *before != run_ ? std::nullopt : resumed_step_;
  metrics_ = std::make_unique<MetricsWriter>(output, lines_until);
  hashes_ = std::make_unique<HashLog>(output, options_.hash_every, lines_until);
  set_checkpoints_aside(*output, resumed_step_, run_);
  output_->begin(run_);
}

void Session::open_loaders() {
  const data::Remainder remainder = options_.remainder == "drop" ? data::Remainder::Drop : data::Remainder::Keep;
  // Evaluation has no micro-batches: its steps are as large as one of training's.
  const std::int64_t eval_batch =
      std::max(trainer_->world().tree.leaves(), trainer_->options().global_batch / options_.accumulate);
  train_loader_ = std::make_unique<data::Loader>(
      *data_.train, trainer_->sampler(*data_.train, {.remainder = remainder}),
      image_transforms(options_, data_, dtype_, true), data::LoaderOptions{.threads = threads_.loaders});
  eval_loader_ = std::make_unique<data::Loader>(
      *data_.eval, trainer_->sampler(*data_.eval, {.shuffle = false, .global_batch = eval_batch}),
      image_transforms(options_, data_, dtype_, false), data::LoaderOptions{.threads = threads_.loaders});
}

// That of an epoch, if the run comes to it: what a batch norm cannot be trained on is said before anything is trained.
void Session::check_last_batch() const {
  const std::int64_t rest = data_.train->size() % global_batch(options_, comm_.size());
  if (rest > 0 && options_.remainder != "drop" && total_steps() >= train_loader_->sampler().steps_per_epoch())
    trainer_->check_batch(rest);
}

Trainer& Session::build(const nn::Module& module, const ModelFunction& model) {
  memory_.before = process_memory().resident;
  comm::collectively(comm_, [&] { check_address_space("compiling the model", kKernelNeeds); });
  std::vector<data::Field> fields = data_.train->fields();
  for (data::Field& f : fields) {
    if (f.name == "image") f.dtype = dtype_;
  }
  trainer_ = std::make_unique<Trainer>(
      comm_, module, model, std::move(fields),
      TrainerOptions{
          .global_batch = global_batch(options_, comm_.size()),
          .shards = options_.shards,
          .accumulate = options_.accumulate,
          .precision = dtype_,
          .seed = options_.seed,
          .rule = update_rule(options_),
          .update = {.weight_decay = options_.weight_decay, .decay_biases_and_norms = !options_.no_decay_norm_bias},
          .bucket_bytes = static_cast<std::int64_t>(options_.bucket_mb * 1048576),
          .clip_norm = options_.clip_norm,
          .parallel = parallel_options(options_),
          .guards = guard_options(options_),
          .compile = compile_options(comm_, options_),
          .autotune = options_.autotune,
          .autotune_cache = autotune_cache(),
          .heartbeat = &heartbeat_});
  trainer_->on_roll_back([this] { return roll_back(); });
  comm::collectively(comm_, [&] { open_loaders(); });
  check_together(comm_, [&] { check_last_batch(); });
  forecast_memory();
  announce();
  resume();
  if (!options_.weights.empty() && !resumed_step_) load_weights();
  comm::collectively(comm_, [&] {
    if (comm_.is_root()) take_output();
  });
  log_->to_file("this is run " + run_);
  schedule_ = schedule(options_, schedule_epochs(), global_batch(options_, comm_.size()));
  progress_ =
      std::make_unique<Progress>(*log_, ProgressOptions{.epochs = options_.epochs,
                                                        .steps_per_epoch = train_loader_->sampler().steps_per_epoch(),
                                                        .total_steps = total_steps(),
                                                        .log_every = options_.log_every});
  state_.step = trainer_->updates();
  watch_clock();
  trainer_->listen([this] { return my_requests(); }, kStopRequests);
  log_hashes();
  if (options_.profile) trainer_->start_profile();
  began_ = std::chrono::steady_clock::now();
  return *trainer_;
}

void Session::forecast_memory() {
  memory_.model = trainer_->bytes();
  memory_.plan = trainer_->model().arena().bytes();
  const std::size_t known = memory_.before + trainer_->model().bytes(), resident = process_memory().resident;
  memory_.kernels = resident > known ? resident - known : 0;
  memory_.batches = train_loader_->bytes() + eval_loader_->bytes();
  const bool saves = comm_.is_root() && saves_by_itself();
  // The copy of the tensors, the file's image, and what the HDF5 library takes when it is used first (5 MiB
  // with 1.10.8).
  constexpr std::size_t kHdf5 = 5 << 20;
  if (saves || !options_.resume.empty()) memory_.checkpoint = 2 * trainer_->state_bytes() + kHdf5;
}

namespace {

// Rank 0's last step. Network time that ends before this rank waits is hidden behind its computing.
nlohmann::ordered_json communication(const GradientEngine::StepTimes& t) {
  const auto per_second = [](std::int64_t bytes, std::int64_t ns) {
    return ns > 0 ? static_cast<double>(bytes) / static_cast<double>(ns) : 0;  // bytes per ns are GB/s
  };
  const double network = 1e-9 * static_cast<double>(t.traffic.network_ns), exposed = t.waiting + t.earlier;
  return {
      {"compute_seconds", t.compute},    {"waiting_seconds", exposed},
      {"network_seconds", network},      {"network_hidden_seconds", std::max(0.0, network - t.waiting)},
      {"network_bytes", t.traffic.sent}, {"network_gb_per_second", per_second(t.traffic.sent, t.traffic.network_ns)},
      {"node_bytes", t.traffic.summed},  {"node_gb_per_second", per_second(t.traffic.summed, t.traffic.summing_ns)},
      {"slowest_rank", t.slowest},       {"slowest_lead_seconds", t.slowest_lead}};
}

}  // namespace

void Session::announce() const {
  std::int64_t elements = 0;
  for (const NamedParameter& p : trainer_->model().parameters().parameters()) {
    if (p.parameter->role != Role::Buffer) elements += p.parameter->shape.elements();
  }
  const CpuInfo cpu = cpu_info();
  const std::string mpi = comm::Environment::library();  // its name and version, then where it was built
  const auto logger = log();
  logger->info("{}: {} {} on {} {}, {} thread{} + {} loader{} each; {} ({}), {}", name_, comm_.size(),
               comm_.size() == 1 ? "rank" : "ranks", comm_.node_count(), comm_.node_count() == 1 ? "host" : "hosts",
               threads_.compute, threads_.compute == 1 ? "" : "s", threads_.loaders, threads_.loaders == 1 ? "" : "s",
               cpu.model, cpu.instructions, mpi.substr(0, mpi.find(',')));
  logger->info("hosts: {}", host_list(comm_));
  const PlacementReport placement = placement_report(comm_, threads_);
  logger->info("cores: {}", placement.summary);
  for (const std::string& warning : placement.warnings) logger->warn("{}", warning);
  const std::string shards = options_.shards > 0 ? fmt::format(" in {} shards", options_.shards) : "";
  logger->info("model: {} parameters, {}; global batch {}{}, {} updates per epoch", elements,
               trainer_->model().options().bf16 ? "bf16" : name_of(dtype_), global_batch(options_, comm_.size()),
               shards, train_loader_->sampler().steps_per_epoch());
  logger->info("memory: {}", memory_.str());
  logger->info("gradients: {}", trainer_->describe_parallel());
  logger->info("data: {}: {} training and {} evaluation samples, {} classes", options_.dataset, data_.train->size(),
               data_.eval->size(), data_.classes);
}

double Session::epochs_done() const {
  const data::SamplerPosition at = train_loader_->position();
  return static_cast<double>(at.epoch) + static_cast<double>(at.offset) / static_cast<double>(data_.train->size());
}

std::int64_t Session::total_steps() const {
  if (options_.epochs == 0) return options_.max_steps;
  const std::int64_t all = options_.epochs * train_loader_->sampler().steps_per_epoch();
  return options_.max_steps > 0 ? std::min(all, options_.max_steps) : all;
}

double Session::schedule_epochs() const {
  return static_cast<double>(total_steps()) / static_cast<double>(train_loader_->sampler().steps_per_epoch());
}

double Session::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

bool Session::done() const {
  return (options_.max_steps > 0 && trainer_->updates() >= options_.max_steps) ||
         (options_.epochs > 0 && train_loader_->position().epoch >= options_.epochs);
}

bool Session::saves_by_itself() const {
  return options_.checkpoint_every > 0 || options_.checkpoint_every_steps > 0 || options_.checkpoint_every_minutes > 0;
}

bool Session::next_epoch() {
  check(trainer_ != nullptr, "session", "next_epoch() before build()");
  if (evaluation_due_ && !stopped_) make_up_evaluation();
  if (stopped_ || done()) {
    heartbeat_.enter(Heartbeat::Phase::Ending);
    if (epoch_ < 0)
      log()->info("nothing to train: {} updates and {:.2f} epochs are done", trainer_->updates(), epochs_done());
    // A run that is shorter than its trace brings what there is.
    if (!options_.trace.empty() && !traced_ && epoch_ >= 0)
      finish_trace(std::max<std::int64_t>(0, trainer_->updates() - resumed_step_.value_or(0) - kColdUpdates));
    if (is_unsaved() && saves_by_itself()) {
      save_checkpoint();
      if (!stopped_ && !done()) return next_epoch();  // rolled back
    }
    finish_checkpoints();
    keep_files();  // of ranks that looked before rank 0 had made the folder again
    log()->info("memory: at most {:.0f} MiB resident on this rank",
                static_cast<double>(process_memory().peak) / 1048576);
    if (comm_.is_root() && trainer_->profile() != nullptr)
      log()->info("{}", profile_table(trainer_->profile()->result()));
    if (const std::int64_t skipped = trainer_->skipped(); skipped > 0 && comm_.is_root())
      log()->warn("guard: {} of this run {} skipped", skipped == 1 ? "1 update" : fmt::format("{} updates", skipped),
                  skipped == 1 ? "was" : "were");
    if (status() == kExitStopped) log()->info("stopped in good order; go on with --resume auto");
    return false;
  }
  epoch_ = train_loader_->position().epoch;
  first_step_of_epoch_ = trainer_->updates() - train_loader_->position().offset / global_batch(options_, comm_.size());
  if (epoch_sums_.epoch != epoch_) epoch_sums_ = {.epoch = epoch_};  // else those of a checkpoint in its middle
  epoch_samples_ = 0;
  epoch_began_ = seconds();
  return true;
}

Session::Batches Session::batches() { return Batches(*this); }

void Session::Batches::advance() {
  if (!batch_.names.empty()) session_.train_loader_->recycle(std::move(batch_));
  batch_ = {};
  const bool more =
      session_.train_loader_->position().epoch == session_.epoch_ && !session_.done() && !session_.stopped_;
  if (!more) {
    open_ = false;
    return;
  }
  session_.rate_ = session_.schedule_(session_.epochs_done());
  session_.heartbeat_.enter(Heartbeat::Phase::Loading);
  batch_ = session_.train_loader_->next();
}

void Session::report(const Totals& step) {
  if (step.outcome == StepOutcome::RolledBack) return;
  evaluation_due_ = evaluation_is_due();
  add_to_epoch(step);
  follow_trace();
  const std::int64_t now = trainer_->updates();
  state_ = {.epoch = epoch_ + 1,
            .step_in_epoch = now - first_step_of_epoch_,
            .step = now,
            .samples = step.samples,
            .loss = step.loss,
            .accuracy = step.fraction("correct"),
            .lr = rate_};
  progress_->update(state_);
  logged_samples_ += step.samples;
  log_hashes();
  if (options_.log_every > 0 && now % options_.log_every == 0) {
    const double time = seconds();
    write_metrics("train", step, static_cast<double>(logged_samples_) / std::max(1e-9, time - logged_at_));
    logged_at_ = time;
    logged_samples_ = 0;
  }
  if (train_loader_->position().epoch > epoch_ || done()) write_epoch_metrics();  // before a checkpoint of this step
  if (options_.checkpoint_every_steps > 0 && now % options_.checkpoint_every_steps == 0) {
    // An evaluation that is due comes first, so that a run resumed from there need not make it up.
    save_after_evaluation_ = evaluation_due_ || train_loader_->position().epoch > epoch_;
    if (!save_after_evaluation_) save_checkpoint();
  }
  answer_requests();
}

void Session::add_to_epoch(const Totals& step) {
  // A checkpoint of the epoch's begin, to which a run went back in mid-epoch, has those of the epoch before.
  if (epoch_sums_.epoch != epoch_) epoch_sums_ = {.epoch = epoch_};
  const bool applied = step.outcome == StepOutcome::Applied;  // the loss of a skipped update may be no number
  epoch_sums_.loss += applied ? step.loss * step.weight : 0;
  epoch_sums_.weight += applied ? step.weight : 0;
  epoch_sums_.samples += step.samples;
  for (const auto& [name, count] : step.counts) epoch_sums_.counts[name] += count;
  epoch_samples_ += step.samples;
}

void Session::finish_epoch() {
  progress_->finish_epoch(state_);
  progress_->pause();
  if (stopped_) return;
  evaluation_due_ = evaluation_is_due();
  if (evaluation_due_ && !trainer_->verify()) return;  // rolled back: another epoch may follow
  if (evaluation_due_) evaluate_epoch();
  if (stopped_) return;
  const bool whole = train_loader_->position().epoch > epoch_;
  const bool due = options_.checkpoint_every > 0 && whole && (epoch_ + 1) % options_.checkpoint_every == 0;
  if (due || std::exchange(save_after_evaluation_, false)) {
    save_checkpoint();
  } else {
    keep_files();
  }
}

Totals Session::evaluate() {
  eval_loader_->seek({});
  progress_->begin_evaluation(data_.eval->size());
  Totals totals = trainer_->evaluate(*eval_loader_, [this](std::int64_t samples) { progress_->evaluated(samples); });
  progress_->end_evaluation();
  return totals;
}

void Session::write_metrics(const std::string& split, const Totals& totals, double samples_per_second) {
  if (!metrics_) return;
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();
  if (split == "train") extra = communication(trainer_->times());
  if (split == "train" && trainer_->skipped() > 0) extra["skipped"] = trainer_->skipped();
  if (split == "epoch") extra["samples"] = totals.samples;
  if (split == "epoch" && epoch_sums_.after) extra["after_step"] = *epoch_sums_.after;
  metrics_->write({.step = trainer_->updates(),
                   .epoch = epoch_ + 1,
                   .split = split,
                   .loss = totals.loss,
                   .accuracy = totals.fraction("correct"),
                   .lr = rate_,
                   .samples_per_second = samples_per_second,
                   .seconds = seconds(),
                   .extra = std::move(extra)});
}

void Session::write_epoch_metrics() {
  const double took = std::max(1e-9, seconds() - epoch_began_);
  write_metrics("epoch",
                {.loss = epoch_sums_.mean_loss(),
                 .weight = epoch_sums_.weight,
                 .samples = epoch_sums_.samples,
                 .counts = epoch_sums_.counts},
                static_cast<double>(epoch_samples_) / took);
}

// Before the first update, and after those that are due.
void Session::log_hashes() {
  const std::int64_t step = trainer_->updates();
  if (options_.hash_every == 0 || step % options_.hash_every != 0) return;
  const std::vector<TensorHash> hashes = trainer_->state_hashes();
  comm::collectively(comm_, [&] {
    if (hashes_ && hashes_->is_due(step)) hashes_->write(step, hashes);
  });
}

void Session::follow_trace() {
  if (options_.trace.empty() || traced_) return;
  const std::int64_t done = trainer_->updates() - resumed_step_.value_or(0);
  if (done == kColdUpdates) trainer_->note_in(&trace_);
  if (done == kColdUpdates + options_.trace_steps) finish_trace(options_.trace_steps);
}

void Session::finish_trace(std::int64_t updates) {
  trainer_->note_in(nullptr);
  if (!comm_.is_root()) heartbeat_.wait();
  const bool written = write_trace(comm_, trace_, std::move(trace_file_), options_.trace);
  heartbeat_.beat();
  traced_ = true;
  if (!written) return;
  if (updates > 0) {
    log()->info("trace: {} updates of {} ranks in {}", updates, comm_.size(), options_.trace);
  } else if (comm_.is_root()) {
    log()->warn("trace: the run ended within its first {} updates, which are not traced: {} shows none", kColdUpdates,
                options_.trace);
  }
}

}  // namespace lockstep::train

// A solver that trains a surrogate of its most expensive part while it computes, and uses it. Heat flows and fuel burns
// on a square with fixed walls: T' = T_xx + T_yy + Q r, Y' = -r, r = A Y exp(-E / T). The fuel of each cell burns by
// many small steps between two steps of the heat: that part the surrogate learns, (T, Y) -> fuel burnt / Y.
// docs/in_situ.md explains the program; examples/heat/heat.f90 is the same in Fortran.
//
//   mpirun -n 4 heat --steps 200 --learners 2 --budget 0.01 --csv heat.csv --state heat --resume
#include "surrogate.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr double kHeat = 1.5, kActivation = 4, kFactor = 200;  // Q, E, A
constexpr double kDt = 2e-3;
constexpr int kSmallSteps = 2000;  // of the fuel, in each step
constexpr int kAudit = 37;         // one in so many cells is computed by the solver whatever the surrogate says

// Fuel burnt in one step, as a share of the fuel that was there: the expensive part.
double burn(double temperature, double fuel) {
  double y = fuel;
  for (int i = 0; i < kSmallSteps; ++i) {
    const double burnt = kDt / kSmallSteps * kFactor * y * std::exp(-kActivation / temperature);
    y -= burnt;
    temperature += kHeat * burnt;
  }
  return fuel > 0 ? 1 - y / fuel : 0;
}

// This rank's rows of the square, with one row of a neighbour or of the wall on both sides.
struct Field {
  int nx, ny;  // own rows: 1 to ny
  std::vector<double> t, y;
  double limit = 0;  // how far apart the two networks may be in a cell that the surrogate computes
  Field(int width, int rows) : nx(width), ny(rows), t(at(0, rows + 2), 1.0), y(at(0, rows + 2), 1.0) {}
  std::size_t at(int i, int j) const {
    return static_cast<std::size_t>(j) * static_cast<std::size_t>(nx) + static_cast<std::size_t>(i);
  }
  std::size_t size() const { return static_cast<std::size_t>(nx) * static_cast<std::size_t>(ny); }
  double* own(std::vector<double>& values) { return values.data() + nx; }
};

// The work of a step on this rank; the CSV file has sums and maxima over all ranks.
struct Account {
  double by_solver = 0, by_surrogate = 0, solver_seconds = 0, surrogate_seconds = 0, train_seconds = 0;
  bool learns = false;
  double error = 0, estimate = 0;  // largest audited error and estimate among the cells that the surrogate computed
};

// Burns the fuel of all cells of this rank, by the surrogate where its two networks agree, else by the solver.
void burn_all(Field& field, Surrogate& surrogate, const Options& options, int step, Account& account) {
  const std::size_t n = field.size();
  double *t = field.own(field.t), *y = field.own(field.y);
  std::vector<double> inputs(kInputs * n), share(n, 0), apart(n, 1e9), known_inputs, known;
  for (std::size_t i = 0; i < n; ++i) inputs[2 * i] = t[i] - 2, inputs[2 * i + 1] = 2 * y[i] - 1;  // about -1 to 1
  double begin = MPI_Wtime();
  if (surrogate.is_ready() && !surrogate.predict(inputs, share, apart)) std::fill(apart.begin(), apart.end(), 1e9);
  account.surrogate_seconds = MPI_Wtime() - begin;
  begin = MPI_Wtime();
  for (std::size_t i = 0; i < n; ++i) {
    const bool trusted = apart[i] < field.limit;
    const bool audited = (i + static_cast<std::size_t>(step)) % kAudit == 0;
    if (trusted) {
      account.by_surrogate += 1;
      account.estimate = std::max(account.estimate, apart[i]);
    }
    if (trusted && !audited) continue;
    const double exact = burn(t[i], y[i]);
    if (trusted) account.error = std::max(account.error, std::abs(share[i] - exact));
    if (!trusted) account.by_solver += 1;
    share[i] = exact;
    known_inputs.insert(known_inputs.end(), {inputs[2 * i], inputs[2 * i + 1]});
    known.push_back(exact);
  }
  account.solver_seconds = MPI_Wtime() - begin;
  // Networks that agree may both be wrong: the audits say how much agreement is needed for an error below the
  // tolerance. A limit of 0, as of a run whose tolerance was 0, would stay 0.
  field.limit = account.error > options.tolerance
                    ? field.limit / 2
                    : std::min(std::max(1.05 * field.limit, options.tolerance / 100), options.tolerance);
  for (std::size_t i = 0; i < n; ++i) {
    const double burnt = share[i] * y[i];
    y[i] -= burnt;
    t[i] += kHeat * burnt;
  }
  account.learns = surrogate.learns();
  begin = MPI_Wtime();
  surrogate.train(known_inputs, known);
  account.train_seconds = MPI_Wtime() - begin;
}

// One explicit step of the heat, with walls of temperature 1 and a spark in the middle of the square at the start.
void conduct(Field& f, MPI_Comm comm) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const int below = rank > 0 ? rank - 1 : MPI_PROC_NULL, above = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
  MPI_Sendrecv(&f.t[f.at(0, f.ny)], f.nx, MPI_DOUBLE, above, 1, &f.t[f.at(0, 0)], f.nx, MPI_DOUBLE, below, 1, comm,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(&f.t[f.at(0, 1)], f.nx, MPI_DOUBLE, below, 2, &f.t[f.at(0, f.ny + 1)], f.nx, MPI_DOUBLE, above, 2, comm,
               MPI_STATUS_IGNORE);
  const std::vector<double> old = f.t;
  for (int j = 1; j <= f.ny; ++j) {
    for (int i = 0; i < f.nx; ++i) {
      const double left = i > 0 ? old[f.at(i - 1, j)] : 1, right = i + 1 < f.nx ? old[f.at(i + 1, j)] : 1;
      f.t[f.at(i, j)] += 0.2 * (left + right + old[f.at(i, j - 1)] + old[f.at(i, j + 1)] - 4 * old[f.at(i, j)]);
    }
  }
}

[[noreturn]] void give_up(const std::string& reason) {
  std::fprintf(stderr, "heat: %s\n", reason.c_str());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // MPICH's launcher loses what it has not passed on
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// Ends all ranks unless the file has the sizes of this run: those of another one would make a field of nonsense.
void check_sizes(const int (&found)[3], const int (&expected)[3], const std::string& name) {
  const auto text = [](const int(&sizes)[3]) {
    return std::to_string(sizes[0]) + " x " + std::to_string(sizes[1]) + " cells on one of " +
           std::to_string(sizes[2]) + " ranks";
  };
  if (!std::equal(found, found + 3, expected))
    give_up(name + ": it has " + text(found) + ", expected " + text(expected) +
            "; --resume needs the --cells and the number of ranks of the run that saved it");
}

// The solver's own restart file, one per rank: sizes, step, fields. Ends all ranks where another run's sizes are read.
bool restart(Field& f, int& step, int ranks, const std::string& name, bool write) {
  std::fstream file(name, std::ios::binary | (write ? std::ios::out | std::ios::trunc : std::ios::in));
  const auto move = [&](void* data, std::size_t bytes) {
    const auto n = static_cast<std::streamsize>(bytes);
    write ? static_cast<void>(file.write(static_cast<const char*>(data), n))
          : static_cast<void>(file.read(static_cast<char*>(data), n));
  };
  const int expected[3] = {f.nx, f.ny, ranks};
  int sizes[3] = {f.nx, f.ny, ranks};
  move(sizes, sizeof(sizes));
  if (!write && file.good()) check_sizes(sizes, expected, name);
  move(&step, sizeof(step));
  move(&f.limit, sizeof(f.limit));
  move(f.t.data(), f.t.size() * sizeof(double));
  move(f.y.data(), f.y.size() * sizeof(double));
  return file.good();
}

// Returns the seconds by which training has made this step longer: those of the learner that came last, as the others
// have also waited for it.
double report(std::FILE* csv, int step, Account mine, MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  double sums[5] = {mine.by_solver, mine.by_surrogate, mine.solver_seconds, mine.surrogate_seconds, mine.train_seconds};
  double largest[3] = {mine.error, mine.estimate, mine.learns ? -mine.train_seconds : -1e9};
  MPI_Allreduce(MPI_IN_PLACE, sums, 5, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Allreduce(MPI_IN_PLACE, largest, 3, MPI_DOUBLE, MPI_MAX, comm);
  const double added = largest[2] > -1e9 ? -largest[2] : 0;
  static double cell_seconds = 0;  // of one cell by the solver, measured
  const double solved = sums[0] + sums[1] / kAudit;
  if (sums[0] > 0) cell_seconds = sums[2] / solved;
  const double saved = (sums[0] + sums[1]) * cell_seconds - sums[2] - sums[3];
  if (rank == 0 && csv != nullptr) {
    std::fprintf(csv, "%d,%.0f,%.0f,%.3e,%.3e,%.6f,%.6f,%.6f,%.6f\n", step, sums[0], sums[1], largest[1], largest[0],
                 saved, sums[4], sums[2], added);
    std::fflush(csv);
  }
  return added;
}

// Saves solver and surrogate together at this step; ranks that do not learn then predict with the saved networks.
void save_all(Field& field, Surrogate& surrogate, const Options& options, int step, MPI_Comm comm) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const std::string name = options.state + "-" + std::to_string(step / options.save_every % 2);  // two in turn
  int learners = surrogate.learns() ? 1 : 0;
  const bool saved = learners == 0 || surrogate.save(name);
  int whole[2] = {restart(field, step, ranks, name + "." + std::to_string(rank), true) ? 1 : 0, saved ? 1 : 0};
  MPI_Allreduce(MPI_IN_PLACE, &learners, 1, MPI_INT, MPI_SUM, comm);
  MPI_Allreduce(MPI_IN_PLACE, whole, 2, MPI_INT, MPI_MIN, comm);
  const bool networks = whole[1] != 0 && learners > 0;
  if (networks && !surrogate.learns()) surrogate.load(name);
  if (rank != 0) return;
  bool published = whole[0] != 0 && (networks || learners == 0);
  if (published) {
    std::ofstream newest(options.state + ".new");
    newest << name << ' ' << networks << '\n';
    newest.close();
    published =
        newest.good() && std::rename((options.state + ".new").c_str(), (options.state + ".newest").c_str()) == 0;
  }
  if (!published) {
    std::fprintf(stderr, "heat: the state of step %d could not be saved as %s; --resume goes on from the one before\n",
                 step, name.c_str());
  }
}

int simulate(const Options& options) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm learners = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank < options.learners ? 0 : MPI_UNDEFINED, rank, &learners);
  const int first = options.cells * rank / ranks, last = options.cells * (rank + 1) / ranks;
  Field field(options.cells, last - first);
  field.limit = options.tolerance;
  for (int j = 1; j <= field.ny; ++j) {
    for (int i = 0; i < field.nx; ++i) {
      const double x = (i + 0.5) / options.cells - 0.5, z = (first + j - 0.5) / options.cells - 0.5;
      field.t[field.at(i, j)] += 1.5 * std::exp(-60 * (x * x + z * z));
    }
  }
  int begin = 0, late = 0;
  double training = 0, longest = 0;
  {
    Surrogate surrogate(learners, options);
    std::string name;
    int networks = 0;
    if (options.resume) std::ifstream(options.state + ".newest") >> name >> networks;
    if (options.resume && name.empty() && rank == 0)
      std::fprintf(stderr, "heat: there is no %s.newest: this run begins at its first step\n", options.state.c_str());
    if (!name.empty()) {
      const std::string file = name + "." + std::to_string(rank);
      if (!restart(field, begin, ranks, file, false))
        give_up(file + ": cannot be read whole, expected the state that this rank saved");
      if (networks != 0) surrogate.load(name);
      ++begin;
    }
    std::FILE* csv =
        rank == 0 && !options.csv.empty() ? std::fopen(options.csv.c_str(), begin > 0 ? "a" : "w") : nullptr;
    if (csv == nullptr && rank == 0 && !options.csv.empty())
      give_up(options.csv + ": cannot be written: " + std::strerror(errno));
    if (csv != nullptr && begin == 0)
      std::fputs("step,solver_cells,surrogate_cells,estimate,error,saved_s,training_s,solver_s,training_added_s\n",
                 csv);
    for (int step = begin; step < options.steps; ++step) {
      Account account;
      burn_all(field, surrogate, options, step, account);
      conduct(field, MPI_COMM_WORLD);
      const double took = report(csv, step, account, MPI_COMM_WORLD);
      training += took;
      longest = std::max(longest, took);
      late += took > options.budget ? 1 : 0;
      if (!options.state.empty() && (step + 1) % options.save_every == 0)
        save_all(field, surrogate, options, step, MPI_COMM_WORLD);
      if (step == options.kill_at && rank == 0) std::raise(SIGKILL);  // as a node that fails, for tests
    }
    if (csv != nullptr) std::fclose(csv);
  }
  if (rank == 0 && options.budget < 1e9 && begin < options.steps) {
    std::printf(
        "training made a step longer by %.4f s on the mean, by %.4f at most; %d of %d steps by more than the budget of "
        "%g\n",
        training / (options.steps - begin), longest, late, options.steps - begin, options.budget);
  }
  double sums[2] = {0, 0};
  for (std::size_t i = 0; i < field.size(); ++i) sums[0] += field.own(field.t)[i], sums[1] += field.own(field.y)[i];
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("heat %.12e fuel %.12e\n", sums[0], sums[1]);
  if (learners != MPI_COMM_NULL) MPI_Comm_free(&learners);
  return 0;
}

constexpr const char* kHelp =
    "Usage: mpirun -n RANKS heat [OPTION VALUE]... [--resume]\n"
    "  --cells N       cells along each side of the square\n"
    "  --steps N       time steps\n"
    "  --learners N    ranks that train the surrogate\n"
    "  --updates N     training steps after each time step, at most\n"
    "  --budget S      seconds of training after each time step, at most\n"
    "  --tolerance X   error of the surrogate above which the solver computes\n"
    "  --csv FILE      one line for each time step\n"
    "  --state FILE    where the training is saved, every --save-every N time steps; --resume starts from there\n"
    "  --kill-at N     this time step ends rank 0 by SIGKILL, for tests\n";

Options options_of(int argc, char** argv, int rank) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--resume") {
      o.resume = true;
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : "";
    if (name == "--cells")
      o.cells = std::atoi(value);
    else if (name == "--steps")
      o.steps = std::atoi(value);
    else if (name == "--learners")
      o.learners = std::atoi(value);
    else if (name == "--updates")
      o.updates = std::atoi(value);
    else if (name == "--save-every")
      o.save_every = std::max(1, std::atoi(value));
    else if (name == "--kill-at")
      o.kill_at = std::atoi(value);
    else if (name == "--budget")
      o.budget = std::atof(value);
    else if (name == "--tolerance")
      o.tolerance = std::atof(value);
    else if (name == "--csv")
      o.csv = value;
    else if (name == "--state")
      o.state = value;
    else {
      const bool help = name == "--help" || name == "-h";
      o.end = help ? 0 : 2;
      if (!help && rank == 0) std::fprintf(stderr, "heat: unknown option %s\n", name.c_str());
      if (rank == 0) std::fputs(kHelp, help ? stdout : stderr);
      return o;
    }
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const Options options = options_of(argc, argv, rank);
  const int status = options.end >= 0 ? options.end : simulate(options);
  MPI_Finalize();
  return status;
}

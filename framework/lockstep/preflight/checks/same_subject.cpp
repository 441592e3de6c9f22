// Texts that all ranks must have alike, or the job would compute something else on some of them.
#include "lockstep/preflight/checks/checks.h"
#include "lockstep/preflight/same.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

template <std::string SameTexts::*kText>
json gather_same_subject(const Subject& subject, Exchange&) {
  return subject.same.*kText;
}

// All ranks have nothing to compare, or each has its text.
bool compared(const Facts& facts) {
  for (const RankFacts& rank : facts) {
    if (rank.value != json("")) return true;
  }
  return false;
}

std::vector<Finding> conclude_same_subject(const Facts& facts, const char* name, const char* mend) {
  return compared(facts) ? same(name, facts, Level::Red, mend) : std::vector<Finding>{};
}

}  // namespace

const Check kProgram{"program", Cost::Required, gather_same_subject<&SameTexts::program>, [](const Facts& facts) {
                       return conclude_same_subject(facts, "the program", "start the same program on all ranks");
                     }};

// Hosts of several kinds may need builds of their own: an empty text on every rank says that this is meant.
const Check kBuild{"build", Cost::Required, gather_same_subject<&SameTexts::build>, [](const Facts& facts) {
                     return conclude_same_subject(facts,
                                                  "the build of the program (unless LOCKSTEP_ALLOW_BUILDS is set)",
                                                  "copy the program of rank 0 to that host");
                   }};

const Check kOptions{"options", Cost::Required, gather_same_subject<&SameTexts::options>, [](const Facts& facts) {
                       return conclude_same_subject(facts, "the options", "give all ranks the same options");
                     }};

// Kernels sum in another order with other threads or instructions; then the holder of a shard would show in the bits.
const Check kArithmetic{"arithmetic", Cost::Required, gather_same_subject<&SameTexts::arithmetic>,
                        [](const Facts& facts) {
                          return conclude_same_subject(facts, "with --shards, threads and instructions",
                                                       "--threads N, and OPENBLAS_CORETYPE for all ranks");
                        }};

const Check kData{"data", Cost::Required, gather_same_subject<&SameTexts::data>, [](const Facts& facts) {
                    return conclude_same_subject(facts, "the data", "copy rank 0's data set to that host");
                  }};

}  // namespace lockstep::preflight

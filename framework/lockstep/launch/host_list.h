// The hosts of a job in the order of their ranks, whatever form they were written in. Readers of one form each stand
// beside this header (hostfile.h, host_option.h, ...); all of them refuse what is wrong with an Error that says where
// it stands and what to write instead.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/host/network.h"

namespace lockstep::launch {

struct Host {
  std::string name;                      // or its address; IPv6 without brackets
  std::string user{};                    // for ssh; empty: not said
  std::int64_t slots = 0;                // ranks that it takes; 0: not said, Open MPI takes one per core
  std::int64_t max_slots = 0;            // most ranks that it takes when oversubscribed; 0: no such limit
  std::vector<std::string> addresses{};  // of its network interfaces; one per local rank, if a rank table names them
  std::string origin{};                  // where it is written first: "hosts:3", "-H, entry 2"

  std::string login() const;  // as ssh takes it: NAME or USER@NAME
  bool operator==(const Host&) const = default;
};

struct HostList {
  std::vector<Host> hosts;  // none twice

  const Host* find(std::string_view name) const;  // nullptr: not one of them
  bool all_slots_said() const;
  std::int64_t slots() const;  // the sum of those that are said
};

// More ranks on one host are a mistake, whoever wrote them.
inline constexpr std::int64_t kMostSlots = 65536;

// Throws unless `name` can be handed to ssh, mpirun and files as the name of a host or user: nothing that looks like an
// option or that a shell reads as something else.
void check_host_name(std::string_view site, std::string_view origin, std::string_view name);

// "me@node1" into user and name.
void set_login(Host& host, std::string_view login);

// Whether `logins`, in the form of Host::login(), name the host `name`, as whatever user.
bool names_host(std::span<const std::string> logins, std::string_view name);

// A whole number from 0 to kMostSlots; -1: the text is none.
std::int64_t slots_from(std::string_view text);

// The names and addresses of the machine this runs on.
struct OwnNames {
  std::string host{};                    // its host name
  std::vector<host::Interface> there{};  // of its interfaces
  std::string listed{};                  // the text of /etc/hosts

  static OwnNames of_this_machine();
};

// Whether `name` means the machine this runs on, which mpirun reaches without ssh: its host name, one of its addresses,
// or a name to which /etc/hosts gives one of them. A name server is not asked, as one that does not answer would hold a
// start up for seconds for each host; a name that it alone knows counts as another machine's.
bool is_this_machine(std::string_view name, const OwnNames& own = OwnNames::of_this_machine());

}  // namespace lockstep::launch

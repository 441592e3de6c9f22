// This machine's network interfaces, and which of them a job uses: what LOCKSTEP_INTERFACE means here, as settings of
// Open MPI.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/host/address.h"
#include "lockstep/host/process_settings.h"

namespace lockstep::host {

// One address of an interface that is up; an interface with two addresses is there twice.
struct Interface {
  std::string name;
  Address address{};
  int prefix = 0;
  bool loopback = false;  // an interface that reaches this machine alone

  Network network() const { return network_of(address, prefix); }
  bool operator==(const Interface&) const = default;
};

std::vector<Interface> interfaces();  // in the system's order

std::string host_name();  // of this machine, with its domain if the system's name has one; "unknown": there is none

// The interface through which packets to `peer` leave, by the kernel's routes; nothing is sent. Nothing: there is no
// route.
std::optional<Interface> interface_to(const Address& peer, std::span<const Interface> there);

// The addresses of a name, or the address itself; none: it cannot be resolved. May ask a name server.
std::vector<Address> resolve(const std::string& name);
// The addresses that `text`, which has the form of /etc/hosts, gives to a name. No name server is asked.
std::vector<Address> listed_addresses(std::string_view text, std::string_view name);

// One entry of LOCKSTEP_INTERFACE on this machine: an interface, and the word for it that Open MPI takes in
// btl_tcp_if_include, which is a name or a network; an address alone it refuses, and then takes every interface.
struct InterfaceChoice {
  std::string name, include;
  bool operator==(const InterfaceChoice&) const = default;
};

// A list of names (eth0), networks (10.1.0.0/16) and addresses; an address stands for the network of this machine's
// interface that holds it, the narrowest of several, so that the address of one host can be given to all. Throws Error,
// with what is there, for an entry without an interface. `host` is the name that errors give.
std::vector<InterfaceChoice> choose_interfaces(std::string_view setting, std::span<const Interface> there,
                                               const std::string& host);

// The choices as one list for btl_tcp_if_include, in the system's order: in another one, Open MPI 4.1 pairs this host's
// interfaces with those of a peer crosswise.
std::string include_list(const std::vector<InterfaceChoice>& chosen, std::span<const Interface> there);

struct InterfaceFacts {
  std::string setting{};  // LOCKSTEP_INTERFACE; empty: Open MPI's own choice
  std::string policy{};   // LOCKSTEP_INTERFACE_POLICY: "all" (or empty) or "rank"
  std::vector<Interface> there{};
  std::string host{};
  int local_rank = 0;
  bool several_hosts = false;  // the job's ranks are on several
};

// Variables for the environment of one rank before MPI_Init. With "all", Open MPI 4.1 spreads long messages of every
// rank over all interfaces in the list. With "rank", local rank i of a node prefers entry i modulo their number: all of
// them connect, the others carry what cannot go there. Local ranks of one number, which exchange gradients between
// nodes, then use the same network. Throws Error for a loopback interface in a job on several hosts, which would hang.
std::vector<ProcessSettings::Variable> interface_settings(const InterfaceFacts& facts);

// Sets them in this process from its environment.
void apply_interface_setting(int local_rank, bool several_hosts);

}  // namespace lockstep::host

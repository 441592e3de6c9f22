#!/bin/sh
# The packages of Debian 12 that an installed Lockstep runs with, and ssh: what both container recipes call.
set -eu
folder=$(dirname "$0")
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
# shellcheck disable=SC2046  # words
apt-get -q install -y --no-install-recommends $(cat "$folder/packages")
apt-get clean
rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_* # each container makes a host key of its own when it starts
cp "$folder/ssh_config" /etc/ssh/ssh_config.d/lockstep.conf

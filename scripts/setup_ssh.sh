#!/usr/bin/env bash
# Makes hosts log in to each other without a question, as mpirun needs it: scripts/setup_ssh.sh [options] HOST...
# Call it on the host where mpirun will be called. It makes a key on each host that has none (a private key never leaves its
# host), has all hosts accept the keys of all, writes their host keys into known_hosts, and then tries the login of every
# pair. What is in order stays as it is: it can be called again.
#   -p, --port PORT       of the hosts' ssh servers (22)
#   -l, --login NAME      the user on the hosts (the one here)
#   -i, --first-key FILE  a key that the hosts accept already; without it ssh asks for the password, once a host
#   --hostfile FILE       the hosts of a hostfile of mpirun's
#   --replace             replace host keys that have changed since they were noted
#   --dry-run             say what would be done, and do nothing
# The host keys of new hosts are taken as the network shows them: compare the fingerprints that it prints with those of
# `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the host, where you do not trust the network.
# Exit code: 0 every pair works, 1 something is wrong, and was said, 2 wrong command line.
set -euo pipefail

fail() { # STATUS MESSAGE
  echo "setup_ssh.sh: $2" >&2
  exit "$1"
}
wrong=0
complain() {
  echo "setup_ssh.sh: $*" >&2
  wrong=$((wrong + 1))
}

port=22 login=$(id -un) first_key='' replace=false dry_run=false hosts=()
hosts_of_file() { sed 's/#.*//' "$1" | awk 'NF {sub(/.*@/, "", $1); if (!seen[$1]++) print $1}'; }
while (($#)); do
  case $1 in
    -h | --help)
      sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
    -p | --port | -l | --login | -i | --first-key | --hostfile)
      (($# > 1)) || fail 2 "$1 needs a value"
      case $1 in
        -p | --port) port=$2 ;;
        -l | --login) login=$2 ;;
        -i | --first-key) first_key=$2 ;;
        --hostfile)
          [[ -r $2 ]] || fail 2 "the hostfile '$2' cannot be read"
          mapfile -t -O "${#hosts[@]}" hosts < <(hosts_of_file "$2")
          ;;
      esac
      shift
      ;;
    --replace) replace=true ;;
    --dry-run) dry_run=true ;;
    -*) fail 2 "unknown option '$1' (see --help)" ;;
    *) hosts+=("$1") ;;
  esac
  shift
done
((${#hosts[@]} > 0)) || fail 2 "no hosts; expected HOST... or --hostfile FILE (see --help)"
if ! [[ $port =~ ^[0-9]{1,5}$ ]] || ((port == 0 || port > 65535)); then fail 2 "the port is '$port', expected 1 to 65535"; fi
[[ -z $first_key || -r $first_key ]] || fail 2 "the key '$first_key' cannot be read"
for host in "${hosts[@]}"; do
  [[ $host =~ ^[A-Za-z0-9._-]+$ && $host != -* ]] || fail 2 "'$host' is no name of a host (slots and users do not belong here)"
done
doubled=$(printf '%s\n' "${hosts[@]}" | sort | uniq -d | xargs)
[[ -z $doubled ]] || fail 2 "given twice: $doubled"
for tool in ssh ssh-keygen ssh-keyscan getent; do
  type -P "$tool" >/dev/null || fail 127 "no $tool here (apt-get install openssh-client)"
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
quoted() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

# --- the part of one host: a script for any sh, which is sent with the settings it needs in front ---------------------------
# It prints lines of a kind and a host or a value; what it changes it says.
host_part() { # VERB
  echo "verb=$1 port=$port login=$(quoted "$login") hosts=$(quoted "${hosts[*]}") replace=$replace dry_run=$dry_run"
  if [[ $1 == known ]]; then echo "host_keys=$(quoted "$(<"$scratch/host_keys")")"; fi
  if [[ $1 == authorize ]]; then echo "public_keys=$(quoted "$(<"$scratch/public_keys")")"; fi
  cat <<'END'
set -eu
umask 077
folder=$HOME/.ssh
$dry_run || mkdir -p "$folder"

# Appends lines to a file of which an editor may have left the last line without an end.
append() { # FILE TEXT
  if [ -s "$1" ] && [ -n "$(tail -c 1 "$1")" ]; then echo >>"$1"; fi
  printf '%s\n' "$2" >>"$1"
}

entry_of() { if [ "$port" = 22 ]; then echo "$1"; else echo "[$1]:$port"; fi; }

verb_key() {
  for kind in ed25519 ecdsa rsa; do
    [ -e "$folder/id_$kind" ] || continue
    # A public part that is missing can be made again, unless the key has a passphrase.
    public=$(cat "$folder/id_$kind.pub" 2>/dev/null || ssh-keygen -y -P '' -f "$folder/id_$kind" 2>/dev/null </dev/null) || continue
    echo "key there $folder/id_$kind"
    echo "public $public"
    return
  done
  if [ -e "$folder/id_ed25519" ]; then
    echo "$(uname -n): $folder/id_ed25519 cannot be used without its public part; expected: ssh-keygen -y -f $folder/id_ed25519 >$folder/id_ed25519.pub" >&2
    exit 1
  fi
  echo "key made $folder/id_ed25519"
  $dry_run && return
  # The standard input is this script.
  ssh-keygen -q -t ed25519 -N '' -C "$(id -un)@$(uname -n)" -f "$folder/id_ed25519" </dev/null
  echo "public $(cat "$folder/id_ed25519.pub")"
}

verb_names() {
  echo "name $(uname -n)"
  for host in $hosts; do
    echo "address $host $(getent ahosts "$host" | awk '$2 == "STREAM" {print $1; exit}')"
  done
}

verb_authorize() {
  file=$folder/authorized_keys
  printf '%s\n' "$public_keys" | while IFS= read -r key; do
    # Options may stand before a key, and any comment behind it.
    [ -n "$key" ] || continue
    if [ -e "$file" ] && grep -qF -- "$(echo "$key" | cut -d ' ' -f 1,2)" "$file"; then continue; fi
    echo "authorized ${key##* }"
    $dry_run || append "$file" "$key"
  done
  $dry_run || chmod 700 "$folder"
  $dry_run || chmod 600 "$file"
}

verb_known() {
  file=$folder/known_hosts
  for host in $hosts; do
    entry=$(entry_of "$host")
    shown=$(printf '%s\n' "$host_keys" | awk -v entry="$entry" '$1 == entry')
    noted=
    if [ -e "$file" ]; then noted=$(ssh-keygen -F "$entry" -f "$file" | grep -v '^#' || true); fi
    known=false stale=
    while read -r _ kind key; do
      before=$(printf '%s\n' "$noted" | awk -v kind="$kind" '$2 == kind {print $3}')
      [ -n "$before" ] || continue
      known=true
      printf '%s\n' "$before" | grep -qxF -- "$key" || stale="$stale $kind"
    done <<LINES
$shown
LINES
    if [ -n "$stale" ]; then
      lines=$(ssh-keygen -F "$entry" -f "$file" | sed -n 's/.*found: line \([0-9]*\).*/\1/p' | paste -sd, -)
      if ! $replace; then
        echo "stale $host $file:$lines has another key than the host shows ($(echo $stale | tr ' ' ,))"
        continue
      fi
      echo "replaced $host $file:$lines"
      $dry_run || ssh-keygen -q -R "$entry" -f "$file" >/dev/null 2>&1
      $dry_run || append "$file" "$shown"
    elif ! $known; then
      echo "noted $host"
      $dry_run || append "$file" "$shown"
    fi
  done
}

verb_logins() {
  for host in $hosts; do
    answer=$(ssh -o BatchMode=yes -o ConnectTimeout=20 -o LogLevel=ERROR -p "$port" -l "$login" "$host" uname -n 2>&1 </dev/null) &&
      echo "works $host $answer" || echo "fails $host $(echo "$answer" | tail -n 1 | tr -d '\r')"
  done
}

"verb_$verb"
END
}

here() { host_part "$1" | sh; }
# The key that was just made, if the host takes it; else the one given, or a password.
ssh_words=(ssh -p "$port" -l "$login" -o ConnectTimeout=20 -o LogLevel=ERROR)
accepts_us() { "${ssh_words[@]}" -o BatchMode=yes "$1" true </dev/null 2>"$scratch/refusal"; }
there() { host_part "$2" | "${ssh_words[@]}" -o BatchMode=yes "$1" sh; } # HOST VERB

# --- 1. names: each host resolves here, and to an address of its own ---------------------------------------------------------
echo "hosts: ${hosts[*]}; port $port, user $login"
if $dry_run; then echo "--dry-run: nothing is changed"; fi
declare -A address=() owner=()
here names >"$scratch/names"
while read -r kind host at; do
  [[ $kind == address ]] || continue
  if [[ -z $at ]]; then
    complain "$host: the name does not resolve here; expected a line 'ADDRESS $host' in /etc/hosts, or in DNS"
    continue
  fi
  if [[ $at == 127.* || $at == ::1 ]]; then
    complain "$host is $at here, which no other host can use; expected its address in the network of the job (/etc/hosts)"
  fi
  if [[ -n ${owner[$at]-} ]]; then complain "$host and ${owner[$at]} are both $at here; expected an address for each host"; fi
  address[$host]=$at owner[$at]=$host
  echo "name: $host is $at"
done <"$scratch/names"
((wrong == 0)) || exit 1

# --- 2. host keys, as the network shows them ---------------------------------------------------------------------------------
: >"$scratch/host_keys"
for host in "${hosts[@]}"; do
  if ! ssh-keyscan -T 20 -p "$port" "$host" 2>/dev/null | grep -v '^#' >"$scratch/shown"; then
    complain "$host: no ssh server answers on port $port of ${address[$host]}; is it up (systemctl status ssh), or on another port (-p)?"
    continue
  fi
  sort "$scratch/shown" >>"$scratch/host_keys"
  # The address is what the server was asked at; the name is what is noted.
  fingerprint=$(ssh-keygen -lf "$scratch/shown" | awk '{printf "%s%s %s", (NR > 1 ? ", " : ""), $NF, $2}')
  echo "host key: $host shows $fingerprint"
done
((wrong == 0)) || exit 1

note_host_keys() { # HOST, or nothing for this one: what verb_known printed
  local where=${1:-this host} kind host rest
  while read -r kind host rest; do
    case $kind in
      noted) echo "$where: $($dry_run && echo 'would note' || echo 'noted') the host key of $host" ;;
      replaced) echo "$where: $($dry_run && echo 'would replace' || echo 'replaced') the host key of $host, $rest" ;;
      stale) complain "$where: $rest. If $host was installed anew, call this again with --replace; if not, somebody answers in its place" ;;
    esac
  done
}
note_host_keys < <(here known)
((wrong == 0)) || exit 1

# --- 3. keys: one on each host, all accepted by all --------------------------------------------------------------------------
say_key() { # WHERE FILE
  local state path
  read -r _ state path < <(grep '^key ' "$2")
  if [[ $state == made ]]; then echo "$1: $($dry_run && echo 'would make' || echo 'made') the key $path"; fi
}
here key >"$scratch/key"
say_key "this host" "$scratch/key"
own_key=$(sed -n 's/^public //p' "$scratch/key")

# Our key, to where it is not accepted yet.
introduce() { # HOST
  local words=("${ssh_words[@]}")
  if [[ -n $first_key ]]; then words+=(-o BatchMode=yes -o IdentitiesOnly=yes -i "$first_key"); fi
  printf '%s\n' "$own_key" >"$scratch/public_keys"
  # With sh -c the standard input stays free for the question for a password.
  "${words[@]}" "$1" "sh -c $(quoted "$(host_part authorize)")" 2>"$scratch/refusal" >/dev/null
}
for host in "${hosts[@]}"; do
  if accepts_us "$host"; then continue; fi
  if $dry_run; then
    echo "$host: would be given the key of this host, by ${first_key:-password}"
    continue
  fi
  if introduce "$host" && accepts_us "$host"; then
    echo "$host: was given the key of this host"
  else
    complain "$host refuses ${first_key:-the password}: $(tail -n 1 "$scratch/refusal" | tr -d '\r'); expected -i with a key that it accepts, or the line of $(awk '/^key / {print $3}' "$scratch/key").pub in its ~$login/.ssh/authorized_keys"
  fi
done
((wrong == 0)) || exit 1
reached=()
for host in "${hosts[@]}"; do
  if ! $dry_run || accepts_us "$host"; then reached+=("$host"); fi
done

printf '%s\n' "$own_key" >"$scratch/all_keys"
for host in "${reached[@]}"; do
  there "$host" key >"$scratch/key"
  say_key "$host" "$scratch/key"
  sed -n 's/^public //p' "$scratch/key" >>"$scratch/all_keys"
done
awk 'NF && !seen[$2]++' "$scratch/all_keys" >"$scratch/public_keys"
for host in "${reached[@]}"; do
  while read -r _ whose; do
    echo "$host: $($dry_run && echo 'would accept' || echo 'accepts') the key of $whose"
  done < <(there "$host" authorize)
  note_host_keys "$host" < <(there "$host" known)
done

# --- 4. all hosts mean the same by a name ------------------------------------------------------------------------------------
declare -A bearer=()
for host in "${reached[@]}"; do
  while read -r kind name at; do
    if [[ $kind == name ]]; then
      if [[ -n ${bearer[$name]-} ]]; then
        complain "$host and ${bearer[$name]} both call themselves '$name' (uname -n); Open MPI takes them for one host: hostnamectl set-hostname on one"
      fi
      bearer[$name]=$host
    elif [[ -z $at ]]; then
      complain "$host: the name $name does not resolve there; expected ${address[$name]} (/etc/hosts)"
    # Debian gives a host's own name the address 127.0.1.1, which harms nobody.
    elif [[ $at != "${address[$name]}" && ! ($name == "$host" && $at == 127.*) ]]; then
      complain "$host: the name $name is $at there, and ${address[$name]} here; expected the same (/etc/hosts)"
    fi
  done < <(there "$host" names)
done

# --- 5. every pair -------------------------------------------------------------------------------------------------------------
if $dry_run; then
  echo "setup_ssh.sh: --dry-run: nothing was done"
  exit $((wrong > 0))
fi
here logins >"$scratch/logins.this host" &
for host in "${hosts[@]}"; do there "$host" logins >"$scratch/logins.$host" & done
wait
pairs=0
for from in "this host" "${hosts[@]}"; do
  while read -r kind to rest; do
    pairs=$((pairs + 1))
    [[ $kind == works ]] || complain "login from $from to $to: $rest"
  done <"$scratch/logins.$from"
done
expected=$((${#hosts[@]} * (${#hosts[@]} + 1)))
((pairs == expected)) || complain "of $expected logins $pairs were tried: a host was lost meanwhile"
((wrong == 0)) || fail 1 "$wrong faults, named above"
echo "setup_ssh.sh: all $expected logins work, from here and from each host to each"
if ((port != 22)); then echo "give mpirun: --mca plm_rsh_args '-p $port'"; fi

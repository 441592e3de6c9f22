#!/bin/sh
# heat.sh RUN_SH PROGRAM RANKS FOLDER: the heat example, killed and resumed, ends as one that nobody disturbed; a training
# that fails does not end the solver.
set -eux # the last line says where it failed
run=$1 program=$2 ranks=$3 folder=$4
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
heat() { "$run" "$ranks" "$program" --cells 24 --steps 60 --save-every 10 "$@"; }

heat --csv whole.csv --state whole >whole.txt
if heat --state stopped --kill-at 43 >killed.txt 2>&1; then
  echo "heat.sh: the run that was to be killed ended by itself" >&2
  exit 1
fi
[ -s stopped.newest ]
heat --state stopped --resume >resumed.txt
if ! cmp whole.txt resumed.txt; then
  echo "heat.sh: $(cat whole.txt) without a stop, $(cat resumed.txt) after a kill and a resume" >&2
  exit 1
fi
# The state of another number of cells, or one that is cut off, ends the run with a line that says so.
if heat --cells 16 --state stopped --resume >wrong.txt 2>wrong.log; then
  echo "heat.sh: a state of 24 x 24 cells was taken for one of 16 x 16" >&2
  exit 1
fi
grep -q 'heat: stopped-[01]\.[0-9]*: it has 24 x [0-9]* cells on one of [0-9]* ranks, expected 16 x ' wrong.log
for file in stopped-[01].0; do head -c 100 "$file" >short && mv short "$file"; done
if heat --state stopped --resume >wrong.txt 2>wrong.log; then
  echo "heat.sh: a state that is cut off was taken" >&2
  exit 1
fi
grep -q 'heat: stopped-[01]\.0: cannot be read whole' wrong.log
echo no-state >stopped.newest
if heat --state stopped --resume >wrong.txt 2>wrong.log; then
  echo "heat.sh: the name of a state that is not there was taken" >&2
  exit 1
fi
grep -q 'heat: .*: cannot be read' wrong.log
# No number of steps between two saves is taken as one.
heat --steps 2 --save-every 0 --state each >each.txt
[ -s each.newest ]
# The surrogate was used, its error was found by audits, and the result is nearly the solver's own.
awk -F, 'NR > 1 && $3 > 0 { used += $3; if ($5 > worst) worst = $5 } END { exit !(used > 60 * 576 / 2 && worst > 0 && worst < 0.02) }' whole.csv
heat --learners 0 >solver.txt
awk '{ heat[NR] = $2; fuel[NR] = $4 } function near(a, b) { return (a - b)^2 < (0.02 * b)^2 } END { exit !(near(heat[1], heat[2]) && near(fuel[1], fuel[2])) }' \
  whole.txt solver.txt

# After an exception, or a number that is not finite, the solver goes on alone and says why.
for fault in 'step.begin:throw:rank=0:at=100' 'batch.nan:corrupt:rank=0:at=100'; do
  LOCKSTEP_FAULT=$fault heat >failed.txt 2>failed.log
  grep -q '^heat .*fuel' failed.txt
  grep -q 'the solver goes on' failed.log
done
grep -q 'LOCKSTEP_ERROR_NOT_FINITE.*the loss is nan' failed.log

# A disk that is full costs the saved networks, and no bit of a simulation whose ranks all learn.
heat --learners 2 >both.txt
mkdir full
if unshare --mount mount -t tmpfs tmpfs full 2>/dev/null; then
  unshare --mount sh -c 'mount -t tmpfs -o size=96k tmpfs full && exec "$@"' sh \
    "$run" "$ranks" "$program" --cells 24 --steps 60 --save-every 10 --learners 2 --state full/state >full.txt 2>full.log
  cmp both.txt full.txt
  grep -q 'saving: .*No space left on device; the solver goes on' full.log
else
  echo "heat.sh: a full disk was not tried: it needs the right to mount"
fi

# A tolerance of 0 uses the networks nowhere, and a run that goes on with a higher one uses them. What cannot be saved or
# found is said.
heat --tolerance 0 --state raised --csv raised.csv >strict.txt
awk -F, 'NR > 1 && $3 > 0 { exit 1 }' raised.csv
heat --steps 120 --tolerance 0.01 --state raised --csv raised.csv --resume >raised.txt
awk -F, '$1 >= 60 && $3 > 0 { used += $3 } END { exit !(used > 0) }' raised.csv
heat --steps 11 --state missing/state --resume >unsaved.txt 2>unsaved.log
grep -q 'there is no missing/state.newest: this run begins at its first step' unsaved.log
grep -q 'the state of step 9 could not be saved as missing/state-0; --resume goes on from the one before' unsaved.log

# Ranks that do not learn take part in nothing but the solver; a budget of no time trains nothing.
heat --learners 1 --state one --budget 1 --csv one.csv >one.txt
grep -q '^training made a step longer by .* of 60 steps by more than the budget of 1' one.txt
awk -F, 'NR > 1 && $3 > 0 { used += $3 } END { exit !(used > 0) }' one.csv
heat --learners 2 --budget 0 >none.txt
grep '^heat ' none.txt | cmp - solver.txt

# A command line that cannot be used ends all ranks before the simulation.
heat --help >help.txt
grep -q '^Usage: ' help.txt
if heat --stepz 3 >wrong.txt 2>wrong.log || grep -q '^heat .*fuel' wrong.txt; then
  echo "heat.sh: an unknown option was taken" >&2
  exit 1
fi
grep -q 'unknown option --stepz' wrong.log
if heat --csv missing/whole.csv >wrong.txt 2>wrong.log || grep -q '^heat .*fuel' wrong.txt; then
  echo "heat.sh: a file that cannot be written was taken" >&2
  exit 1
fi
grep -q 'missing/whole.csv' wrong.log

# Doxygen's filter for modules of Fortran: comments before declarations and behind them, which are plain ! ones, become
# Doxygen's !> and !<. Comments inside procedures stay as they are.

# A procedure that is defined, not one that an interface declares, has a body.
/^ *contains *$/ { after_contains = 1 }
/^ *(end|abstract) *interface/ || /^ *interface/ { print; next }

/^ *!/ {
  held[++count] = $0
  next
}
{
  # The first comment of a file is the module's; of others, those that a declaration follows.
  for (i = 1; i <= count; ++i) {
    if ($0 !~ /^ *$/) sub(/!/, "!>", held[i])
    print held[i]
  }
  count = 0
  if ($0 ~ /[^ ].* ! / && $0 !~ /'[^']*!/) sub(/! /, "!< ")
  print
}
END { for (i = 1; i <= count; ++i) print held[i] }

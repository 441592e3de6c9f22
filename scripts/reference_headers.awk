# Doxygen's filter for headers: turns the comments before and behind declarations, which are plain // ones, into
# Doxygen's forms. Code stays as it is, and so do line numbers, but for what follows a class that gets the header's
# comment, or a heading of a group ("// --- title: text").
#
#   // Text.                   /// Text.
#   int f();            ->     int f();
#   int g();  // Text.         int g();  ///< Text.
#
# The comment at the top of a file is that of the file, and of the class that has the file's name, unless that has a
# comment of its own. Comments in bodies of functions, and comments that no declaration follows, are not documentation.
# Comments of C headers, /* ... */, are read as if they were // ones.

{ sub(/\r$/, ""); lines[NR] = FILENAME ~ /_c(_[a-z]+)?\.h$/ ? with_line_comments($0) : $0 }

# Returns a line of C whose comment is a // one; a comment may go on over lines.
function with_line_comments(line,    column, ends) {
  column = in_comment ? 0 : index(line, "/*")
  if (!in_comment && column == 0) return line
  ends = line ~ /\*\/ *$/
  sub(/ *\*\/ *$/, "", line)
  if (in_comment) sub(/^ *\*? ?/, "// ", line)
  else line = substr(line, 1, column - 1) "//" substr(line, column + 2)
  in_comment = !ends
  sub(/\/\/ ---- /, "// --- ", line)
  sub(/ ---- *$/, "", line)
  return line
}

# Writes a character for each level of braces into `stack`: d for a namespace, class or enumeration, b for all others.
function follow(code,    i, c, in_string, head_kind) {
  for (i = 1; i <= length(code); ++i) {
    c = substr(code, i, 1)
    if (in_string != "") {
      if (c == "\\") ++i
      else if (c == in_string) in_string = ""
    } else if (c == "\"" || (c == "'" && substr(code, i - 1, 2) !~ /[0-9]'/)) in_string = c
    else if (c == "(") { ++parens; head = head c }
    else if (c == ")") { --parens; head = head c }
    else if (c == "{") {
      gsub(/template *<[^{]*> */, "", head)
      head_kind = parens == 0 && head !~ /\(/ && head ~ /^ *((inline |typedef )?(namespace|enum|class|struct|union)|extern *$)/ ? "d" : "b"
      stack = stack head_kind
      head = ""
    } else if (c == "}") { stack = substr(stack, 1, length(stack) - 1); head = "" }
    else if (c == ";" && parens == 0) head = ""
    else head = head c
  }
  sub(/^ *(public|private|protected):/, "", head)
  head = head " "
}

# Whether a declaration or an enumerator may begin here.
function at_declarations() { return stack !~ /b/ && parens == 0 && head ~ /^ *$|, *$/ }

# Returns the column of the // of a comment, 0 without one.
function comment_at(line,    i, c, in_string) {
  for (i = 1; i < length(line); ++i) {
    c = substr(line, i, 1)
    if (in_string) {
      if (c == "\\") ++i
      else if (c == "\"") in_string = 0
    } else if (c == "\"") in_string = 1
    else if (c == "/" && substr(line, i + 1, 1) == "/") return i
  }
  return 0
}

# Returns text in which no character is a command, markup or a link for Doxygen, except in `code`, which may end on
# a later line.
function plain(text,    parts, n, i, result) {
  n = split(text, parts, "`")
  for (i = 1; i <= n; ++i) {
    if (i > 1) { result = result "`"; in_code = !in_code }
    if (!in_code) {
      gsub(/\\/, "\\\\\\\\", parts[i])
      gsub(/[@<>#&]/, "\\\\&", parts[i])
      gsub(/--/, "\\--", parts[i])
    }
    result = result parts[i]
  }
  return result
}

# Prints the comment lines from..to as documentation. Lines that are indented by two more behind an empty one are code.
function print_documentation(from, to,    i, text, margin, is_code, after_empty) {
  in_code = 0
  for (i = from; i <= to; ++i) {
    text = lines[i]
    margin = text
    sub(/\/\/.*/, "", margin)
    sub(/^ *\/\/ ?/, "", text)
    if (text == "") after_empty = 1
    else {
      is_code = text ~ /^  / && (after_empty || is_code)
      after_empty = 0
    }
    print margin "///" (text == "" ? "" : " ") (is_code ? "    " text : plain(text))
  }
}

# Prints the heading of a group of members in place of the lines from..to, and returns the line after it.
function print_heading(from, to,    i, title, text) {
  title = lines[from]
  sub(/^ *\/\/ --- /, "", title)
  if (match(title, /[:.;] /)) {
    text = substr(title, RSTART + 2)
    title = substr(title, 1, RSTART - 1)
  }
  for (i = from + 1; i <= to && lines[i] ~ /^ *\/\/ ([a-z]|.*[.,;]$)/ && lines[i - 1] !~ /---[^.:]*$/ && !ended; ++i) {
    sub(/^ *\/\/ /, " ", lines[i])
    text = text lines[i]
    ended = lines[i] ~ /\.$/
  }
  ended = 0
  in_code = 0
  if (group_level != "") print "///@}"
  group_level = stack
  print "/// \\name " plain(title)
  if (text != "") print "/// " plain(toupper(substr(text, 1, 1)) substr(text, 2))
  print "///@{"
  return i
}

# Returns the name of the class that the line defines; "" if it defines none.
function defined_class(line,    words) {
  if (line !~ /^(class|struct) [A-Za-z0-9_]+( final)?( :.*)?( *\{.*)?$/ || line ~ /;$/) return ""
  split(line, words, " ")
  return words[2]
}

function folded(name) { gsub(/_/, "", name); return tolower(name) }

END {
  file = FILENAME
  sub(/.*\//, "", file)
  sub(/\.h$/, "", file)
  stack = head = group_level = ""
  i = 1
  while (i <= NR && lines[i] ~ /^\/\//) ++i
  file_comment = i - 1
  if (file_comment > 0) {
    print "/// \\file"  # in the place of #pragma once
    print_documentation(1, file_comment)
  }
  documented = 0
  for (; i <= NR; ++i) {
    line = lines[i]
    if (line ~ /^#pragma once/ && file_comment > 0) continue
    if (line ~ /^ *#/) {
      print line
      while (line ~ /\\$/ && i < NR) { line = lines[++i]; print line }
      continue
    }
    if (line ~ /^ *\/\//) {
      last = i
      while (last < NR && lines[last + 1] ~ /^ *\/\//) ++last
      if (at_declarations() && line ~ /^ *\/\/ --- /) i = print_heading(i, last)
      documented = at_declarations() && i <= last && last < NR && lines[last + 1] !~ /^ *($|#|\}|public:|private:|protected:)/
      if (documented) print_documentation(i, last)
      else for (; i <= last; ++i) print lines[i]
      i = last
      continue
    }
    if (stack == group_level && line ~ /^ *(public|private|protected):/ || line ~ /^ *\};|^\}/ && stack == group_level) {
      if (group_level != "") print "///@}"
      group_level = ""
    }
    level = at_declarations()
    class = level ? defined_class(line) : ""
    if (class != "" && !documented && file_comment > 0 && folded(class) == folded(file)) print_documentation(1, file_comment)
    documented = line ~ /^ *template/ && line !~ /[;{]/ ? documented : 0
    column = comment_at(line)
    if (column == 0) {
      follow(line)
      print line
      continue
    }
    code = substr(line, 1, column - 1)
    in_code = 0
    # The text may go on below, in the same column.
    if (stack ~ /b/ || code ~ /^ *\}/ || code ~ /^ *(public|private|protected):/) {
      follow(code)
      print line
    } else if (code ~ /\{ *$/) {
      text = substr(line, column + 2)
      print "/**" plain(text) " */ " code
      follow(code)
    } else {
      follow(code)
      print code "///<" plain(substr(line, column + 2))
      while (i < NR && lines[i + 1] ~ /^ *\/\// && comment_at(lines[i + 1]) == column) {
        ++i
        print substr(lines[i], 1, column - 1) "///<" plain(substr(lines[i], column + 2))
      }
    }
  }
}

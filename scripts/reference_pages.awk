# Doxygen's filter for the pages in Markdown: gives headings the names that GitHub gives them, and makes links between
# pages Doxygen's. Links to other files of the repository become their text.

function page_of(path) {
  sub(/.*\//, "", path)
  sub(/\.md$/, "", path)
  return tolower(path)
}

function name_of_page(page) { return page == "readme" ? "index" : "docs_" page }

# Returns GitHub's name of a heading: small letters, no punctuation, - for spaces.
function anchor_of(title) {
  title = tolower(title)
  gsub(/[^a-z0-9 _-]/, "", title)
  gsub(/ /, "-", title)
  return title
}

# Returns Doxygen's target of a link, "-" for a file that is no page, "" for an address, which stays.
function target_of(link,    file, anchor, cut) {
  if (link ~ /^[a-z]+:/ || link !~ /^[A-Za-z0-9_.\/-]*(#[a-z0-9_-]+)?$/ || link == "") return ""
  cut = index(link, "#")
  anchor = cut ? substr(link, cut + 1) : ""
  file = cut ? substr(link, 1, cut - 1) : link
  sub(/^\.\.\//, "", file)
  sub(/^docs\//, "", file)
  if (file != "" && (file !~ /\.md$/ || file ~ /\//)) return "-"
  file = file == "" ? page : page_of(file)
  return anchor == "" ? name_of_page(file) : file "-" anchor
}

function with_links(text,    result, open, close_at, start, depth, target) {
  result = ""
  while ((open = index(text, "](")) > 0) {
    close_at = index(substr(text, open), ")")
    if (close_at == 0) break
    target = target_of(substr(text, open + 2, close_at - 3))
    if (target == "") {
      result = result substr(text, 1, open + close_at - 1)
    } else {
      result = result substr(text, 1, open - 1)
      for (start = length(result); start > 0 && (substr(result, start, 1) != "[" || depth > 0); --start) {
        if (substr(result, start, 1) == "]") ++depth
        if (substr(result, start, 1) == "[") --depth
      }
      depth = 0
      if (target == "-") result = substr(result, 1, start - 1) substr(result, start + 1)
      else result = result "](@ref " target ")"
    }
    text = substr(text, open + close_at)
  }
  return result text
}

# Returns the line without commands and tags of Doxygen's outside `code`. Doxygen takes a ' for the end of code after a
# single `, so code with a ' stands between two.
function plain(text,    parts, n, i, result, span) {
  n = split(text, parts, "`")
  for (i = 1; i <= n; ++i) {
    if (i > 1) {
      in_code = !in_code
      span = in_code ? (i < n ? parts[i] : "") : parts[i - 1]
      result = result (span ~ /'/ ? "``" : "`")
    }
    if (!in_code) {
      gsub(/@/, "\\@", parts[i])
      gsub(/</, "\\<", parts[i])
    }
    result = result parts[i]
  }
  return result
}

FNR == 1 { page = page_of(FILENAME) }
/^ *```/ {
  fence = !fence
  if (fence && $0 !~ /```(cpp|python)/) sub(/```.*/, "```{.unparsed}")
  print
  next
}
fence { print; next }
/^ *<!--.*-->$/ { print ""; next }
/^$/ { in_code = 0 }
/^#+ / {
  title = $0
  sub(/^#+ /, "", title)
  match($0, /^#+/)
  gsub(/`/, "")
  if (RLENGTH > 1) print $0 " {#" page "-" anchor_of(title) "}"
  else print page == "readme" ? $0 : $0 " {#" name_of_page(page) "}"
  next
}
{ print with_links(plain($0)) }

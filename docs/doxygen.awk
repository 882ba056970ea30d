# doxygen.awk - marks the plain comments of a public header as Doxygen wants them, line for line:
#   the first comment                  /** @file ... */
#   a comment at a line's beginning    /** ... */, of the declaration that follows
#   a comment behind code              /**< ... */, of that code; behind "struct {" it goes before it
# and puts "a, b, c;" between @{ and @}, so that a comment is of all of them; so it does with consecutive
# lists of ops, and with a struct of attributes (x_attrs), whose members are the builder's parameters.
# Headings (---- words) go.

{ text = text $0 "\n" }

# Text that Doxygen would read as commands, links or HTML.
function plain(words) {
    gsub(/\\/, "\\\\", words)
    gsub(/</, "\\<", words)
    gsub(/>/, "\\>", words)
    gsub(/@/, "\\@", words)
    gsub(/#/, "\\#", words)
    gsub(/%/, "\\%", words)
    gsub(/&/, "\\\\&", words)
    return words
}

# Is it a declaration of several names, such as "int64_t n, h, w;"?
function is_list(code) {
    return code ~ /^[^(){};#]*,[^(){};#]*;/
}

# How long the lists at the beginning of some code are that one comment is of.
function list_length(code,   length_, rest) {
    length_ = index(code, ";")
    while (match(rest = substr(code, length_ + 1), /^\nADJ_API extern const adj_op [^;]*;/))
        length_ += RLENGTH
    return length_
}

# Only the ends of lines.
function blank(words) {
    gsub(/[^\n]/, "", words)
    return words
}

END {
    first = 1
    while ((begin = index(text, "/*")) > 0) {
        code = substr(text, 1, begin - 1)
        rest = substr(text, begin + 2)
        end = index(rest, "*/")
        words = substr(rest, 1, end - 1)
        text = substr(rest, end + 2)
        line = code
        sub(/.*\n/, "", line)
        before = substr(code, 1, length(code) - length(line))
        if (words ~ /^ ----/) {
            printf "%s%s", code, blank(words)
        } else if (line !~ /[^ ]/) {
            printf "%s/**%s%s*/", code, first ? " @file" : "", plain(words)
            if (is_list(text)) {
                end = list_length(text)
                printf "/**@{*/%s/**@}*/", substr(text, 1, end)
                text = substr(text, end + 1)
            }
        } else if (line ~ /(struct|enum)[ a-z_]*{ *$/) {
            printf "%s/**%s*/ %s", before, plain(words), line
            end = index(text, "\n}")
            if (substr(text, end) ~ /^\n} [a-z_0-9]*_attrs;/) {
                printf "/** As the builder takes it. *//**@{*/%s/**@}*/", substr(text, 1, end)
                text = substr(text, end + 1)
            }
        } else if (is_list(line)) {
            printf "%s/**%s*/ /**@{*/%s/**@}*/", before, plain(words), line
        } else {
            printf "%s/**<%s*/", code, plain(words)
        }
        first = 0
    }
    printf "%s", text
}

# man.awk - a manual page of what a command prints for --help. -v command=NAME (none: the tool's page),
# -v summary="a line for NAME", -v version=0.3.0, -v date=YYYY-MM-DD.

# Text as roff reads it: a dash is a minus, no line begins with a command.
function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/~/, "\\(ti", text)
    gsub(/\^/, "\\(ha", text)
    gsub(/"/, "\\(dq", text)
    return text ~ /^[.']/ ? "\\&" text : text
}

function section(name) {
    print ".SH " name
    in_section = name
}

BEGIN {
    title = command == "" ? "adjoint" : "adjoint-" command
    printf ".TH %s 1 %s \"adjoint %s\" \"User Commands\"\n.nh\n.ad l\n", toupper(title), date, version
    section("NAME")
    print roff(title) " \\- " roff(summary)
}

/^usage: / {
    section("SYNOPSIS")
    print ".B " roff(substr($0, 8))
    section("DESCRIPTION")
    next
}

/^$/ { next }

/^[A-Z][A-Za-z ]*:$/ {
    section(toupper(substr($0, 1, length($0) - 1)))
    next
}

# A term, and what is said of it from the first two spaces on; an example is a term alone.
/^  [^ ]/ {
    if (in_section == "DESCRIPTION")
        section(command == "" ? "COMMANDS" : "OPTIONS")
    $0 = substr($0, 3)
    at = in_section == "EXAMPLES" ? 0 : match($0, /  +/)
    print ".TP\n.B " roff(at ? substr($0, 1, at - 1) : $0)
    if (at)
        print roff(substr($0, at + RLENGTH))
    if (in_section == "COMMANDS")
        also = also (also == "" ? "" : ",\n") ".BR adjoint\\-" substr($0, 1, at - 1) " (1)"
    next
}

/^ / {
    sub(/^ +/, "")
    print roff($0)
    next
}

{
    if (in_section != "DESCRIPTION") {
        print ".PP"
        in_section = "DESCRIPTION"
    }
    print roff($0)
}

END { print ".SH SEE ALSO\n" (command == "" ? also : ".BR adjoint (1)") }

#!/bin/sh
# command_line.sh TOOL - prints docs/reference/command-line.md, made of what the tool and its commands print for --help.
set -eu
tool=$1

# tables COMMAND: the tables of a help text on standard input. Left out are --help, variables, which environment.md
# explains, and of a command the exit statuses that every command has.
tables() {
    awk -v command="$1" '
        function cell(text) {
            gsub(/[|*<]/, "\\\\&", text)
            return text
        }
        # Prints the row or the example that is complete.
        function flush() {
            if (term == "")
                return
            if (section == "Examples")
                printf "    %-75s # %s\n", term, text
            else if (section != "Environment" && term != "--help" && (command == "" || term !~ /^(0|1|3|141)$/)) {
                if (head != section)
                    print "\n| " heading " | |\n|---|---|"
                head = section
                print "| `" term "` | " cell(text) " |"
            }
            term = ""
        }
        /^usage: / { print "    " substr($0, 8) "\n"; next }
        /^$/ { next }
        /^[A-Z][A-Za-z ]*:$/ {
            flush()
            section = substr($0, 1, length($0) - 1)
            heading = tolower(section)
            if (section == "Examples")
                print "\nExamples:\n"
            next
        }
        /^  [^ ]/ {
            flush()
            at = section == "Examples" ? 0 : match($0, /[^ ]  +/)
            term = substr($0, 3, at ? at - 2 : length($0))
            text = at ? substr($0, RSTART + RLENGTH) : ""
            next
        }
        /^   / { sub(/^ +/, ""); text = text (text == "" ? "" : " ") $0; next }
        {
            flush()
            if (head != "none")
                print ""
            head = "none"
            print cell($0)
        }
        BEGIN { head = "none"; heading = command == "" ? "command" : "option" }
        END { flush() }'
}

cat <<'END'
# Command line

The tool is `adjoint COMMAND [OPTION]...`; `adjoint help COMMAND` prints the same as this page, which
`docs/command_line.sh build/adjoint` writes. Names of options may be shortened as long as they are unique.
Variables are explained in [environment.md](environment.md).

END
"$tool" --help | tables ''
for command in $("$tool" --document commands); do
    printf '\n## %s\n\n' "$command"
    "$tool" "$command" --help | tables "$command"
done

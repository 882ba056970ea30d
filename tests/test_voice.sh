#!/bin/sh
# test_voice.sh - wording of comments in sources: a C comment starts with a noun or an imperative, is no question and
# has none of the words that need a second reading; no source outside bench/ names a date, a commit or a processor.
# test_docs.sh checks documents: sentences of more than 30 words, dates, commits and processors.
set -u
status=0
if [ ! -f sources.ninja ]; then
    echo "skipped: no sources here"
    exit 77
fi
findings=$(mktemp)
trap 'rm -f "$findings"' EXIT
files() {
    git ls-files 2>/dev/null | grep . || find . -type f ! -path './build/*' ! -path './.git/*' | sed 's|^\./||'
}
report() {
    echo "test_voice: $1:"
    sed 's/^/  /' "$findings"
    status=1
}

# starts FILE...: comments that start with a word that refers to another text, or that are a question. The text of
# a comment may begin on its second line, and that of a file's head is what follows "name.c - ". A parameter or
# member of such a name may start a comment: "how: the executor's backend".
starts() {
    awk '
        BEGIN {
            word = "(by what|what|which|whether|whose|how|beside|behind|once more|twice|else|nobody|of)"
            fragment = "/[*/][ \t*]*([a-z_0-9/]+[.][ch] - )?" word "([^[:alnum:]_:]|$)"
        }
        FNR == 1 { is_begun = 0 }
        {
            text = $0
            if (is_begun) {
                sub(/^[ \t*]*/, "", text)
                text = "/* " text
            }
            is_begun = text ~ /\/\*+[ \t]*$/
        }
        text ~ /\/[*\/][ \t*]*(What|Of|Is|Does|Has|Those|The same|As)([^[:alnum:]_]|$)/ || text ~ fragment ||
            text ~ /\?[ \t]*\*\// || text ~ /\/\/.*\?$/ { print FILENAME ":" FNR ": " $0 }' "$@"
}
# shellcheck disable=SC2046 # no path here has a space
starts $(files | grep '/.*\.[ch]$') >"$findings"
[ ! -s "$findings" ] || report "comments that start with What, Of, Is, Does, Has, Those, The same or As, or with what, which, of or the like, or are a question"

# retired FILE...: comments with a word that hides its subject ("it is said", "nobody") or that is no term here.
retired() {
    awk '
        FNR == 1 { is_inside = 0 }
        {
            text = ""
            line = $0
            gsub(/"([^"\\]|\\.)*"/, "", line)
            if (is_inside) {
                text = line
                sub(/\*\/.*/, "", text)
            } else if (match(line, /\/[*\/]/)) {
                text = substr(line, RSTART + 2)
                sub(/\*\/.*/, "", text)
            }
            if (match(line, /\/\*/))
                is_inside = 1
            if (line ~ /\*\//)
                is_inside = 0
        }
        tolower(text) ~ /(^|[^[:alnum:]_.])(told|said|begun|clearly|usual|judges?|judged|nobody|witness(es)?|neighbours?|hears|is asked|asked for|under way|passed over)([^[:alnum:]_(.]|$)/ {
            print FILENAME ":" FNR ": " $0
        }' "$@"
}
# shellcheck disable=SC2046
retired $(files | grep '/.*\.[ch]$') >"$findings"
[ ! -s "$findings" ] || report "comments with a retired word (told, said, nobody, usual, judge, asked for, ...)"

# Strings of C files are data, such as checksums. The brackets keep the pattern from finding itself.
dated='[0-9]{4}-[0-9]{2}-[0-9]{2}|\b([0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]{5,}\b|[E]PYC|[X]eon|[R]yzen|[Z]en [0-9]'
# shellcheck disable=SC2046
grep -IHnE "$dated" $(files | grep -vE '^bench/|\.md$|^docs/pictures/.*\.svg$|^tests/test_docs\.sh$') |
    sed 's/\\"//g; s/"[^"]*"//g' | grep -E "$dated" | grep -v '[P]hilox4x32' >"$findings"
[ ! -s "$findings" ] || report "a date, a commit or a processor"
exit $status

#!/bin/sh
# man.sh TOOL FOLDER - makes the manual pages of what the tool and its commands print for --help.
# SOURCE_DATE_EPOCH: the date of the pages, where a packager says what it is.
set -e
tool=$1 folder=$2
date=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%d)
version=$("$tool" --version | sed -n '1s/adjoint //p')
page() {
    awk -v command="$1" -v summary="$2" -v version="$version" -v date="$date" -f docs/man.awk
}
"$tool" --help | page '' 'small convolutional networks on a CPU' >"$folder/adjoint.1"
for command in $("$tool" --document commands); do
    summary=$("$tool" --help | sed -n "s/^  $command  *//p" | head -n 1)
    "$tool" "$command" --help | page "$command" "$summary" >"$folder/adjoint-$command.1"
done

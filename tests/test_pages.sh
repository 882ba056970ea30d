#!/bin/sh
# test_pages.sh - the tool's HTML pages in headless Chromium, at 1600 and at 390 pixels, light and dark:
# no console error, no sideways scrolling, every picture drawn. Each page is looked at in a frame of that
# width of a page that measures it and writes what it finds into its own text, which --dump-dom prints.
# PAGES=DIR keeps the pages, and a screenshot of each.
set -u
build=${BUILD:-build}
for chromium in chromium chromium-browser google-chrome ''; do
    command -v "${chromium:-none}" >/dev/null && break
done
if [ -z "$chromium" ]; then
    echo "skipped: no Chromium here"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
dir=${PAGES:-$work}
mkdir -p "$dir"
status=0
failed() {
    echo "test_pages: $*"
    status=1
}

# ---- the pages ----
export OMP_WAIT_POLICY=passive
"$build/adjoint" train --model lenet5 --epochs 1 --threads 1 --out "$dir/run" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
mv "$dir/run/report.html" "$dir/report.html"
"$build/tests/cli/report_page" 40 >"$dir/matrix.html" || failed "no page of a matrix"
"$build/tests/cli/report_page" 200 >"$dir/classes.html" || failed "no page of many classes"
pages="report matrix classes"

# ---- the page that measures ----
frames() {
    for page in $pages; do
        for width in 1600 390; do
            echo "<iframe src=\"$page.html\" width=\"$width\" height=\"900\" style=\"border:0\"></iframe>"
        done
    done
}
cat >"$dir/probe.html" <<END
<!DOCTYPE html><meta charset="utf-8"><title>probe</title>
<body>$(frames)<pre id="found"></pre>
<script>
addEventListener('load', () => {
  const lines = [...document.querySelectorAll('iframe')].map(frame => {
    const d = frame.contentDocument, w = frame.contentWindow, s = d.scrollingElement;
    const undrawn = [...d.images].filter(i => !i.complete || i.naturalWidth < 1).length +
      [...d.querySelectorAll('svg')].filter(g => w.getComputedStyle(g).display != 'none' &&
        g.checkVisibility() && g.getBoundingClientRect().width < 1).length;
    const dark = w.matchMedia('(prefers-color-scheme: dark)').matches;
    const ground = w.getComputedStyle(d.body).backgroundColor.match(/[0-9]+/g).map(Number);
    return ['page', frame.getAttribute('src'), w.innerWidth, s.scrollWidth, d.images.length, undrawn,
      dark ? 'dark' : 'light', ground[0] < 128 ? 'dark' : 'light', d.scripts.length, 'end'].join(' ');
  });
  document.getElementById('found').textContent = lines.join('\n');
});
</script>
END

# browse SCHEME ARGUMENT...: 0 is dark, 1 light. Frames of files have one origin only with this option.
browse() {
    scheme=$1
    shift
    timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
        --user-data-dir="$work/profile" --allow-file-access-from-files --enable-logging=stderr \
        --blink-settings=preferredColorScheme="$scheme" --virtual-time-budget=10000 "$@" 2>"$work/err"
}

# measured NAME SCHEME: a line for each frame, and nothing on the console.
measured() {
    browse "$2" --window-size=1600,900 --dump-dom "file://$(realpath "$dir")/probe.html" >"$work/dom"
    sed -n 's/.*\(page [a-z]*\.html .* end\).*/\1/p' "$work/dom" >"$work/found"
    if [ "$(wc -l <"$work/found")" -ne 6 ]; then
        failed "Chromium has measured $(wc -l <"$work/found") of 6 pages"
        tail -n 5 "$work/err"
    fi
    grep 'CONSOLE' "$work/err" && failed "$1: something on the console"
    while read -r _ page width across images undrawn wanted ground scripts _; do
        at="$page, $1, $width pixels"
        [ "$across" -le "$width" ] || failed "$at: is $across pixels across"
        [ "$undrawn" -eq 0 ] || failed "$at: $undrawn pictures are not drawn"
        [ "$wanted" = "$1" ] || failed "$at: Chromium has not taken the color scheme"
        [ "$ground" = "$1" ] || failed "$at: the ground is $ground"
        [ "$scripts" -eq 0 ] || failed "$at: a script"
        [ "$images" -ge 3 ] || failed "$at: $images pictures"
    done <"$work/found"
}
measured light 1
measured dark 0

if [ -n "${PAGES:-}" ]; then
    for page in $pages; do
        for width in 1600 390; do
            browse 1 --window-size=$width,4000 --screenshot="$dir/$page-$width-light.png" "file://$dir/$page.html"
            browse 0 --window-size=$width,4000 --screenshot="$dir/$page-$width-dark.png" "file://$dir/$page.html"
        done
    done
fi

# ---- the markup ----
if command -v tidy >/dev/null; then
    for page in $pages; do
        tidy -quiet -errors "$dir/$page.html" >"$work/tidy" 2>&1 || {
            failed "$page.html is no valid HTML:"
            head -n 5 "$work/tidy"
        }
    done
fi
exit $status

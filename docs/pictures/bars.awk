# bars.awk - draws the speed table of README.md as an SVG: for each net and machine a bar of ours and one of the
# fastest peer's, whose length is the same everywhere.
function text(x, y, size, anchor, words) {
    printf "<text x=\"%d\" y=\"%d\" font-size=\"%d\" text-anchor=\"%s\">%s</text>\n", x, y, size, anchor, words
}
function bar(x, y, length_, color, ms) {
    printf "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"13\" fill=\"%s\"/>\n", x, y, length_, color
    text(x + length_ + 4, y + 11, 11, "start", ms)
}
BEGIN {
    FS = " *[|] *"
    left = 150; panel = 180; full = 120; top = 60; row = 44
}
/^\| machine / {
    nets = NF - 3
    for (i = 1; i <= nets; i++)
        net[i] = $(i + 2)
    in_table = 1
    next
}
!in_table || /^\|---/ { next }
/^\|/ {
    machine[++machines] = $2
    for (i = 1; i <= nets; i++)
        cell[machines, i] = $(i + 2)
    next
}
{ in_table = 0 }
END {
    if (machines == 0 || nets == 0) {
        print "bars.awk: the page has no table of machines" >"/dev/stderr"
        exit 1
    }
    width = left + nets * panel; height = top + machines * row + 10
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n",
        width, height, width, height
    printf "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height
    bar(left, 8, 20, "#2b6cb0", "adjoint")
    bar(left + panel, 8, 20, "#c4c4c4", "fastest peer")
    text(left + 2 * panel, 19, 11, "start", "ms a training step, f32; shorter is faster")
    for (i = 1; i <= nets; i++)
        text(left + (i - 1) * panel, top - 10, 13, "start", net[i])
    for (m = 1; m <= machines; m++) {
        y = top + (m - 1) * row
        text(left - 10, y + 19, 12, "end", machine[m])
        for (i = 1; i <= nets; i++) {
            split(cell[m, i], ms, " */ *")
            x = left + (i - 1) * panel
            bar(x, y, full * ms[1] / ms[2], "#2b6cb0", ms[1])
            bar(x, y + 14, full, "#c4c4c4", ms[2])
        }
    }
    print "</svg>"
}

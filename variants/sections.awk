# sections.awk - prints ninja's dyndep file for a list of sources, such as sources.ninja.
#
# A section ends with the build statement that has a line "dyndep = ...". That statement takes every
# object, program or test built by the lines above it, up to the previous such statement.
# b is the variant's folder.
BEGIN { print "ninja_dyndep_version = 1" }
/^build / {
    out = substr($2, 1, length($2) - 1)
    if ($3 ~ /^(cc|cc_io|cc_onnx|cc4|cc_isa|link|mpicc|preloaded|program|small_program|test)$/)
        section = section " " out
}
/^  dyndep = / {
    line = "build " out ": dyndep |" section
    gsub(/\$b\//, b "/", line)
    print line
    section = ""
}

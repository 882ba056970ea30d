/* options.h - options of adjoint convert. */
#ifndef CLI_CONVERT_OPTIONS_H
#define CLI_CONVERT_OPTIONS_H

#include <stdint.h>

typedef struct {
    const char *files[2]; /* in, out */
    int n_file;
    const char *map, *model, *prefix, *tensor;
    const char *mean, *deviation; /* lists of numbers; NULL: as in IN */
    const char *format;           /* index into FORMAT_WORDS; NULL: by the name of OUT */
    int64_t to_theirs;
} convert_opts;

typedef enum { SAFETENSORS, NPZ, NPY, HEADER, ONNX, NO_FORMAT } format;
#define FORMAT_WORDS "safetensors npz npy h onnx"

/* Returns the format of OUT; NO_FORMAT if its name has an unknown ending. */
format format_of(const convert_opts *o);
/* Reads the command line. CONTINUE, or an exit status. */
int parse_convert(convert_opts *o, int argc, char **argv);

#endif

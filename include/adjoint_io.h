/* adjoint_io.h - files that are whole or not there, tensors in files (safetensors), and weights.
 *
 * Readers trust no file: sizes are checked in 64-bit arithmetic before they are used, memory grows
 * with what was read and not with what a header claims, and a failure is a status and one sentence
 * that names the file and the byte offset. With adjoint_data.h it is a library of its own
 * (libadjoint_io); nothing here prints, and nothing is global. */
#ifndef ADJOINT_IO_H
#define ADJOINT_IO_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- files that are whole or not there ---- */

/* Lets write fill FILE.partial, flushes it to the disk and renames it: the file is either the old
 * one or the whole new one. write returns 0 on success. A symbolic link stays: what it leads to is
 * replaced, or made. The new file has the old one's mode and owner as far as that is permitted; if
 * the group cannot be kept, the new one may do no more than everybody. What a killed process left
 * of FILE.partial is removed by the next; processes that write one file at once wait for each
 * other. */
ADJ_API adj_status adj_file_replace(const char *path, int (*write)(FILE *f, void *user), void *user,
                                    adj_error *error);
/* Whether a file could be written now: in place, or replaced as above. It and its folder are left
 * as they are, but for a FILE.partial that was left behind. What is there and is no regular file is
 * not replaced; in place, what is no folder and can be opened will do. A pipe is not opened: that
 * waits for its reader, and closing it tells the reader that it has ended. */
ADJ_API adj_status adj_file_check(const char *path, int in_place, adj_error *error);

typedef struct { /* equal (memcmp) for names of one file: by other spellings, links, hard links */
    uint64_t device, number; /* of the file; of one that is not there yet, of its folder, */
    char name[256];          /* and its name there */
} adj_file_id;
/* partial: not of the file, but of the FILE.partial that adj_file_replace would use. */
ADJ_API adj_status adj_file_identify(const char *path, int partial, adj_file_id *id,
                                     adj_error *error);

/* ---- tensors in files: safetensors ---- */

/* What the elements of a tensor in a file are. The first ones are adj_dtype's, with its values; the
 * others can be read, written, looked at and converted, and an executor has no use for them. */
typedef enum {
    ADJ_ELEM_F32 = ADJ_F32,
    ADJ_ELEM_F64 = ADJ_F64,
    ADJ_ELEM_F16 = ADJ_F16,
    ADJ_ELEM_BF16 = ADJ_BF16,
    ADJ_ELEM_I32 = ADJ_I32,
    ADJ_ELEM_I64,
    ADJ_ELEM_I16,
    ADJ_ELEM_I8,
    ADJ_ELEM_U64,
    ADJ_ELEM_U32,
    ADJ_ELEM_U16,
    ADJ_ELEM_U8,
    ADJ_ELEM_BOOL,    /* a byte, 0 or 1 */
    ADJ_ELEM_F8_E4M3, /* without infinities */
    ADJ_ELEM_F8_E5M2,
    ADJ_ELEM_UNREADABLE /* a type, or more axes, that the library does not have: no shape, no data
                         */
} adj_elem;

/* "f32", "i64", "bool", ...: constant strings, never NULL. */
ADJ_API const char *adj_elem_name(adj_elem elem);
/* Bytes of one element; 0 for a value that is no adj_elem. */
ADJ_API size_t adj_elem_size(adj_elem elem);

/* A named value in a file. Nothing is copied: name and data are the maker's. */
typedef struct {
    const char *name; /* not empty, and no other's */
    adj_elem elem;    /* what its elements are */
    adj_shape shape;  /* rank 0: a scalar */
    const void *data; /* row-major; adj_shape_elems(shape) elements, at any address: read them
                         by adj_tensor_value, or copy them */
} adj_tensor;

/* A tensor of values as an executor has them. */
ADJ_API adj_tensor adj_tensor_of(const char *name, adj_type type, const void *data);
/* Its type for an executor; 0 (and *type is left as it is): its elements are no adj_dtype. */
ADJ_API int adj_tensor_type(const adj_tensor *t, adj_type *type);
/* Bytes of its data; -1 when it has no such shape or elements, or they overflow. */
ADJ_API int64_t adj_tensor_bytes(const adj_tensor *t);
/* Element i as a double: exact but for 64-bit integers beyond 2^53. i is not checked. */
ADJ_API double adj_tensor_value(const adj_tensor *t, int64_t i);

typedef struct {             /* strings kept with the tensors, such as the model's name */
    const char *key, *value; /* UTF-8 */
} adj_metadata;

/* Replaces the file (adj_file_replace). path NULL: checks names, metadata and sizes, and writes
 * nothing. Adds checksums of each tensor and of the header to the metadata, under keys that begin
 * with "adjoint.crc32", which metadata[] must not have. */
ADJ_API adj_status adj_tensors_write(const char *path, int n, const adj_tensor tensors[],
                                     int n_metadata, const adj_metadata metadata[],
                                     adj_error *error);

/* As NumPy reads them, replacing the file; bf16 and F8 become f32. Up to 4 GB and 65535 tensors. */
ADJ_API adj_status adj_tensors_write_npz(const char *path, int n, const adj_tensor tensors[],
                                         adj_error *error);
/* One tensor, as NumPy's load reads it. */
ADJ_API adj_status adj_tensors_write_npy(const char *path, const adj_tensor *tensor,
                                         adj_error *error);
/* A C header that is C++ as well, replacing the file: for each tensor its shape in a comment and
 * static const TYPE PREFIX_NAME[elements], in which what is no letter or digit is an underscore;
 * f16, bf16 and F8 become float, bool uint8_t. The metadata stand in a comment, and of a model card
 * (adj_model_card) also as constants: float PREFIX_mean[channels] and PREFIX_deviation[channels],
 * const char *PREFIX_classes[classes]. prefix: an identifier; NULL: "weights". */
ADJ_API adj_status adj_tensors_write_header(const char *path, const char *prefix, int n,
                                            const adj_tensor tensors[], int n_metadata,
                                            const adj_metadata metadata[], adj_error *error);

/* The tensors of a file, or of a conversion. */
typedef struct adj_tensors adj_tensors;
/* Reads and checks a whole file, its checksums too if it has any. *t is a handle to ask for the
 * message even on failure (NULL only when out of memory) and must be freed in every case. */
ADJ_API adj_status adj_tensors_read(const char *path, adj_tensors **t);
/* Reads a file of any of these kinds, recognized by its first bytes: safetensors; NumPy's .npy,
 * whose tensor has the file's name, and .npz; IDX, plain or gzip. Only safetensors have metadata.
 * For another program's file, such as PyTorch's or Keras's, the message says how to export it. */
ADJ_API adj_status adj_tensors_open(const char *path, adj_tensors **t);
/* What is wrong with the file; "" if nothing. It is t's. */
ADJ_API const char *adj_tensors_message(const adj_tensors *t);
/* How many tensors; 0 for NULL and for a file that was refused. */
ADJ_API int adj_tensors_count(const adj_tensors *t);
/* In the order of the data; name and data belong to t. All zero when i is out of range. */
ADJ_API adj_tensor adj_tensors_at(const adj_tensors *t, int i);
/* Returns why tensor i cannot be read, such as "C64 [2, 3]: unknown type", or NULL if it can be.
 * The other tensors of the file can be read; loading fails only if it needs this one. */
ADJ_API const char *adj_tensors_unreadable(const adj_tensors *t, int i);
/* Index of the tensor of that name; -1: none. */
ADJ_API int adj_tensors_find(const adj_tensors *t, const char *name);
/* NULL: no such key. */
ADJ_API const char *adj_tensors_metadata(const adj_tensors *t, const char *key);
/* All of them but the checksums, in the file's order; all zero when i is out of range. */
ADJ_API int adj_tensors_metadata_count(const adj_tensors *t);
/* The i-th. Its strings belong to t. */
ADJ_API adj_metadata adj_tensors_metadata_at(const adj_tensors *t, int i);
/* Frees them with their names and data. */
ADJ_API void adj_tensors_free(adj_tensors *t);

/* ---- weights ---- */

/* Writes every parameter and state that the executor holds, by name; path NULL as in
 * adj_tensors_write. */
ADJ_API adj_status adj_weights_save(adj_exec *e, const char *path, int n_metadata,
                                    const adj_metadata metadata[], adj_error *error);
/* What became of a parameter or state, or of a tensor of the file. */
typedef enum {
    ADJ_WEIGHT_LOADED,
    ADJ_WEIGHT_FRESH,   /* adj_weights_opts.fresh: it was not to be loaded */
    ADJ_WEIGHT_MISSING, /* the file has no such tensor */
    ADJ_WEIGHT_UNFIT,   /* the tensor has another shape, or elements that are no floats */
    ADJ_WEIGHT_RESET,   /* a state of training that the file does not have: it begins anew, at 0 */
    ADJ_WEIGHT_UNUSED   /* a tensor that nothing takes */
} adj_weight_fate;

/* Handed to adj_weights_opts.report. */
typedef struct {
    adj_weight_fate fate; /* what became of it */
    const char *name;     /* the parameter's or state's; NULL: UNUSED */
    const char *tensor;   /* the one in the file, or that was looked for */
    const char *why;      /* of MISSING and UNFIT: a sentence; else "" */
} adj_weight_report;

/* All zero is the default. */
typedef struct {
    /* Whose names and layouts the file has. NULL: ours. "pytorch": those of a state_dict - "w" is
     * "weight", slashes are dots, the last layer is "fc", blocks of residual nets are torchvision's
     * - with filters [out, in, kh, kw], matrices [out, in], and inputs of a dense layer after an
     * image in the order c, h, w; a prefix of at least half of the names ("module.") is recognized.
     * "keras": kernel, bias, gamma, beta, moving_mean, moving_variance, or LAYER/vars/0; layers
     * that Keras has numbered are taken in their order. Keras's default epsilon of a batch norm is
     * 0.001, which no file has. Else the name of a map file with a line for each tensor of ours
     * that has another name or layout there:
     *     conv1/w = conv1.weight, permute 2 3 1 0
     *     bn1/running = bn1.running_mean + bn1.running_var
     * Two tensors of one shape are stacked, permute says which axis of theirs becomes each of ours,
     * reshape may have a -1, the steps are done in their order; # begins a comment. */
    const char *map;
    int partial;       /* what is missing or does not fit stays as it is, and is no error */
    const char *fresh; /* patterns (adj_name_matches) of what is not loaded */
    int exact;         /* no element is converted, and no state of training may be missing */
    void (*report)(void *user, const adj_weight_report *r); /* called when all is loaded */
    void *user;                                             /* handed to report */
} adj_weights_opts;

/* Sets every parameter and state of the executor from the file's tensor of its name and shape
 * (path: as adj_tensors_open takes it); floats of another type are rounded to its own. One that is
 * missing or does not fit is an error (ADJ_EIO, ADJ_ESHAPE), and then none is set; tensors that the
 * executor does not know are passed over. If the file has none of its states of training
 * (adj_is_training_state) these are set to what they begin with. options may be NULL. */
ADJ_API adj_status adj_weights_load_with(adj_exec *e, const char *path,
                                         const adj_weights_opts *options, adj_error *error);
/* The same from tensors that have been read. */
ADJ_API adj_status adj_weights_set_with(adj_exec *e, const adj_tensors *t,
                                        const adj_weights_opts *options, adj_error *error);
/* Without options. */
ADJ_API adj_status adj_weights_load(adj_exec *e, const char *path, adj_error *error);
/* The same from tensors that have been read. */
ADJ_API adj_status adj_weights_set(adj_exec *e, const adj_tensors *t, adj_error *error);

/* Tensors under our names from those under theirs, or back (to_theirs), by a map as above.
 * "pytorch" and "keras" need the graph whose weights they are, and take nothing else; what a map
 * file does not name stays as it is (g may be NULL). The metadata are kept. *to is new, and NULL on
 * failure. */
ADJ_API adj_status adj_weights_convert(const adj_tensors *from, adj_graph *g, const char *map,
                                       int to_theirs, adj_tensors **to, adj_error *error);
/* Prints the map as lines of a map file. */
ADJ_API adj_status adj_weights_print_map(FILE *f, adj_graph *g, const char *map, adj_error *error);

/* ---- what a prediction needs to know ---- */

enum { ADJ_CARD_CHANNELS = 4 };

/* Kept among the metadata of a weights file. All but model may be left out: 0 or NULL. */
typedef struct {
    const char *model;               /* as adj_model_find takes it */
    double multiplier;               /* as in adj_model_opts */
    int64_t height, width, channels; /* of the images that it takes */
    adj_format format;               /* of its images */
    /* By channel, in pixel units (0 .. 255): the input is (pixel - mean) / deviation. A deviation
     * of 0: neither is known. */
    double mean[ADJ_CARD_CHANNELS], deviation[ADJ_CARD_CHANNELS];
    int normalized;                 /* the input is values as in training instead of pixels; mean 0,
                                       deviation 1 (adj_dataset.normalized) */
    double low, high;               /* of the training values as in their array (adj_dataset.low);
                                       0 and 0: of images that were no array, or not known */
    int64_t classes;                /* that it tells apart */
    const char *const *class_names; /* classes of them */
    const char *resize;             /* the rule for images of another size: "auto" (adj_resize_rule)
                                       or "error", which refuses them */
    adj_precision precision;        /* of the training */
    adj_math math;                  /* of the training */
    const char *version;            /* of the library that wrote it; set by adj_model_card_write */
    double accuracy;                /* per cent */
    int64_t seed;                   /* of the training */
} adj_model_card;

/* The card as metadata for adj_tensors_write and adj_weights_save: *n entries, all in one piece of
 * memory that free frees. */
ADJ_API adj_status adj_model_card_write(const adj_model_card *card, adj_metadata **metadata, int *n,
                                        adj_error *error);
/* Reads it from a file's metadata. What is not there is left out, and what is there must be
 * possible (ADJ_EIO); of a file without adjoint.version the format is left out, which says whose
 * file it is elsewhere ("pt"). *card lies in one piece of memory that free frees, but for its
 * strings, which belong to t. */
ADJ_API adj_status adj_model_card_read(const adj_tensors *t, adj_model_card **card,
                                       adj_error *error);
/* Returns ADJ_OK if a net of that card has so many classes of these names (NULL: the data have
 * none) and takes images with so many channels, else ADJ_ESHAPE and a sentence. Fields that the
 * card does not have fit; 1, 3 and 4 channels are converted. */
ADJ_API adj_status adj_model_card_check(const adj_model_card *card, int64_t channels,
                                        int64_t classes, const char *const *class_names,
                                        adj_error *error);

#ifdef __cplusplus
}
#endif
#endif

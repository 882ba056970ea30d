/* adjoint_io.h - tensors in files and in memory (safetensors), weights, and model cards.
 *
 * Readers trust no file: sizes are checked in 64-bit arithmetic before they are used, memory grows
 * with what was read and not with what a header claims, and a failure is a status and a message
 * that names the file and the byte offset. With adjoint_data.h it is a library of its own
 * (libadjoint_io); nothing here prints, and nothing is global. */
#ifndef ADJOINT_IO_H
#define ADJOINT_IO_H

#include "adjoint_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tensors ---- */

/* Element type of a tensor in a file. The first ones are those of adj_dtype with equal values; the
 * others can be read, written and converted, but not used by an executor. */
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
    ADJ_ELEM_UNREADABLE /* an unknown type, or more axes than ADJ_MAX_RANK: without shape and data
                         */
} adj_elem;

/* A named tensor. name and data are not copied: they belong to the creator. */
typedef struct {
    const char *name; /* not empty, unique */
    adj_elem elem;    /* element type */
    adj_shape shape;  /* rank 0: a scalar */
    const void *data; /* adj_shape_elems(shape) elements, row-major, possibly unaligned: read them
                         by adj_tensor_value or memcpy */
} adj_tensor;

/* Returns the bytes of the data; -1 for an invalid shape or element type or on overflow. */
ADJ_API int64_t adj_tensor_bytes(const adj_tensor *t);
/* Returns element i as a double, exact except for 64-bit integers beyond 2^53. i is not checked. */
ADJ_API double adj_tensor_value(const adj_tensor *t, int64_t i);

typedef struct {             /* strings stored with the tensors, such as the model's name */
    const char *key, *value; /* UTF-8 */
} adj_metadata;

/* Writes a safetensors file: the file is either the old one or the complete new one, whenever the
 * process dies. path NULL: checks names, metadata and sizes without writing. Adds checksums of each
 * tensor and of the header to the metadata, with the keys "adjoint.crc32" and
 * "adjoint.crc32:NAME", which metadata[] must not contain. */
ADJ_API adj_status adj_tensors_write(const char *path, int n, const adj_tensor tensors[],
                                     int n_metadata, const adj_metadata metadata[],
                                     adj_error *error);

/* Tensors read from a file or from memory, or made by a conversion; read-only. */
typedef struct {
    int n;                        /* number of tensors; 0 after a failure */
    const adj_tensor *tensor;     /* n tensors in the order of the data */
    int n_metadata;               /* number of metadata entries without checksums */
    const adj_metadata *metadata; /* n_metadata entries in the file's order */
    char message[ADJ_MESSAGE];    /* why reading failed; "" if it did not */
} adj_tensors;
/* Reads a file of any of these kinds, recognized by its first bytes: safetensors, with a check of
 * its checksums if it has any; NumPy's .npy, whose tensor is named after the file, and .npz; IDX,
 * plain or gzip. Only safetensors have metadata. For another program's file, such as PyTorch's or
 * Keras's, the message says how to export it. *t holds the message even on failure and must be
 * freed by adj_tensors_free in every case. */
ADJ_API adj_status adj_tensors_read(const char *path, adj_tensors **t);
/* Reads a safetensors file of n bytes in memory like adj_tensors_read. The data of the tensors are
 * not copied: the bytes must outlive *t. */
ADJ_API adj_status adj_tensors_from_memory(const void *bytes, size_t n, adj_tensors **t);
/* Returns the index of the tensor of that name; -1 if there is none. */
ADJ_API int adj_tensors_find(const adj_tensors *t, const char *name);
/* Returns the value of a metadata key, or NULL if there is no such key. The string belongs to t. */
ADJ_API const char *adj_tensors_metadata(const adj_tensors *t, const char *key);
/* Frees the tensors with their names and data; NULL is allowed. */
ADJ_API void adj_tensors_free(adj_tensors *t);

/* ---- weights ---- */

/* Writes all parameters and states of the executor by name; path NULL: only checks, as in
 * adj_tensors_write. */
ADJ_API adj_status adj_weights_save(adj_exec *e, const char *path, int n_metadata,
                                    const adj_metadata metadata[], adj_error *error);
/* Result of loading for a parameter, a state or a tensor of the file. */
typedef enum {
    ADJ_WEIGHT_LOADED,
    ADJ_WEIGHT_FRESH,   /* excluded by adj_weights_opts.fresh */
    ADJ_WEIGHT_MISSING, /* the file has no such tensor */
    ADJ_WEIGHT_UNFIT,   /* the tensor has another shape, or elements that are not floats */
    ADJ_WEIGHT_RESET, /* a state of training that the file does not have: reset to its initial value
                       */
    ADJ_WEIGHT_UNUSED /* a tensor of the file that no parameter or state uses */
} adj_weight_fate;

/* Handed to adj_weights_opts.report. */
typedef struct {
    adj_weight_fate fate; /* result of loading */
    const char *name;     /* name of the parameter or state; NULL for UNUSED */
    const char *tensor;   /* name of the tensor in the file, found or expected */
    const char *why;      /* reason of MISSING and UNFIT; else "" */
} adj_weight_report;

/* All zero is the default. */
typedef struct {
    /* Program that wrote the file, for names and layouts of its tensors. NULL: this library.
     * "pytorch": names of a state_dict ("w" is "weight", slashes are dots, the last layer is "fc",
     * blocks of residual nets are torchvision's), filters [out, in, kh, kw], matrices [out, in],
     * and inputs of a dense layer after an image in the order c, h, w; a prefix of at least half of
     * the names ("module.") is recognized. "keras": kernel, bias, gamma, beta, moving_mean,
     * moving_variance, or LAYER/vars/0; layers numbered by Keras are taken in their order. Keras's
     * default epsilon of batch norm is 0.001, which is not stored in the file. Any other text is
     * the name of a map file, with a line for each tensor of this library that has another name or
     * layout in the file:
     *     conv1/w = conv1.weight, permute 2 3 1 0
     *     bn1/running = bn1.running_mean + bn1.running_var
     * "+" stacks two tensors of one shape, permute lists the file's axis for each axis of this
     * library, reshape may contain one -1. Steps are applied in their order; # starts a comment. */
    const char *map;
    int partial; /* 1: missing or unfit tensors are not an error and leave the parameter unchanged
                  */
    /* Patterns (adj_trainable) of parameters that are not loaded; NULL: none. */
    const char *fresh;
    int exact; /* 1: element types must be equal, and no state of training may be missing */
    /* Called for each parameter, state and unused tensor after loading; NULL: not called. */
    void (*report)(void *user, const adj_weight_report *r);
    void *user; /* handed to report */
} adj_weights_opts;

/* Sets every parameter and state of the executor from the tensor of its name and shape in a file of
 * any kind that adj_tensors_read reads; floats of another type are rounded. A missing or unfit
 * tensor is an error (ADJ_EIO, ADJ_ESHAPE), and then nothing is set; unknown tensors are ignored.
 * If the file has no states of training (an optimizer's, its loss scale's, dropout's step), these
 * are reset to their initial values. options may be NULL. */
ADJ_API adj_status adj_weights_load(adj_exec *e, const char *path, const adj_weights_opts *options,
                                    adj_error *error);
/* Sets parameters and states like adj_weights_load, from tensors already read. */
ADJ_API adj_status adj_weights_set(adj_exec *e, const adj_tensors *t,
                                   const adj_weights_opts *options, adj_error *error);

/* Converts names and layouts of tensors from another program's to this library's, or back
 * (to_theirs 1), by a map (adj_weights_opts.map). "pytorch" and "keras" need the graph g of the
 * weights and accept only its tensors. With a map file g may be NULL, and tensors that it does not
 * name are unchanged. Metadata are copied. *to is new; NULL on failure. */
ADJ_API adj_status adj_weights_convert(const adj_tensors *from, adj_graph *g, const char *map,
                                       int to_theirs, adj_tensors **to, adj_error *error);

/* ---- model cards ---- */

enum { ADJ_CARD_CHANNELS = 4 };

/* A model card: data for prediction, stored in the metadata of a weights file. All fields but model
 * may be unknown: 0 or NULL. */
typedef struct {
    const char *model; /* name, as for adj_model_find */
    /* Options of the model: size and format of the images that the net accepts, classes,
     * multiplier; the others are 0. */
    adj_model_opts options;
    /* For each channel, in pixel units (0 .. 255): the input is (pixel - mean) / deviation. A
     * deviation of 0: unknown. */
    double mean[ADJ_CARD_CHANNELS], deviation[ADJ_CARD_CHANNELS];
    int normalized;   /* 1: the input is normalized values instead of pixels; mean 0, deviation 1
                         (adj_dataset.normalized) */
    double low, high; /* range of the training values in their NumPy array; 0 and 0: not
                         an array, or unknown */
    const char *const *class_names; /* options.classes names; NULL: none */
    const char *resize; /* rule for images of another size (adj_resize_rule): "auto", or "error",
                           which refuses them */
    adj_precision precision; /* precision of the training */
    adj_math math;           /* math mode of the training */
    double accuracy;         /* accuracy in per cent */
    int64_t seed;            /* seed of the training */
} adj_model_card;

/* Converts the card to metadata for adj_tensors_write and adj_weights_save: *n entries in one
 * memory block for free(). They include the library's version as "adjoint.version". */
ADJ_API adj_status adj_model_card_write(const adj_model_card *card, adj_metadata **metadata, int *n,
                                        adj_error *error);
/* Reads a card from a file's metadata. Missing fields are 0 or NULL; invalid ones are ADJ_EIO. The
 * key "format" is ignored in files without adjoint.version, because other programs store their name
 * there ("pt"). *card is one memory block for free(); its strings belong to t. */
ADJ_API adj_status adj_model_card_read(const adj_tensors *t, adj_model_card **card,
                                       adj_error *error);
/* Reads a card like adj_model_card_read from n entries, such as an ONNX file's, which must outlive
 * the card. */
ADJ_API adj_status adj_model_card_from_metadata(int n, const adj_metadata metadata[],
                                                adj_model_card **card, adj_error *error);

#ifdef __cplusplus
}
#endif
#endif

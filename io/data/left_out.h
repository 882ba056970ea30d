/* left_out.h - counts the files and folders of a data set that are not read, and describes them in
 * one line. */
#ifndef IO_DATA_LEFT_OUT_H
#define IO_DATA_LEFT_OUT_H

#include "data.h"

/* Reasons why a folder is no class. */
typedef enum { WITHOUT_IMAGES, WITHOUT_CLASSES, NO_PART, FOLDER_REASONS } left_out_reason;

enum { LEFT_OUT_ENDINGS = 16, LEFT_OUT_ENDING = 12, LEFT_OUT_NAMES = 100 };

typedef struct {
    char text[LEFT_OUT_ENDING]; /* ".bmp", lower case; "": none */
    int64_t n;                  /* files */
} left_out_ending;

typedef struct {
    int64_t ignored;                          /* names that are hidden or of an operating system */
    int64_t outside;                          /* files beside class folders */
    int64_t inside;                           /* folders in class folders */
    int64_t files;                            /* in class folders, with other endings than images */
    left_out_ending ending[LEFT_OUT_ENDINGS]; /* the first ones met */
    int n_ending;
    struct {
        int64_t n;
        char names[LEFT_OUT_NAMES]; /* of the first ones */
        int is_cut;                 /* names has no room for more */
    } folder[FOLDER_REASONS];
} left_out;

/* Counts a file of a class folder that is neither an image nor ignored. */
void left_out_file(left_out *l, const char *name);
/* Counts a folder that is no class. */
void left_out_folder(left_out *l, left_out_reason reason, const char *name);
/* Writes the line; "" if nothing was left out. */
void left_out_text(const left_out *l, char text[ADJ_MESSAGE]);

#endif

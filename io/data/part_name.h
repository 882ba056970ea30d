/* part_name.h - the names of a data set's parts, of folders and in options. */
#ifndef IO_DATA_PART_NAME_H
#define IO_DATA_PART_NAME_H

#include "adjoint_data.h"

/* Names of splits, in order of precedence if folders of several names exist. */
static const struct {
    adj_dataset_part part;
    const char *name;
} part_names[] = {
    {ADJ_TRAIN, "train"},           {ADJ_TRAIN, "training"}, {ADJ_TEST, "test"},
    {ADJ_TEST, "testing"},          {ADJ_VALIDATION, "val"}, {ADJ_VALIDATION, "valid"},
    {ADJ_VALIDATION, "validation"},
};
enum { PART_NAMES = sizeof part_names / sizeof part_names[0] };

#endif

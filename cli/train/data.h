/* data.h - the data set that --data names. */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include "adjoint_data.h"

/* MNIST's files in the folder, or without one the drawn digits, which do not depend on --seed: runs
 * with different seeds can be compared. CONTINUE, or an exit status after a complaint. *d is to be
 * freed in every case. */
int open_data(const char *command, const char *folder, adj_dataset_part part, adj_dataset **d);
const char *data_name(const char *folder);

#endif

/* data.c - see data.h. */
#include "cli/command.h"
#include "data.h"

enum { DIGITS_SEED = 1 };

int open_data(const char *command, const char *folder, adj_dataset_part part, adj_dataset **d)
{
    adj_status status = folder != NULL ? adj_dataset_mnist(folder, part, d)
                                       : adj_dataset_digits(part, 0, DIGITS_SEED, d);
    if (status == ADJ_OK)
        return CONTINUE;
    return complain(command, EXIT_FAILED, "%s", *d != NULL ? (*d)->message : "out of memory");
}

const char *data_name(const char *folder) { return folder != NULL ? folder : "embedded digits"; }

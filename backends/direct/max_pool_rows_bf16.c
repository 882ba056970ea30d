/* max_pool_rows_bf16.c - max_pool_rows.c in bf16. */
#define MAX_POOL_BF16
#include "max_pool_rows.c"

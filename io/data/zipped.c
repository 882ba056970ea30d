/* zipped.c - see zipped.h. */
#include <errno.h>

#include "zipped.h"

zip_t *zipped_open(const char *path, adj_error *error)
{
    int why = 0;
    errno = 0;
    zip_t *archive = zip_open(path, ZIP_RDONLY, &why);
    if (archive == NULL && (why == ZIP_ER_MEMORY || errno == ENOMEM))
        adj_error_set(error, ADJ_ENOMEM, "npz: %.300s: out of memory", path);
    else if (archive == NULL)
        adj_error_set(error, ADJ_EIO, "npz: %.300s: is not a complete archive", path);
    return archive;
}

int zipped_has(zip_t *archive, const char *name)
{
    zip_error_clear(archive);
    if (zip_name_locate(archive, name, 0) >= 0)
        return 1;
    return zip_error_code_zip(zip_get_error(archive)) == ZIP_ER_NOENT ? 0 : -1;
}

int64_t zipped_read(void *file, void *to, int64_t n)
{
    enum { PIECE = 1 << 30 };
    int64_t got = 0, more = 1;
    while (got < n && more > 0) {
        more = zip_fread(file, (char *)to + got, (zip_uint64_t)(n - got < PIECE ? n - got : PIECE));
        got += more > 0 ? more : 0;
    }
    return more < 0 ? -1 : got;
}

/* png_folder.h - class folders with PNG files, for the tests of train and eval. */
#ifndef TESTS_CLI_PNG_FOLDER_H
#define TESTS_CLI_PNG_FOLDER_H

#include <criterion/criterion.h>
#include <png.h>
#include <stdint.h>
#include <stdlib.h>

#include "io/folder.h"

/* Makes the class folder in f and writes n images of h x w pixels with c channels into it; their
 * names begin with name. Those of a class whose name ends in b are brighter. */
static inline void put_class(const folder *f, const char *class, const char *name, int n,
                             unsigned h, unsigned w, int c)
{
    static uint8_t pixels[32 * 32 * 3];
    const file_name path = in_folder(f, class);
    char command[900];
    snprintf(command, sizeof command, "mkdir -p '%s'", path.s);
    cr_assert_eq(system(command), 0); // NOLINT(cert-env33-c): the test's own words
    for (int i = 0; i < n; i++) {
        png_image image = {.version = PNG_IMAGE_VERSION,
                           .width = w,
                           .height = h,
                           .format = c == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
        for (unsigned k = 0; k < h * w * (unsigned)c; k++)
            pixels[k] =
                (uint8_t)(37 * k + 11 * (unsigned)i + 100 * (class[strlen(class) - 1] == 'b'));
        snprintf(command, sizeof command, "%s/%s%d.png", path.s, name, i);
        cr_assert(png_image_write_to_file(&image, command, 0, pixels, 0, NULL));
    }
}

#endif

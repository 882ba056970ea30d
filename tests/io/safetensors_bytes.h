/* safetensors_bytes.h - safetensors files in literal bytes. */
#ifndef TESTS_IO_SAFETENSORS_BYTES_H
#define TESTS_IO_SAFETENSORS_BYTES_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint8_t bytes[4096];
    size_t n;
} file_bytes;

/* The length, the header, then data_bytes counting bytes 0, 1, 2, ... */
static inline file_bytes safetensors_of(const char *header, size_t data_bytes)
{
    file_bytes f = {.n = 8 + strlen(header) + data_bytes};
    cr_assert_leq(f.n, sizeof f.bytes);
    f.bytes[0] = (uint8_t)strlen(header);
    f.bytes[1] = (uint8_t)(strlen(header) >> 8);
    memcpy(f.bytes + 8, header, strlen(header));
    for (size_t i = 0; i < data_bytes; i++)
        f.bytes[8 + strlen(header) + i] = (uint8_t)i;
    return f;
}

/* A header for 24 bytes of data. */
static const char good_header[] =
    "{\"__metadata__\":{\"k\":\"v\",\"l\":\"w\"},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[6,14]},"
    "\"a\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]},"
    "\"s\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[14,22]},"
    "\"e\":{\"dtype\":\"I32\",\"shape\":[0,4],\"data_offsets\":[6,6]},"
    "\"h\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[22,24]}}   ";

#endif

/*
 * Fuzz target: ONNX files, whose weights are read by name. What is found must be finite and of the
 * shape that was asked for; what is refused must name the file.
 */
#include "base/check.h"
#include "engine/tinyphysics/onnx_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_error(enum status status, const struct error *error, const char *path)
{
    CHECK(status == error->status);
    CHECK(strncmp(error->text, path, strlen(path)) == 0);
}

static void read_weights(const struct onnx_file *file, const char *path)
{
    enum { ROWS = 2, COLUMNS = 3 };
    static const uint32_t dims[] = {ROWS, COLUMNS};
    char name[ONNX_NAME_BYTES];
    float out[ROWS * COLUMNS];
    struct error error = {0};
    enum status status = onnx_file_weights(file, "/m", "MatMul", name, &error);
    if (status != STATUS_OK) {
        check_error(status, &error, path);
        snprintf(name, sizeof name, "w");
    }
    CHECK(memchr(name, '\0', sizeof name) != NULL);
    for (uint32_t rank = 1; rank <= 2; rank++) {
        const uint32_t count = rank == 1 ? ROWS : ROWS * COLUMNS;
        status = onnx_file_floats(file, name, dims, rank, out, &error);
        if (status != STATUS_OK) {
            check_error(status, &error, path);
            continue;
        }
        for (uint32_t i = 0; i < count; i++) {
            CHECK(isfinite(out[i]));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct onnx_file file = {0};
    struct error error = {0};
    char path[64];
    int fd = memfd_create("onnx", 0);
    CHECK(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    enum status status = onnx_file_open(path, &file, &error);
    if (status == STATUS_OK) {
        read_weights(&file, path);
    } else {
        check_error(status, &error, path);
    }
    onnx_file_close(&file);
    close(fd);
    return 0;
}

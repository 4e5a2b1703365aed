/*
 * Listening on a Unix socket, for the user alone. See server.h.
 */
#include "base/sha256.h"
#include "schemas/limits.h"
#include "store/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

enum status unix_listen(const char *path, int *out, struct error *error)
{
    char directory[LIMIT_PATH_BYTES + 8];
    char digest[SHA256_HEX_BYTES];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = -1;
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    snprintf(directory, sizeof directory, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
             slash != NULL ? path : ".");
    int place = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (place < 0) {
        return error_set(error, STATUS_STORE, "%s: cannot open the directory: %s", directory,
                         strerror(errno));
    }
    /* The directory's descriptor stands for its path, and a short name for the socket's until it is
     * ready, because sun_path holds 107 bytes. */
    int bytes = snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/", place);
    char *temporary = address.sun_path + bytes;
    sha256_hex(name, strlen(name), digest);
    snprintf(temporary, sizeof address.sun_path - (size_t)bytes, ".swerve-%.16s.sock", digest);
    unlinkat(place, temporary, 0); /* left by an owner that was killed here */
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        goto fail;
    }
    /* Whoever may connect may do everything: the user alone. */
    if (fchmodat(place, temporary, 0600, 0) != 0 || listen(fd, BACKLOG) != 0 ||
        renameat(place, temporary, place, name) != 0) {
        int reason = errno;
        unlinkat(place, temporary, 0);
        errno = reason;
        goto fail;
    }
    close(place);
    *out = fd;
    return STATUS_OK;
fail:
    error_set(error, STATUS_STORE, "%s: cannot listen: %s", path, strerror(errno));
    if (fd >= 0) {
        close(fd);
    }
    close(place);
    return STATUS_STORE;
}

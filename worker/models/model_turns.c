/*
 * Turns by locks on files. See model_turns.h.
 *
 * A file per place, ".NAME.PLACE.turn". Nobody removes one: a name that is gone would be another
 * lock for the next process.
 */
#include "worker/models/model_turns.h"

#include "schemas/limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 20 };

/* The place's descriptor; -1: somebody has it, or *able is false. */
static int try_place(const char *directory, const char *name, int place, int *able)
{
    char path[LIMIT_PATH_BYTES + LIMIT_ID_BYTES];
    snprintf(path, sizeof path, "%s/.%.*s.%d.turn", directory, LIMIT_ID_BYTES - 32, name, place);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    *able += fd >= 0;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int model_turns_take(const char *directory, const char *name, int places, int64_t wait_ms)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_MS * 1000000};
    for (int64_t waited_ms = 0; waited_ms <= wait_ms; waited_ms += LOOK_EVERY_MS) {
        int able = 0;
        for (int place = 0; place < places; place++) {
            int fd = try_place(directory, name, place, &able);
            if (fd >= 0) {
                return fd;
            }
        }
        if (able == 0) {
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    return -1;
}

void model_turns_end(int turn)
{
    if (turn >= 0) {
        close(turn);
    }
}

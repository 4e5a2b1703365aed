/*
 * Object storage of a test's own. See s3_site.h.
 */
#include "tests/store/objects/s3_site.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t server;
static int input; /* closing it ends the server */

bool s3_site_start(const char *script, const char *directory)
{
    int in[2];
    int out[2];
    char port[16] = "";
    char url[64];

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
        return false;
    }
    server = fork();
    if (server == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execlp("python3", "python3", script, directory, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    input = in[1];
    for (size_t at = 0; at + 1 < sizeof port && strchr(port, '\n') == NULL; at++) {
        if (read(out[0], port + at, 1) != 1) {
            break;
        }
    }
    close(out[0]);
    snprintf(url, sizeof url, "http://127.0.0.1:%ld", strtol(port, NULL, 10));
    setenv("AWS_ENDPOINT_URL", url, 1);
    s3_site_keys();
    return strchr(port, '\n') != NULL;
}

void s3_site_stop(void)
{
    close(input);
    waitpid(server, NULL, 0);
}

void s3_site_keys(void)
{
    setenv("AWS_ACCESS_KEY_ID", "AKIATEST", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret/with+signs", 1);
    setenv("AWS_REGION", "eu-central-1", 1);
    unsetenv("AWS_SESSION_TOKEN");
}

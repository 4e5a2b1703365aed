/*
 * File: a replacement is whole or not there. Method: replace, then make it fail in each way that a
 * test can bring about (no directory, a directory in the way, a file too large for the limit) and
 * see that the old content and nothing else is left. Reading: every kind of thing that a name can
 * stand for; what is no regular file is refused at once.
 */
#include "base/file.h"
#include "tests/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char directory[] = "/tmp/swerve-file-XXXXXX";

static void path_of(const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", directory, name);
}

static size_t entries(void)
{
    size_t count = 0;
    DIR *listing = opendir(directory);
    while (readdir(listing) != NULL) {
        count++;
    }
    closedir(listing);
    return count - 2; /* "." and ".." */
}

static void expect_content(const char *path, const char *expected)
{
    char found[64] = "";
    FILE *stream = fopen(path, "rb");
    EXPECT(stream != NULL);
    if (stream != NULL) {
        found[fread(found, 1, sizeof found - 1, stream)] = '\0';
        fclose(stream);
    }
    EXPECT_TEXT(found, expected);
}

static void a_replacement_has_the_bytes_and_the_mode(void)
{
    char path[256];
    struct error error;
    struct stat info;
    path_of("a", path);
    EXPECT_OK(file_replace(path, "first", 5, 0644, &error), error);
    EXPECT_OK(file_replace(path, "second", 6, 0600, &error), error);
    expect_content(path, "second");
    EXPECT_INT(stat(path, &info), 0);
    EXPECT_INT(info.st_mode & 0777, 0600);
    EXPECT_INT(entries(), 1);
}

static void a_place_that_takes_no_file_is_named(void)
{
    char path[256];
    struct error error;
    path_of("missing/a", path);
    EXPECT_INT(file_replace(path, "x", 1, 0644, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "missing/a");
    path_of("b", path);
    EXPECT_INT(mkdir(path, 0700), 0);
    EXPECT_INT(file_replace(path, "x", 1, 0644, &error), STATUS_IO);
    EXPECT_CONTAINS(error.text, "/b");
    EXPECT_INT(rmdir(path), 0);
    EXPECT_INT(entries(), 1);
}

/* RLIMIT_FSIZE stands for a full disk: the first bytes are taken, the rest is refused. */
static void a_failed_write_leaves_the_old_file(void)
{
    enum { LIMIT = 1000, MORE = 5000 };
    static char data[MORE];
    struct rlimit before;
    struct error error;
    char path[256];
    path_of("a", path);
    signal(SIGXFSZ, SIG_IGN);
    EXPECT_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit low = {LIMIT, before.rlim_max};
    EXPECT_INT(setrlimit(RLIMIT_FSIZE, &low), 0);
    enum status status = file_replace(path, data, sizeof data, 0644, &error);
    EXPECT_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_INT(status, STATUS_IO);
    EXPECT_CONTAINS(error.text, "File too large");
    expect_content(path, "second");
    EXPECT_INT(entries(), 1);
}

/* Opening any of these would wait, have an effect or read without end. */
static void only_regular_files_are_read(void)
{
    char path[256];
    char link_path[256];
    char *data = NULL;
    size_t bytes = 0;
    struct error error;
    path_of("a", path);
    path_of("link", link_path);
    EXPECT_INT(file_read(path, 6, &data, &bytes, &error), STATUS_OK);
    EXPECT_INT(bytes, 6);
    EXPECT_TEXT(data, "second");
    free(data);
    EXPECT_INT(symlink(path, link_path), 0);
    EXPECT_INT(file_read(link_path, 100, &data, &bytes, &error), STATUS_OK);
    EXPECT_TEXT(data, "second");
    free(data);
    EXPECT_INT(unlink(link_path), 0);
    EXPECT_INT(file_read(path, 5, &data, &bytes, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "expected at most 5 bytes, found 6");
    EXPECT_INT(file_read(link_path, 5, &data, &bytes, &error), STATUS_NOT_FOUND);
    EXPECT_INT(mkfifo(link_path, 0600), 0);
    EXPECT_INT(file_read(link_path, 5, &data, &bytes, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "expected a regular file, found a pipe");
    EXPECT_INT(unlink(link_path), 0);
    EXPECT_INT(file_read(directory, 5, &data, &bytes, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "found a directory");
    EXPECT_INT(file_read("/dev/zero", 5, &data, &bytes, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "found a device");
    int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", link_path);
    EXPECT(socket_fd >= 0 && bind(socket_fd, (struct sockaddr *)&address, sizeof address) == 0);
    EXPECT_INT(file_read(link_path, 5, &data, &bytes, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "found a socket");
    close(socket_fd);
    EXPECT_INT(unlink(link_path), 0);
}

/* Goal: a link in the folder goes, and what it leads to stays. */
static void a_tree_goes_and_what_its_links_lead_to_stays(void)
{
    char tree[256];
    char inner[256];
    char link_path[256];
    char target[256];
    path_of("tree", tree);
    path_of("tree/inner", inner);
    path_of("tree/inner/link", link_path);
    path_of("a", target);
    EXPECT_INT(mkdir(tree, 0755), 0);
    EXPECT_INT(mkdir(inner, 0755), 0);
    EXPECT_INT(symlink(target, link_path), 0);
    EXPECT(file_remove_tree(tree));
    EXPECT_INT(access(tree, F_OK), -1);
    EXPECT_INT(access(target, F_OK), 0);
    EXPECT(!file_remove_tree(tree));
    EXPECT_INT(errno, ENOENT);
}

static void teardown(void)
{
    char path[256];
    path_of("a", path);
    EXPECT_INT(unlink(path), 0);
    EXPECT_INT(rmdir(directory), 0);
}

int main(void)
{
    if (mkdtemp(directory) == NULL) {
        return 1;
    }
    return TEST_RUN(TEST(a_replacement_has_the_bytes_and_the_mode),
                    TEST(a_place_that_takes_no_file_is_named),
                    TEST(a_failed_write_leaves_the_old_file), TEST(only_regular_files_are_read),
                    TEST(a_tree_goes_and_what_its_links_lead_to_stays), TEST(teardown));
}

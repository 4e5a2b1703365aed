/*
 * The server's TLS: which certificates it takes, which protocol versions it speaks, and what a
 * client is shown after the files have changed.
 *
 * Goal: a pair that cannot work is refused with its reason before a client meets it; nothing older
 * than TLS 1.2 is spoken, and that without static keys or bare ciphers; new files take effect
 * without a restart, bad ones do not. Method: certificates made here, handshakes by a client of
 * GnuTLS under priorities of the test's choice; the serial number says which certificate was shown.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/server/server.h"
#include "tests/harness.h"
#include "tests/store/http/fake_store.h"
#include "tests/store/http/http_support.h"
#include "tests/store/http/tls_kit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DAY_S = 86400 };

static char cert[2][160];
static char key[2][160];

static void name_files(void)
{
    for (int i = 0; i < 2; i++) {
        snprintf(cert[i], sizeof cert[i], "%s/cert%d.pem", support_directory(), i);
        snprintf(key[i], sizeof key[i], "%s/key%d.pem", support_directory(), i);
    }
}

static int64_t now_s(void)
{
    return clock_wall_ns(clock_system()) / NS_PER_S;
}

static void make(int index, int64_t from_s, int64_t until_s, int serial)
{
    name_files();
    tls_kit_make(cert[index], key[index], now_s() + from_s, now_s() + until_s, serial);
}

/* The pair is refused, and the sentence names the file and the reason. */
static void expect_refused(const char *cert_path, const char *key_path, const char *file,
                           const char *reason)
{
    struct error error;
    struct tls_identity *identity = NULL;
    enum status status = tls_identity_create(cert_path, key_path, NULL, &identity, &error);
    if (status == STATUS_OK) {
        tls_identity_destroy(identity);
        TEST_FAIL("%s and %s were taken", cert_path, key_path);
    }
    EXPECT_CONTAINS(error.text, file);
    EXPECT_CONTAINS(error.text, reason);
}

static void bad_pairs_are_refused(void)
{
    make(0, -DAY_S, DAY_S, 1);
    make(1, -DAY_S, DAY_S, 2);
    expect_refused("/nowhere/cert.pem", key[0], "/nowhere/cert.pem", "cannot read");
    expect_refused(cert[0], "/nowhere/key.pem", "/nowhere/key.pem", "cannot read");
    expect_refused(cert[0], key[1], key[1], "another key");
    expect_refused(key[0], key[0], key[0], "certificates");
    expect_refused(cert[0], cert[0], cert[0], "others may not touch");
    CHECK(chmod(key[0], 0644) == 0);
    expect_refused(cert[0], key[0], key[0], "0644");
    make(0, -2 * DAY_S, -DAY_S, 3);
    expect_refused(cert[0], key[0], cert[0], "expired on");
    make(0, DAY_S, 2 * DAY_S, 4);
    expect_refused(cert[0], key[0], cert[0], "not valid before");
}

/* A server over TLS; *port is where. */
static struct store_server *start(struct store *store, struct tls_identity *identity, int *port)
{
    struct error error;
    struct tcp_place place;
    struct store_server *server = NULL;
    int fd = -1;
    const struct store_server_options options = {.tls = identity};
    EXPECT_OK(tcp_listen("127.0.0.1:0", &fd, &place, &error), error);
    EXPECT(place.loopback);
    *port = atoi(strrchr(place.text, ':') + 1);
    EXPECT_OK(store_server_start_with(store, fd, NULL, &options, &server, &error), error);
    return server;
}

static void old_protocols_are_not_spoken(void)
{
    static struct fake_control control;
    struct error error;
    struct store *fake = NULL;
    struct tls_identity *identity = NULL;
    int port = 0;
    make(0, -DAY_S, DAY_S, 7);
    EXPECT_OK(fake_store_open(&control, &fake, &error), error);
    EXPECT_OK(tls_identity_create(cert[0], key[0], NULL, &identity, &error), error);
    struct store_server *server = start(fake, identity, &port);
    EXPECT_INT(tls_kit_shake(port, "NORMAL:-VERS-ALL:+VERS-TLS1.3"), 7);
    EXPECT_INT(tls_kit_shake(port, "NORMAL:-VERS-ALL:+VERS-TLS1.2"), 7);
    EXPECT_INT(tls_kit_shake(port, "LEGACY:-VERS-ALL:+VERS-TLS1.1:%VERIFY_ALLOW_BROKEN"), -1);
    EXPECT_INT(tls_kit_shake(port, "LEGACY:-VERS-ALL:+VERS-TLS1.0:%VERIFY_ALLOW_BROKEN"), -1);
    store_server_stop(server);
    tls_identity_destroy(identity);
    fake->ops->close(fake);
}

/* Goal: TLS 1.2 only with keys agreed on anew and with authenticated ciphers, whatever a client
 * asks for; 1.3 and such a 1.2 go on. Method: an RSA key, which every key exchange can be tried
 * with. */
static void weak_ciphers_are_not_spoken(void)
{
    static const char *const refused[] = {
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA", /* static RSA, any cipher */
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA:-CIPHER-ALL:+AES-256-GCM",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-CBC:+AES-256-CBC",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ECDHE-RSA:-CIPHER-ALL:+AES-128-CBC:-MAC-ALL:+SHA1",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+3DES-CBC:%VERIFY_ALLOW_BROKEN",
    };
    static const char *const spoken[] = {
        "NORMAL:-VERS-ALL:+VERS-TLS1.3",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ECDHE-RSA:-CIPHER-ALL:+AES-128-GCM",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ECDHE-RSA:-CIPHER-ALL:+CHACHA20-POLY1305",
    };
    static struct fake_control control;
    struct error error;
    struct store *fake = NULL;
    struct tls_identity *identity = NULL;
    int port = 0;
    name_files();
    tls_kit_make_rsa(cert[0], key[0], 7);
    EXPECT_OK(fake_store_open(&control, &fake, &error), error);
    EXPECT_OK(tls_identity_create(cert[0], key[0], NULL, &identity, &error), error);
    struct store_server *server = start(fake, identity, &port);
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        int found = tls_kit_shake(port, refused[i]);
        if (found != -1) {
            TEST_FAIL("%s is spoken", refused[i]);
        }
    }
    for (size_t i = 0; i < COUNT_OF(spoken); i++) {
        int found = tls_kit_shake(port, spoken[i]);
        if (found != 7) {
            TEST_FAIL("%s is not spoken", spoken[i]);
        }
    }
    store_server_stop(server);
    tls_identity_destroy(identity);
    fake->ops->close(fake);
}

static void new_files_take_effect(void)
{
    static struct fake_control control;
    struct error error;
    struct store *fake = NULL;
    struct tls_identity *identity = NULL;
    int port = 0;
    make(0, -DAY_S, DAY_S, 1);
    EXPECT_OK(fake_store_open(&control, &fake, &error), error);
    EXPECT_OK(tls_identity_create(cert[0], key[0], NULL, &identity, &error), error);
    struct store_server *server = start(fake, identity, &port);
    EXPECT_INT(tls_kit_shake(port, "NORMAL"), 1);
    for (int serial = 2; serial < 5; serial++) {
        make(0, -DAY_S, DAY_S, serial);
        EXPECT_INT(tls_kit_shake(port, "NORMAL"), serial - 1); /* not before it is asked to */
        EXPECT_OK(tls_identity_reload(identity, &error), error);
        EXPECT_INT(tls_kit_shake(port, "NORMAL"), serial);
    }
    make(0, -2 * DAY_S, -DAY_S, 9);
    EXPECT_INT(tls_identity_reload(identity, &error), STATUS_BAD_INPUT);
    EXPECT_INT(tls_kit_shake(port, "NORMAL"), 4); /* the last good one */
    store_server_stop(server);
    tls_identity_destroy(identity);
    fake->ops->close(fake);
}

int main(void)
{
    return TEST_RUN(TEST(bad_pairs_are_refused), TEST(old_protocols_are_not_spoken),
                    TEST(weak_ciphers_are_not_spoken), TEST(new_files_take_effect));
}

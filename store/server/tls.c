/*
 * Certificates and keys. See tls.h.
 */
#include "store/server/tls.h"

#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CHAIN_MAX = 16, PEM_BYTES_MAX = 1 << 20, KEY_ID_BYTES = 64 };

struct tls_pair {
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned chain_count;
    gnutls_privkey_t key;
    struct tls_pair *replaced; /* the one before; kept, see tls.h */
};

struct tls_identity {
    char cert_path[LIMIT_PATH_BYTES];
    char key_path[LIMIT_PATH_BYTES];
    const struct clock *clock;
    pthread_mutex_t mutex;
    struct tls_pair *pair; /* guarded by the mutex */
};

static void destroy_pair(struct tls_pair *pair)
{
    if (pair == NULL) {
        return;
    }
    for (unsigned i = 0; i < pair->chain_count; i++) {
        gnutls_pcert_deinit(&pair->chain[i]);
    }
    if (pair->key != NULL) {
        gnutls_privkey_deinit(pair->key);
    }
    free(pair);
}

/* A whole small file; datum->data is malloc'ed. */
static enum status read_pem(const char *path, bool secret, gnutls_datum_t *datum,
                            struct error *error)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &info) != 0) {
        int reason = errno;
        if (fd >= 0) {
            close(fd);
        }
        return error_set(error, STATUS_IO, "%s: cannot read the %s: %s", path,
                         secret ? "private key" : "certificate", strerror(reason));
    }
    enum status status = STATUS_OK;
    if (!S_ISREG(info.st_mode)) {
        status = error_set(error, STATUS_BAD_INPUT, "%s: expected a regular file", path);
    } else if (secret && (info.st_mode & 007) != 0) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "%s: expected a private key that others may not touch, found mode %04o "
                           "(chmod o= it)",
                           path, (unsigned)(info.st_mode & 07777));
    }
    unsigned char *data = malloc(PEM_BYTES_MAX);
    size_t used = 0;
    ssize_t got = 1;
    while (status == STATUS_OK && data != NULL && used < PEM_BYTES_MAX && got != 0) {
        got = read(fd, data + used, PEM_BYTES_MAX - used);
        if (got < 0 && errno != EINTR) {
            status = error_set(error, STATUS_IO, "%s: cannot read: %s", path, strerror(errno));
        }
        used += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (status == STATUS_OK && (data == NULL || used == PEM_BYTES_MAX)) {
        status = error_set(error, data == NULL ? STATUS_NO_MEMORY : STATUS_LIMIT,
                           "%s: expected a PEM file of less than %d bytes", path, PEM_BYTES_MAX);
    }
    if (status != STATUS_OK) {
        free(data);
        return status;
    }
    datum->data = data;
    datum->size = (unsigned)used;
    return STATUS_OK;
}

/* The first certificate is the server's own; it must be valid now. */
static enum status check_dates(const struct tls_identity *identity, const gnutls_pcert_st *cert,
                               struct error *error)
{
    gnutls_x509_crt_t x509 = NULL;
    gnutls_pcert_st copy = *cert; /* exporting does not change it, but is not declared so */
    int result = gnutls_pcert_export_x509(&copy, &x509);
    if (result != 0) {
        return error_set(error, STATUS_BAD_INPUT, "%s: cannot look into the certificate: %s",
                         identity->cert_path, gnutls_strerror(result));
    }
    int64_t now_s = clock_wall_ns(identity->clock) / NS_PER_S;
    time_t from = gnutls_x509_crt_get_activation_time(x509);
    time_t until = gnutls_x509_crt_get_expiration_time(x509);
    gnutls_x509_crt_deinit(x509);
    bool early = from != (time_t)-1 && now_s < (int64_t)from;
    bool late = until != (time_t)-1 && now_s >= (int64_t)until;
    if (!early && !late) {
        return STATUS_OK;
    }
    char when[32] = "";
    struct tm utc;
    if (gmtime_r(early ? &from : &until, &utc) != NULL) {
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &utc);
    }
    return error_set(error, STATUS_BAD_INPUT, "%s: the certificate %s %s", identity->cert_path,
                     early ? "is not valid before" : "expired on", when);
}

static enum status check_match(const struct tls_identity *identity, const struct tls_pair *pair,
                               struct error *error)
{
    unsigned char of_cert[KEY_ID_BYTES];
    unsigned char of_key[KEY_ID_BYTES];
    size_t cert_bytes = sizeof of_cert;
    size_t key_bytes = sizeof of_key;
    gnutls_pubkey_t public_key = NULL;
    int result = gnutls_pubkey_init(&public_key);
    if (result == 0) {
        result = gnutls_pubkey_import_privkey(public_key, pair->key, 0, 0);
    }
    if (result == 0) {
        result = gnutls_pubkey_get_key_id(public_key, GNUTLS_KEYID_USE_SHA256, of_key, &key_bytes);
    }
    if (result == 0) {
        result = gnutls_pubkey_get_key_id(pair->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, of_cert,
                                          &cert_bytes);
    }
    if (public_key != NULL) {
        gnutls_pubkey_deinit(public_key);
    }
    if (result != 0) {
        return error_set(error, STATUS_BAD_INPUT, "%s: cannot compare key and certificate: %s",
                         identity->key_path, gnutls_strerror(result));
    }
    if (cert_bytes != key_bytes || memcmp(of_cert, of_key, key_bytes) != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected the private key of the first certificate in %s, found "
                         "another key",
                         identity->key_path, identity->cert_path);
    }
    return STATUS_OK;
}

static enum status import_pair(const struct tls_identity *identity, const gnutls_datum_t *cert,
                               const gnutls_datum_t *key, struct tls_pair *pair,
                               struct error *error)
{
    unsigned count = CHAIN_MAX;
    int result =
        gnutls_pcert_list_import_x509_raw(pair->chain, &count, cert, GNUTLS_X509_FMT_PEM, 0);
    if (result != 0 || count == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected a PEM file of 1 to %d certificates, the server's own first: "
                         "%s",
                         identity->cert_path, CHAIN_MAX, gnutls_strerror(result));
    }
    pair->chain_count = count;
    result = gnutls_privkey_init(&pair->key);
    if (result == 0) {
        result = gnutls_privkey_import_x509_raw(pair->key, key, GNUTLS_X509_FMT_PEM, NULL, 0);
    }
    if (result != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected a private key in PEM without a password: %s",
                         identity->key_path, gnutls_strerror(result));
    }
    enum status status = check_match(identity, pair, error);
    return status == STATUS_OK ? check_dates(identity, &pair->chain[0], error) : status;
}

static enum status load_pair(const struct tls_identity *identity, struct tls_pair **out,
                             struct error *error)
{
    gnutls_datum_t cert = {.data = NULL};
    gnutls_datum_t key = {.data = NULL};
    struct tls_pair *pair = calloc(1, sizeof *pair);
    TRY(memory_check(pair, error, "%s: out of memory", identity->cert_path));
    enum status status = read_pem(identity->cert_path, false, &cert, error);
    THEN(status, read_pem(identity->key_path, true, &key, error));
    THEN(status, import_pair(identity, &cert, &key, pair, error));
    if (key.data != NULL) {
        explicit_bzero(key.data, key.size);
    }
    free(key.data);
    free(cert.data);
    if (status != STATUS_OK) {
        destroy_pair(pair);
        return status;
    }
    *out = pair;
    return STATUS_OK;
}

enum status tls_identity_create(const char *cert_path, const char *key_path,
                                const struct clock *clock, struct tls_identity **out,
                                struct error *error)
{
    if (strlen(cert_path) >= LIMIT_PATH_BYTES || strlen(key_path) >= LIMIT_PATH_BYTES) {
        return error_set(error, STATUS_LIMIT,
                         "certificate and key: expected paths of at most %d "
                         "bytes",
                         LIMIT_PATH_BYTES - 1);
    }
    struct tls_identity *identity = calloc(1, sizeof *identity);
    TRY(memory_check(identity, error, "%s: out of memory", cert_path));
    strcpy(identity->cert_path, cert_path);
    strcpy(identity->key_path, key_path);
    identity->clock = clock != NULL ? clock : clock_system();
    enum status status = load_pair(identity, &identity->pair, error);
    if (status != STATUS_OK) {
        free(identity);
        return status;
    }
    pthread_mutex_init(&identity->mutex, NULL);
    *out = identity;
    return STATUS_OK;
}

enum status tls_identity_reload(struct tls_identity *identity, struct error *error)
{
    struct tls_pair *pair = NULL;
    TRY(load_pair(identity, &pair, error));
    pthread_mutex_lock(&identity->mutex);
    pair->replaced = identity->pair;
    identity->pair = pair;
    pthread_mutex_unlock(&identity->mutex);
    return STATUS_OK;
}

void tls_identity_destroy(struct tls_identity *identity)
{
    if (identity == NULL) {
        return;
    }
    struct tls_pair *pair = identity->pair;
    while (pair != NULL) {
        struct tls_pair *replaced = pair->replaced;
        destroy_pair(pair);
        pair = replaced;
    }
    pthread_mutex_destroy(&identity->mutex);
    free(identity);
}

void tls_identity_current(struct tls_identity *identity, gnutls_pcert_st **chain,
                          unsigned *chain_count, gnutls_privkey_t *key)
{
    pthread_mutex_lock(&identity->mutex);
    struct tls_pair *pair = identity->pair;
    pthread_mutex_unlock(&identity->mutex);
    *chain = pair->chain;
    *chain_count = pair->chain_count;
    *key = pair->key;
}

/* ---- sessions ---- */

/* A peer that ended without a word is one that has gone. */
static ssize_t settle(ssize_t count)
{
    if (count < 0) {
        errno = count == GNUTLS_E_AGAIN || count == GNUTLS_E_INTERRUPTED ? EAGAIN : EIO;
    }
    return count < 0 ? -1 : count;
}

ssize_t tls_receive(void *session, void *out, size_t capacity)
{
    return settle(gnutls_record_recv(session, out, capacity));
}

ssize_t tls_send(void *session, const void *data, size_t bytes)
{
    return settle(gnutls_record_send(session, data, bytes));
}

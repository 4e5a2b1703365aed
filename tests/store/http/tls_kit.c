/*
 * Certificates for tests. See tls_kit.h.
 */
#include "tests/store/http/tls_kit.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void put(const char *path, const gnutls_datum_t *text, mode_t mode)
{
    char draft[256];
    snprintf(draft, sizeof draft, "%s.draft", path);
    FILE *file = fopen(draft, "w");
    CHECK(file != NULL && fwrite(text->data, 1, text->size, file) == text->size);
    CHECK(fclose(file) == 0 && chmod(draft, mode) == 0 && rename(draft, path) == 0);
}

static void make(const char *cert_path, const char *key_path, gnutls_pk_algorithm_t algorithm,
                 unsigned bits, int64_t from_s, int64_t until_s, int serial)
{
    static const unsigned char loopback[] = {127, 0, 0, 1};
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t cert;
    gnutls_datum_t text;
    unsigned char number[] = {(unsigned char)serial};
    CHECK(gnutls_x509_privkey_init(&key) == 0);
    CHECK(gnutls_x509_privkey_generate(key, algorithm, bits, 0) == 0);
    CHECK(gnutls_x509_crt_init(&cert) == 0);
    CHECK(gnutls_x509_crt_set_version(cert, 3) == 0);
    CHECK(gnutls_x509_crt_set_serial(cert, number, sizeof number) == 0);
    CHECK(gnutls_x509_crt_set_dn(cert, "CN=localhost", NULL) == 0);
    CHECK(gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, "localhost", 9,
                                               GNUTLS_FSAN_APPEND) == 0);
    CHECK(gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, loopback,
                                               sizeof loopback, GNUTLS_FSAN_APPEND) == 0);
    CHECK(gnutls_x509_crt_set_basic_constraints(cert, 1, -1) == 0);
    CHECK(gnutls_x509_crt_set_activation_time(cert, (time_t)from_s) == 0);
    CHECK(gnutls_x509_crt_set_expiration_time(cert, (time_t)until_s) == 0);
    CHECK(gnutls_x509_crt_set_key(cert, key) == 0);
    CHECK(gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0) == 0);
    CHECK(gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &text) == 0);
    put(cert_path, &text, 0644);
    gnutls_free(text.data);
    CHECK(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text) == 0);
    put(key_path, &text, 0600);
    gnutls_free(text.data);
    gnutls_x509_crt_deinit(cert);
    gnutls_x509_privkey_deinit(key);
}

void tls_kit_make(const char *cert_path, const char *key_path, int64_t from_s, int64_t until_s,
                  int serial)
{
    make(cert_path, key_path, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
         from_s, until_s, serial);
}

void tls_kit_make_rsa(const char *cert_path, const char *key_path, int serial)
{
    enum { DAY_S = 86400, BITS = 2048 };
    int64_t now_s = (int64_t)time(NULL);
    make(cert_path, key_path, GNUTLS_PK_RSA, BITS, now_s - DAY_S, now_s + DAY_S, serial);
}

/* The serial number of the first certificate that the other side showed. */
static int serial_of(gnutls_session_t session)
{
    unsigned count = 0;
    unsigned char number[64] = {0};
    size_t bytes = sizeof number;
    gnutls_x509_crt_t cert;
    const gnutls_datum_t *raw = gnutls_certificate_get_peers(session, &count);
    CHECK(raw != NULL && count > 0 && gnutls_x509_crt_init(&cert) == 0);
    CHECK(gnutls_x509_crt_import(cert, raw, GNUTLS_X509_FMT_DER) == 0);
    CHECK(gnutls_x509_crt_get_serial(cert, number, &bytes) == 0 && bytes > 0);
    gnutls_x509_crt_deinit(cert);
    return number[bytes - 1];
}

int tls_kit_shake(int port, const char *priorities)
{
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(gnutls_certificate_allocate_credentials(&credentials) == 0);
    CHECK(gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL) == 0);
    CHECK(gnutls_priority_set_direct(session, priorities, NULL) == 0);
    CHECK(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials) == 0);
    gnutls_transport_set_int(session, fd);
    gnutls_handshake_set_timeout(session, 20000);
    int result;
    do {
        result = gnutls_handshake(session);
    } while (result < 0 && gnutls_error_is_fatal(result) == 0);
    int serial = result == 0 ? serial_of(session) : -1;
    if (result == 0) {
        gnutls_bye(session, GNUTLS_SHUT_WR);
    }
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    close(fd);
    return serial;
}

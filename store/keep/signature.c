/*
 * Signatures by GnuTLS. See signature.h. Nothing is kept between calls.
 */
#include "store/keep/signature.h"

#include "base/file.h"

#include <gnutls/abstract.h>

#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES_MAX = 65536 };

/* Any failure of GnuTLS with a key's file. */
static enum status refuse(const char *key_path, const char *expected, int code, struct error *error)
{
    return error_set(error, STATUS_BAD_INPUT, "%s: expected %s in PEM, found: %s", key_path,
                     expected, gnutls_strerror(code));
}

static enum status check_algorithm(const char *key_path, const char *expected, int algorithm,
                                   struct error *error)
{
    if (algorithm == GNUTLS_PK_EDDSA_ED25519) {
        return STATUS_OK;
    }
    const char *name = gnutls_pk_get_name((gnutls_pk_algorithm_t)algorithm);
    return error_set(error, STATUS_BAD_INPUT, "%s: expected %s, found a key of %s", key_path,
                     expected, name != NULL ? name : "another algorithm");
}

static enum status sign(gnutls_privkey_t key, const char *key_path, const gnutls_datum_t *pem,
                        const gnutls_datum_t *text, uint8_t out[SIGNATURE_BYTES],
                        struct error *error)
{
    static const char expected[] = "a private key of Ed25519 without a password";
    gnutls_datum_t signature = {.data = NULL};
    int code = gnutls_privkey_import_x509_raw(key, pem, GNUTLS_X509_FMT_PEM, NULL, 0);

    if (code != GNUTLS_E_SUCCESS) {
        return refuse(key_path, expected, code, error);
    }
    TRY(check_algorithm(key_path, expected, gnutls_privkey_get_pk_algorithm(key, NULL), error));
    code = gnutls_privkey_sign_data2(key, GNUTLS_SIGN_EDDSA_ED25519, 0, text, &signature);
    if (code != GNUTLS_E_SUCCESS || signature.size != SIGNATURE_BYTES) {
        gnutls_free(signature.data);
        return error_set(error, STATUS_IO, "%s: the key does not sign: %s", key_path,
                         gnutls_strerror(code));
    }
    memcpy(out, signature.data, SIGNATURE_BYTES);
    gnutls_free(signature.data);
    return STATUS_OK;
}

static enum status verify(gnutls_pubkey_t key, const char *key_path, const gnutls_datum_t *pem,
                          const gnutls_datum_t *text, const gnutls_datum_t *signature,
                          struct error *error)
{
    static const char expected[] = "a public key of Ed25519";
    int code = gnutls_pubkey_import(key, pem, GNUTLS_X509_FMT_PEM);

    if (code != GNUTLS_E_SUCCESS) {
        return refuse(key_path, expected, code, error);
    }
    TRY(check_algorithm(key_path, expected, gnutls_pubkey_get_pk_algorithm(key, NULL), error));
    code = gnutls_pubkey_verify_data2(key, GNUTLS_SIGN_EDDSA_ED25519, 0, text, signature);
    return code >= 0 ? STATUS_OK
                     : error_set(error, STATUS_MISMATCH,
                                 "the signature is not of this text by the key in %s: %s", key_path,
                                 gnutls_strerror(code));
}

/* Borrows. */
static gnutls_datum_t datum(const void *bytes, size_t count)
{
    gnutls_datum_t out = {.size = (unsigned)count};
    memcpy(&out.data, &bytes, sizeof out.data); /* the library's inputs are not const */
    return out;
}

enum status signature_make(const char *key_path, const void *text, size_t bytes,
                           uint8_t out[SIGNATURE_BYTES], struct error *error)
{
    char *pem = NULL;
    size_t pem_bytes = 0;
    gnutls_privkey_t key = NULL;
    TRY(file_read(key_path, KEY_BYTES_MAX, &pem, &pem_bytes, error));
    int code = gnutls_privkey_init(&key);
    enum status status = code == GNUTLS_E_SUCCESS ? STATUS_OK
                                                  : error_set(error, STATUS_NO_MEMORY, "a key: %s",
                                                              gnutls_strerror(code));
    if (status == STATUS_OK) {
        const gnutls_datum_t from = datum(pem, pem_bytes);
        const gnutls_datum_t what = datum(text, bytes);
        status = sign(key, key_path, &from, &what, out, error);
        gnutls_privkey_deinit(key);
    }
    explicit_bzero(pem, pem_bytes);
    free(pem);
    return status;
}

enum status signature_verify(const char *key_path, const void *text, size_t bytes,
                             const uint8_t signature[SIGNATURE_BYTES], struct error *error)
{
    char *pem = NULL;
    size_t pem_bytes = 0;
    gnutls_pubkey_t key = NULL;
    TRY(file_read(key_path, KEY_BYTES_MAX, &pem, &pem_bytes, error));
    int code = gnutls_pubkey_init(&key);
    enum status status = code == GNUTLS_E_SUCCESS ? STATUS_OK
                                                  : error_set(error, STATUS_NO_MEMORY, "a key: %s",
                                                              gnutls_strerror(code));
    if (status == STATUS_OK) {
        const gnutls_datum_t from = datum(pem, pem_bytes);
        const gnutls_datum_t what = datum(text, bytes);
        const gnutls_datum_t said = datum(signature, SIGNATURE_BYTES);
        status = verify(key, key_path, &from, &what, &said, error);
        gnutls_pubkey_deinit(key);
    }
    free(pem);
    return status;
}

// Failures as Node and OpenSSL 3 word them, and what people read of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createSecureContext } from "node:tls";
import { makeSelfSigned } from "../platform/net/self-signed.ts";
import { certificateWords, keyFileWords, tlsFailureWords } from "./tls-words.ts";

const traced = (reason: string) =>
  `C0B7F1D3547F0000:error:0A00018A:SSL routines:tls_process_ske_dhe:${reason}:../deps/openssl/openssl/ssl/statem.c:2101:\n`;

const cases: [string, string][] = [
  ["dh key too small", "the server's key or signature is too weak"],
  ["ee key too small", "the server's key or signature is too weak"],
  ["tlsv1 alert protocol version", "the two sides have no TLS version in common"],
  ["sslv3 alert handshake failure", "the two sides have no cipher or key exchange in common"],
  ["ssl/tls alert handshake failure", "the two sides have no cipher or key exchange in common"],
  ["tlsv1 unrecognized name", "the server does not know the host name that it was asked for"],
  ["tlsv13 alert certificate required", "the server wants a certificate from its clients"],
  ["unexpected eof while reading", "the other side closed the connection"],
  ["tlsv1 alert internal error", "the server reports an internal error"],
  ["decryption failed or bad record mac", "encrypted data came damaged"],
  ["unsafe legacy renegotiation disabled", "the server wants a form of renegotiation that is not safe"],
  ["bad ecpoint", 'OpenSSL says "bad ecpoint"'],
];
for (const [reason, words] of cases) {
  test(`"${reason}" is said in words, from the property and from the trace`, () => {
    for (const trouble of [
      { code: "ERR_SSL_X", reason, message: traced(reason) },
      { code: "EPROTO", message: `write EPROTO ${traced(reason)}` },
    ]) {
      assert.equal(tlsFailureWords(trouble), `the TLS handshake failed: ${words}`);
    }
  });
}

test("certificates and broken connections have words of their own, and other errors stay as they are", () => {
  const words = (code: string | undefined, message = "x") => tlsFailureWords({ code, message });
  assert.equal(words("CERT_HAS_EXPIRED"), "the certificate is not valid: it has expired");
  assert.equal(words("ECONNRESET"), "the other side broke the TLS connection off");
  assert.equal(words(undefined, "out of paper"), "out of paper");
  assert.equal(certificateWords("CRL_HAS_EXPIRED"), "it could not be verified (CRL_HAS_EXPIRED)");
  assert.equal(certificateWords("CERT_REVOKED", "DNS:a.test"), "it was revoked");
});

test("files that cannot be used say what is wrong with them", () => {
  const [one, other] = [makeSelfSigned(["a.test"], 0), makeSelfSigned(["a.test"], 0)];
  for (const [pair, words] of [
    [{ cert: "nothing", key: one.key }, "it holds no certificate or key in PEM form"],
    [{ cert: one.cert, key: other.key }, "the key does not belong to the certificate"],
    [{ cert: one.cert, key: "nothing" }, "it is damaged, or of a kind that is not known"],
  ] as const) {
    const thrown = (error: Error) => keyFileWords(error) === words || assert.fail(`${words}, not ${error.message}`);
    assert.throws(() => createSecureContext(pair), thrown);
  }
  assert.equal(keyFileWords(new Error("ENOENT: no such file")), "ENOENT: no such file");
});

// TLS and login over real sockets: what each mode demands, what a failure reports, and what must never be said in clear.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { makeCertificateAuthority } from "../../../test/support/tls.ts";
import { makeSelfSigned } from "../../platform/net/self-signed.ts";
import { greet, type KeyPair, type Peer, takeEnvelope } from "./scripted-server.fixture.ts";
import {
  closeOpened,
  ENVELOPE,
  failed,
  MESSAGE,
  openedWith,
  type Script,
  tryOpen,
} from "./scripted-session.fixture.ts";
import type { PeerTls, SessionTls } from "./session.ts";

afterEach(closeOpened);

const pair = makeSelfSigned(["mx.test"], Date.now());
const stranger = makeSelfSigned(["other.test"], Date.now());

/** Offers STARTTLS, does the handshake, and greets again with the extensions. */
function overTls(certificate: KeyPair, ...extensions: string[]): Script {
  return async (peer) => {
    await greet(peer, "STARTTLS", "CLEARONLY", "SIZE 5");
    assert.equal(await peer.line(), "STARTTLS");
    peer.say("220 go ahead");
    await peer.startTls(certificate);
    await answerEhlo(peer, ...extensions);
  };
}

async function answerEhlo(peer: Peer, ...extensions: string[]): Promise<void> {
  await peer.line();
  peer.say(...["250-mx.test", ...extensions.map((line) => `250-${line}`), "250 HELP"]);
}

test("opportunistic mode takes any certificate and forgets what was said in clear", async () => {
  let received = "";
  const session = await openedWith({ tls: { mode: "opportunistic" } }, async (peer) => {
    await overTls(stranger, "PIPELINING")(peer);
    await takeEnvelope(peer);
    peer.say("354 go");
    received = (await peer.message())?.toString() ?? "";
    peer.say("250 ok");
  });
  assert.match(session.tls?.protocol ?? "", /^TLSv1\.[23]$/);
  assert.match(session.tls?.cipher ?? "", /^TLS_/);
  assert.equal(session.tls?.authorized, false);
  assert.deepEqual([session.capabilities.pipelining, session.capabilities.size], [true, null]);
  assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, "delivered");
  assert.match(received, /^Subject: hello/);
});

test("opportunistic mode goes on in clear where STARTTLS is not offered or is refused", async () => {
  const plain = await openedWith({ tls: { mode: "opportunistic" } }, (peer) => greet(peer, "SIZE 5"));
  assert.equal(plain.tls, null);
  const refused = await openedWith({ tls: { mode: "opportunistic" } }, async (peer) => {
    await greet(peer, "STARTTLS", "SIZE 5");
    await peer.line();
    peer.say("454 4.7.0 TLS not available");
  });
  assert.deepEqual([refused.tls, refused.capabilities.size], [null, 5]);
});

test("a failed handshake is reported as tls_failed, and mode none then delivers in clear", async () => {
  const broken: Script = async (peer) => {
    await greet(peer, "STARTTLS");
    await peer.line();
    peer.say("220 go ahead");
    peer.raw("this is not TLS\r\n");
  };
  const failure = await failed({ tls: { mode: "opportunistic" } }, broken);
  assert.deepEqual([failure.stage, failure.tls_failed, failure.reply], ["starttls", true, null]);
  const session = await openedWith({ tls: { mode: "none" } }, (peer) => greet(peer, "STARTTLS"));
  assert.equal(session.tls, null);
});

test("a handshake that never ends is given up at its time limit", async () => {
  const failure = await failed({ tls: { mode: "opportunistic" }, timeouts: { greeting_ms: 150 } }, async (peer) => {
    await greet(peer, "STARTTLS");
    await peer.line();
    peer.say("220 go ahead");
  });
  assert.deepEqual([failure.stage, failure.cause, failure.tls_failed], ["starttls", "timeout", true]);
});

test("a connection dropped in the handshake is tls_failed", async () => {
  const failure = await failed({ tls: { mode: "opportunistic" } }, async (peer) => {
    await greet(peer, "STARTTLS");
    await peer.line();
    peer.say("220 go ahead");
    setTimeout(() => peer.drop(), 20);
  });
  assert.deepEqual([failure.stage, failure.cause, failure.tls_failed], ["starttls", "tls", true]);
});

test("require and verify never go on in clear", async () => {
  for (const mode of ["require", "verify"] as const) {
    const notOffered = await failed({ tls: { mode } }, (peer) => greet(peer, "SIZE 5"));
    assert.deepEqual([notOffered.stage, notOffered.tls_failed], ["starttls", true]);
    const refused = await failed({ tls: { mode } }, async (peer) => {
      await greet(peer, "STARTTLS");
      await peer.line();
      peer.say("454 4.7.0 no");
    });
    assert.deepEqual([refused.stage, refused.tls_failed, refused.reply?.code], ["starttls", true, 454]);
  }
});

test("require takes any certificate; verify wants chain and name", async () => {
  const tryMode = (tls: SessionTls, certificate: KeyPair) => openOrDetail(tls, certificate);
  assert.equal(await tryMode({ mode: "require" }, stranger), "session");
  assert.match(await tryMode({ mode: "verify" }, pair), /not valid for mx\.test: .*self.signed/i);
  assert.equal(await tryMode({ mode: "verify", ca: pair.cert }, pair), "session");
  assert.match(
    await tryMode({ mode: "verify", ca: stranger.cert }, stranger),
    /not valid for mx\.test: it is for other names \(other\.test\)/,
  );
});

/** No trace of OpenSSL's: hexadecimal codes, names of routines and files, codes in capitals. */
const RAW = /error:|routines|openssl|deps|[0-9A-F]{8}|[A-Z]+_[A-Z]+|:\d+:/;
const handshake = (options: object): Script => {
  return async (peer) => {
    await greet(peer, "STARTTLS");
    await peer.line();
    peer.say("220 go ahead");
    await peer.startTls({ ...pair, ...options });
    await answerEhlo(peer);
  };
};
const required: SessionTls = { mode: "require" };
const faults: [string, SessionTls, Script, RegExp][] = [
  [
    "speaks in clear",
    { ...required, implicit: true },
    (peer) => peer.say("220 mx.test"),
    /^the TLS handshake failed: what came was not TLS$/,
  ],
  [
    "knows old versions only",
    required,
    handshake({ minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" }),
    /^the TLS handshake failed: the two sides have no TLS version in common$/,
  ],
  [
    "shares no cipher with us",
    required,
    handshake({ maxVersion: "TLSv1.2", ciphers: "ECDHE-RSA-AES128-GCM-SHA256" }),
    /^the TLS handshake failed: the two sides have no cipher or key exchange in common$/,
  ],
  [
    "breaks off",
    required,
    dropsInHandshake,
    /^(the other side broke the TLS connection off|the connection was closed)/,
  ],
];

async function dropsInHandshake(peer: Peer): Promise<void> {
  await greet(peer, "STARTTLS");
  await peer.line();
  peer.say("220 go ahead");
  await new Promise((resolve) => setImmediate(resolve));
  peer.drop();
}

for (const [what, tls, script, words] of faults) {
  test(`a handshake that fails is shown in plain words: the server ${what}`, async () => {
    const failure = await failed({ tls }, script);
    assert.equal(failure.tls_failed, true);
    assert.match(failure.detail, words);
    assert.doesNotMatch(failure.detail, RAW);
  });
}

test("a certificate that does not count is shown in plain words", async () => {
  const dir = mkdtempSync(join(tmpdir(), "postern-tls-"));
  const authority = makeCertificateAuthority(dir);
  const cases: [KeyPair, RegExp][] = [
    [authority.issue(["mx.test"], { from_days: -20, until_days: -1 }), /it has expired$/],
    [authority.issue(["mx.test"], { from_days: 2, until_days: 9 }), /it is not valid yet$/],
    [authority.issue(["a.test", "b.test"]), /it is for other names \(a\.test, b\.test\)$/],
  ];
  rmSync(dir, { recursive: true });
  const strange: [KeyPair, RegExp] = [
    authority.issue(["mx.test"]),
    /its chain ends at an authority that is not trusted here$/,
  ];
  for (const [ca, [certificate, words]] of [
    ...cases.map((one) => [authority.ca, one] as const),
    [undefined, strange] as const,
  ]) {
    const detail = await openOrDetail({ mode: "verify", ...(ca ? { ca } : {}) }, certificate);
    assert.match(detail, words);
    assert.match(detail, /^the certificate is not valid for mx\.test: /);
    assert.doesNotMatch(detail, RAW);
  }
});

test("a server that wants a client's certificate may say so after the handshake: in plain words then, too", async () => {
  const outcome = await tryOpen({ tls: required }, handshake({ requestCert: true, rejectUnauthorized: true }));
  assert.equal(outcome.kind, "failed");
  assert.doesNotMatch(outcome.kind === "failed" ? outcome.detail : "", /error:|routines/);
});

async function openOrDetail(tls: SessionTls, certificate: KeyPair): Promise<string> {
  const result = await tryOpen({ tls }, overTls(certificate));
  if (result.kind === "session") return result.kind;
  assert.deepEqual([result.stage, result.tls_failed], ["starttls", true]);
  return result.detail;
}

test("a check decides alone, sees the certificate, and comes before another byte is sent", async () => {
  let seen: PeerTls | undefined;
  const check = (peer: PeerTls) => {
    seen = peer;
    return peer.certificate.subject.CN === "mx.test" ? null : "no TLSA record matches";
  };
  assert.equal(await openOrDetail({ mode: "verify", check }, pair), "session");
  assert.deepEqual([seen?.host, seen?.authorized], ["mx.test", false]);
  assert.ok(seen && seen.certificate.raw.length > 100);
  let afterHandshake: string | null = "";
  const failure = await failed({ tls: { mode: "verify", check } }, async (peer) => {
    await greet(peer, "STARTTLS");
    await peer.line();
    peer.say("220 go ahead");
    await peer.startTls(stranger);
    afterHandshake = await peer.line();
  });
  assert.equal(failure.detail, "no TLSA record matches");
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(!afterHandshake, "nothing was said to the wrong server");
});

test("bytes in clear behind the answer to STARTTLS end the attempt (CVE-2011-0411)", async () => {
  for (const injected of ["250 SIZE 1\r\n", "250-SIZE 1"]) {
    const failure = await failed({ tls: { mode: "require" } }, async (peer) => {
      await greet(peer, "STARTTLS");
      await peer.line();
      peer.raw(`220 go ahead\r\n${injected}`);
    });
    assert.deepEqual([failure.stage, failure.cause], ["starttls", "protocol"], JSON.stringify(failure));
  }
});

test("TLS from the first byte works, greeting included", async () => {
  const session = await openedWith({ tls: { mode: "require", implicit: true } }, async (peer) => {
    await peer.startTls(pair);
    peer.say("220 mx.test ESMTP");
    await answerEhlo(peer, "PIPELINING");
  });
  assert.ok(session.tls);
  assert.equal(session.capabilities.pipelining, true);
});

test("a connection lost after the dot under TLS is ambiguous, before the message broken", async () => {
  for (const [reads, kind] of [
    [true, "ambiguous"],
    [false, "broken"],
  ] as const) {
    const session = await openedWith({ tls: { mode: "require" } }, async (peer) => {
      await overTls(pair, "PIPELINING")(peer);
      await takeEnvelope(peer);
      if (!reads) return peer.drop();
      peer.say("354 go");
      await peer.message();
      peer.drop();
    });
    assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, kind);
  }
});

const auth = { user: "us\u00e9r", pass: "secret" };
const plain = Buffer.from("\0us\u00e9r\0secret").toString("base64");

test("login uses PLAIN where offered, else LOGIN", async () => {
  let lines: string[] = [];
  const withPlain = await openedWith({ tls: { mode: "require" }, auth }, async (peer) => {
    lines = peer.lines;
    await overTls(pair, "AUTH LOGIN PLAIN")(peer);
    await peer.line();
    peer.say("235 2.7.0 welcome");
  });
  assert.equal(withPlain.usable, true);
  assert.equal(lines.at(-1), `AUTH PLAIN ${plain}`);
  await openedWith({ tls: { mode: "require" }, auth }, async (peer) => {
    lines = peer.lines;
    await overTls(pair, "AUTH LOGIN")(peer);
    for (const reply of ["334 VXNlcm5hbWU6", "334 UGFzc3dvcmQ6", "235 ok"]) {
      await peer.line();
      peer.say(reply);
    }
  });
  const encoded = ["us\u00e9r", "secret"].map((text) => Buffer.from(text).toString("base64"));
  assert.deepEqual(lines.slice(-3), ["AUTH LOGIN", ...encoded]);
});

test("credentials are never sent in clear, whatever the mode and the offer", async () => {
  let lines: string[] = [];
  for (const mode of ["none", "opportunistic"] as const) {
    const failure = await failed({ tls: { mode }, auth }, async (peer) => {
      lines = peer.lines;
      await greet(peer, "AUTH PLAIN LOGIN");
      await peer.line();
    });
    assert.deepEqual([failure.stage, failure.tls_failed, lines.length], ["auth", true, 1]);
  }
});

test("a refused login is reported with its reply, a missing mechanism without", async () => {
  const refused = await failed({ tls: { mode: "require" }, auth }, async (peer) => {
    await overTls(pair, "AUTH PLAIN")(peer);
    await peer.line();
    peer.say("535 5.7.8 wrong");
  });
  assert.deepEqual([refused.stage, refused.cause, refused.reply?.enhanced], ["auth", "refused", "5.7.8"]);
  const missing = await failed({ tls: { mode: "require" }, auth }, overTls(pair, "AUTH GSSAPI"));
  assert.deepEqual([missing.stage, missing.reply], ["auth", null]);
  assert.match(missing.detail, /no login mechanism in common \(offered: GSSAPI\)/);
});

// Opens a session against a scripted server; a test file closes both with `afterEach(closeOpened)`.
import assert from "node:assert/strict";
import { greet, type Peer, type ScriptedServer, scriptedServer, takeEnvelope } from "./scripted-server.fixture.ts";
import { type ConnectFailure, openSession, type Session, type SessionOptions } from "./session.ts";
import type { Envelope } from "./transaction.ts";

export const MESSAGE = Buffer.from("Subject: hello\r\n\r\n.first\r\n..\r\nlast\r\n");
export const ENVELOPE: Envelope = {
  from: "a@example.com",
  to: "b@example.net",
  smtputf8: false,
  size: MESSAGE.length,
  require8bit: false,
};

export type Script = (peer: Peer) => Promise<void> | void;

const open: { server: ScriptedServer; session: Session | null }[] = [];

/** What was opened since it was last called. */
export async function closeOpened(): Promise<void> {
  for (const { server, session } of open.splice(0)) {
    session?.close();
    await server.close();
  }
}

export async function tryOpen(
  options: Partial<SessionOptions>,
  ...scripts: Script[]
): Promise<Session | ConnectFailure> {
  const server = await scriptedServer(...scripts);
  const session = await openSession({
    host: "mx.test",
    address: "127.0.0.1",
    port: server.port,
    ehlo_name: "out.example.com",
    tls: { mode: "none" },
    ...options,
  });
  open.push({ server, session: session.kind === "session" ? session : null });
  return session;
}

export async function opened(...scripts: Script[]): Promise<Session> {
  return openedWith({}, ...scripts);
}

export async function openedWith(options: Partial<SessionOptions>, ...scripts: Script[]): Promise<Session> {
  const session = await tryOpen(options, ...scripts);
  assert.ok(session.kind === "session", JSON.stringify(session));
  return session;
}

export async function failed(options: Partial<SessionOptions>, script: Script): Promise<ConnectFailure> {
  const failure = await tryOpen(options, script);
  assert.ok(failure.kind === "failed", "a session was opened");
  return failure;
}

/** The way to 354; the message and its reply are the test's. */
export async function toData(peer: Peer, ...extensions: string[]): Promise<void> {
  await greet(peer, ...extensions);
  await takeEnvelope(peer);
  peer.say("354 go ahead");
}

// A proxy between Postern and PostgreSQL that reads the protocol (PostgreSQL manual, "Message Formats") and cuts a
// connection at a commit: before it is passed on, right behind it, or when the answer is there and nobody got it.
// Single statements that write commit as well, at their Sync. Not here: TLS, COPY.
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";

/** `before`: the database never hears of it. `sent`: cut right behind it. `answered`: committed for sure, answer lost. */
export type Cut = "before" | "sent" | "answered";

export type CommitProxy = {
  /** As `DATABASE_URL`. */
  url: string;
  /** Asked at each commit from now on, with the statement (`commit` where a transaction ends); null lets it pass. */
  decide(next: (statement: string) => Cut | null): void;
  cuts: Record<Cut, number>;
  /** Cuts by the statement that was committed: its first words. */
  statements: Map<string, number>;
  stop(): Promise<void>;
};

/** `url`: of the server itself, with whom to be there. */
type Target = { url: string; socket_dir: string | null; port: number };

const WRITES = /\b(insert|update|delete|merge)\b/i;
const NAMED_WORDS = 4;
const STATEMENT_BYTES_MAX = 64 * 1024 * 1024;

type Wire = {
  client: Socket;
  server: Socket;
  statements: Map<string, string>;
  /** What will have run by the next Sync. */
  running: string;
  isOpen: boolean;
  fate: Cut | null;
};

/** Starts it on loopback, before the server with that socket. */
export async function startCommitProxy(target: Target): Promise<CommitProxy> {
  let next = (_statement: string): Cut | null => null;
  const proxy = { cuts: { before: 0, sent: 0, answered: 0 }, statements: new Map<string, number>() };
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const wire = joinWire(client, target);
    for (const socket of [client, wire.server]) {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
    }
    pass(wire, (statement) => {
      const fate = next(statement);
      if (fate !== null) {
        proxy.cuts[fate] += 1;
        const name = statement.trim().split(/\s+/).slice(0, NAMED_WORDS).join(" ").toLowerCase();
        proxy.statements.set(name, (proxy.statements.get(name) ?? 0) + 1);
      }
      return fate;
    });
  });
  const port = await listen(server);
  return {
    ...proxy,
    url: through(target.url, port),
    decide: (decided) => {
      next = decided;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

/** The same database and login by way of the proxy. */
function through(url: string, port: number): string {
  const { username, password, pathname } = new URL(url);
  return Object.assign(new URL(`postgresql://127.0.0.1:${port}`), { username, password, pathname }).href;
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return (server.address() as { port: number }).port;
}

function joinWire(client: Socket, { socket_dir, port }: Target): Wire {
  const server = socket_dir === null ? connect(port, "127.0.0.1") : connect(join(socket_dir, `.s.PGSQL.${port}`));
  client.setNoDelay(true);
  for (const [one, other] of [
    [client, server],
    [server, client],
  ] as const) {
    one.on("error", () => other.destroy());
    one.on("close", () => other.destroy());
  }
  return { client, server, statements: new Map(), running: "", isOpen: false, fate: null };
}

function pass(wire: Wire, decide: (statement: string) => Cut | null): void {
  const { client, server } = wire;
  // The first message of a client has no type.
  readMessages(client, true, (type, message) => {
    if (wire.fate !== null) return;
    const committed = readCommand(wire, type, message);
    wire.fate = committed === null ? null : decide(committed);
    if (wire.fate === "before") hangUp(wire);
    else server.write(message);
    // The server reads what was sent before it sees the end.
    if (wire.fate === "sent") {
      client.resetAndDestroy();
      server.end();
    }
  });
  readMessages(server, false, (type, message) => {
    if (type === "Z") wire.isOpen = message[5] !== "I".charCodeAt(0);
    if (wire.fate === null) client.write(message);
    else if (type === "Z") hangUp(wire);
  });
}

function hangUp({ client, server }: Wire): void {
  client.resetAndDestroy();
  server.destroy();
}

/** The statement that this message commits, or null. */
function readCommand(wire: Wire, type: string, message: Buffer): string | null {
  switch (type) {
    case "Q": {
      const text = textAt(message, 5).text;
      return /^\s*commit\b/i.test(text) ? "commit" : null;
    }
    case "P": {
      const name = textAt(message, 5);
      wire.statements.set(name.text, textAt(message, name.end).text);
      return null;
    }
    case "B": {
      const portal = textAt(message, 5);
      wire.running = wire.statements.get(textAt(message, portal.end).text) ?? "";
      return null;
    }
    case "S": {
      const { running } = wire;
      wire.running = "";
      return !wire.isOpen && WRITES.test(running) ? running : null;
    }
    default:
      return null;
  }
}

function textAt(message: Buffer, start: number): { text: string; end: number } {
  const end = message.indexOf(0, start);
  return { text: message.toString("utf8", start, end), end: end + 1 };
}

/** Calls `take` with each whole message, its type and length included. */
function readMessages(socket: Socket, isClient: boolean, take: (type: string, message: Buffer) => void): void {
  let isFirst = isClient;
  let held: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    for (;;) {
      const head = isFirst ? 0 : 1;
      if (held.length < head + 4) return;
      const length = head + held.readUInt32BE(head);
      if (length > STATEMENT_BYTES_MAX) return void socket.destroy();
      if (held.length < length) return;
      const message = held.subarray(0, length);
      held = held.subarray(length);
      const type = isFirst ? "" : String.fromCharCode(message[0] as number);
      isFirst = false;
      take(type, message);
    }
  });
}

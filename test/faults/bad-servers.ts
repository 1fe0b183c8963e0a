// Mail servers that nobody wants to meet: one that does not answer at all, one that answers and says nothing, one that
// speaks nonsense. They stand on loopback addresses of their own. Slow and forgetful ones: sink.ts.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { Lacking } from "./lacking.ts";
import { sleep } from "./load.ts";

export type Place = { host: string; port: number };

export type BadServer = {
  /** Sockets that somebody else holds towards it now, the ones that are still knocking included. */
  sockets(): number;
  stop(): Promise<void>;
};

const CONNECT_WAIT_MS = 300;
const FILLERS_MAX = 20;
const SOCKET_TABLE = "/proc/net/tcp";

/** Throws `Lacking` where the kernel shows no table of its sockets, which is how those towards the dead one are counted. */
export function needSocketTable(path: string = SOCKET_TABLE): void {
  if (!existsSync(path)) throw new Lacking(`there is no ${path} here, which only Linux has`);
}

/**
 * A dead one: connections are never made. A stopped process whose queue of connections is full; the kernel then drops
 * what knocks, as a firewall would.
 */
export async function startDead(place: Place): Promise<BadServer> {
  const code = `require("node:net").createServer().listen({ host: "${place.host}", port: ${place.port}, backlog: 1 }, () => console.log("up"))`;
  const child = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise<void>((done) => child.stdout?.once("data", () => done()));
  child.kill("SIGSTOP");
  const fillers: Socket[] = [];
  while (await isAccepted(place, fillers)) {
    if (fillers.length > FILLERS_MAX)
      throw new Lacking("this kernel does not keep to the backlog of a listening socket");
  }
  const own = countSockets(place);
  return {
    sockets: () => countSockets(place) - own,
    stop: () => endDead(child, fillers),
  };
}

/**
 * The last one, which is not accepted, knocks on; the place it would take is filled for good. The kernel's word counts: on a
 * busy machine this process hears late that it was accepted, and would leave a place free.
 */
async function isAccepted(place: Place, fillers: Socket[]): Promise<boolean> {
  const socket = connect(place.port, place.host);
  socket.on("error", () => undefined);
  await sleep(CONNECT_WAIT_MS);
  const accepted = countSockets(place, [KNOCKING]) === 0;
  if (accepted) fillers.push(socket);
  else socket.destroy();
  return accepted;
}

async function endDead(child: ChildProcess, fillers: Socket[]): Promise<void> {
  for (const socket of fillers) socket.destroy();
  const exited = new Promise((done) => child.once("exit", done));
  child.kill("SIGKILL");
  await exited;
}

const [MADE, KNOCKING] = ["01", "02"];

/**
 * How many sockets there are at a time whose other end is that place. The kernel's table is read in pieces, and may show
 * sockets that are gone by now beside those that came instead: those count that a second reading shows as well.
 */
function countSockets(place: Place, states: (string | undefined)[] = [MADE, KNOCKING]): number {
  const seen = socketsTo(place, states);
  return seen.intersection(socketsTo(place, states)).size;
}

/** Their own ends, made or being made (the states of proc(5), /proc/net/tcp). */
function socketsTo({ host, port }: Place, states: (string | undefined)[]): Set<string | undefined> {
  const address = [...Buffer.from(host.split(".").map(Number)).reverse()];
  const remote = `${Buffer.from(address).toString("hex")}:${port.toString(16).padStart(4, "0")}`.toUpperCase();
  const lines = readFileSync(SOCKET_TABLE, "latin1").split("\n");
  const open = lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , to, state]) => to === remote && states.includes(state));
  return new Set(open.map(([, from]) => from));
}

/** A half-open one: takes connections and never says a word. */
export async function startSilent(place: Place): Promise<BadServer> {
  return serve(place, () => undefined);
}

type Lie = (socket: Socket) => void;

/** Answers the commands in turn with these, and hangs up behind the last. */
function script(replies: string[]): Lie {
  return (socket) => {
    const left = [...replies];
    const next = (): void => {
      const reply = left.shift();
      if (reply === undefined) socket.destroy();
      else socket.write(reply);
    };
    next();
    socket.on("data", next);
  };
}

const EHLO = "250-liar\r\n250-PIPELINING\r\n250-STARTTLS\r\n250 SIZE 10\r\n";
const PLAIN = "250 liar\r\n";
const ENDLESS = "250-and so on\r\n".repeat(20_000);
const LIES: Lie[] = [
  script(["HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"]),
  script(["220 liar\r\n", ENDLESS, ENDLESS, ENDLESS]),
  script(["220 liar\r\n", EHLO, "220 go on\r\n", "\x16\x03\x01 this is no handshake"]),
  script(["220 liar\r\n", PLAIN, "25O ok\r\n"]),
  script(["220 liar\r\n", PLAIN, "999 what\r\n"]),
  script(["220 liar\r\n", PLAIN, "250 ok\r\n250 ok\r\n250 ok\r\n"]),
  script(["220 liar\r\n", PLAIN, "250 ok\r\n", "250 ok\r\n", "250 thank you\r\n"]),
  script(["220 liar\r\n", PLAIN, "250 ok\r\n", "250 ok\r\n", "354 go\r\n"]),
  script(["220-", "220-\r\n", "\0\0\0\0\r\n"]),
];

/** A liar: each connection meets the next lie. None of them takes a message. */
export async function startLiar(place: Place): Promise<BadServer> {
  let turn = 0;
  return serve(place, (socket) => {
    const lie = LIES[turn % LIES.length] as Lie;
    turn += 1;
    lie(socket);
  });
}

async function serve({ host, port }: Place, meet: Lie): Promise<BadServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    socket.resume();
    meet(socket);
  });
  await new Promise<void>((done) => server.listen(port, host, done));
  return {
    sockets: () => sockets.size,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

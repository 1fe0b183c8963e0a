// Output that cannot be written: a full disk, a terminal or a reader that went away. A command ends with 1 for it. A service goes
// on, and says how many lines of its log were lost once there is room again.
import { write, writeSync } from "node:fs";

/** Of lines that wait to be written; what comes above it is lost. */
const WAITING_LENGTH_MAX = 8 * 1024 * 1024;
const AGAIN_MS = 100;
/** At the end, to a reader that is busy. */
const LAST_TRIES = 10;
const NOTHING = Buffer.alloc(0);
const LINE_FEED = 10;

/**
 * From now on it is said once, and the command ends with 1. It goes on until then, as half of a change is worse than one that
 * nobody read of. A reader that has enough (`| head`) is no failure.
 */
export function noticeLostOutput(): void {
  let isSaid = false;
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE" || isSaid) return;
    isSaid = true;
    process.stderr.write(`postern: the output could not be written: ${error.message}\n`);
    process.exitCode = 1;
  });
}

/** Of a service: what it prints beside its log is not worth its end. */
export function ignoreLostOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

export type Lines = { write(line: string): void; flushSync(): void };
/** `rest` is what is being written, or has to be written again. */
type State = {
  fd: number;
  waiting: string;
  rest: Buffer;
  doing: "nothing" | "writing" | "pausing";
  isClosed: boolean;
  /** The last byte that was written ended no line. */
  isTorn: boolean;
  lost: number;
  onRoom(lost: number, code: string): void;
  code: string;
};

/** Lines for a file, a pipe or a terminal, in order, without waiting for them. `onRoom` hears how many were lost, and why, once one is written again. */
export function linesTo(fd: number, onRoom: State["onRoom"]): Lines {
  const state: State = {
    ...{ fd, waiting: "", rest: NOTHING, doing: "nothing", isClosed: false, isTorn: false, lost: 0, code: "", onRoom },
  };
  const lines: Lines = {
    write(line) {
      if (state.isClosed) return;
      if (state.waiting.length + line.length > WAITING_LENGTH_MAX) state.lost += 1;
      else state.waiting += line;
      if (state.doing === "nothing") go(state);
    },
    flushSync: () => flush(state),
  };
  process.on("exit", lines.flushSync);
  return lines;
}

function go(state: State): void {
  if (state.rest.length === 0) takeWaiting(state);
  if (state.rest.length === 0) {
    state.doing = "nothing";
    return;
  }
  state.doing = "writing";
  write(state.fd, state.rest, (error, written) => {
    if (isBusy(error)) {
      state.doing = "pausing";
      setTimeout(() => go(state), AGAIN_MS).unref();
      return;
    }
    if (error) giveUp(state, error);
    else note(state, written);
    go(state);
  });
}

function takeWaiting(state: State): void {
  if (state.waiting !== "") state.rest = Buffer.from(state.isTorn ? `\n${state.waiting}` : state.waiting);
  state.waiting = "";
}

function note(state: State, written: number): void {
  if (written > 0) state.isTorn = state.rest[written - 1] !== LINE_FEED;
  state.rest = state.rest.subarray(written);
  const { lost } = state;
  if (lost === 0 || state.rest.length > 0) return;
  state.lost = 0;
  state.onRoom(lost, state.code);
}

/** It is not tried again: the next line is, and by then there may be room. Nobody reads a pipe again that its reader closed. */
function giveUp(state: State, { code = "" }: NodeJS.ErrnoException): void {
  state.lost += linesIn(state.rest);
  state.rest = NOTHING;
  state.code = code;
  state.isClosed = code === "EPIPE";
  if (state.isClosed) state.waiting = "";
}

/** At the end of the process, and before it. What is being written at this moment is left to that. */
function flush(state: State): void {
  const isOurs = state.doing !== "writing";
  const begun = isOurs ? state.rest : NOTHING;
  if (begun.length === 0 && state.waiting === "") return;
  let bytes = Buffer.concat([begun, Buffer.from(state.waiting)]);
  state.waiting = "";
  if (isOurs) state.rest = NOTHING;
  for (let tries = 0; bytes.length > 0 && tries < LAST_TRIES; ) {
    try {
      bytes = bytes.subarray(writeSync(state.fd, bytes));
    } catch (error) {
      if (!isBusy(error)) break;
      tries += 1;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, AGAIN_MS);
    }
  }
  state.lost += linesIn(bytes);
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (const byte of bytes) if (byte === LINE_FEED) lines += 1;
  return lines;
}

function isBusy(error: unknown): boolean {
  return ["EAGAIN", "EBUSY"].includes((error as NodeJS.ErrnoException | null)?.code ?? "");
}

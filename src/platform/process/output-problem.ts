// Output that cannot be written: a full disk, a terminal or a reader that went away. A command ends with 1 for it. A service goes
// on, and says how many lines of its log were lost once there is room again.
import { writeSync } from "node:fs";

/** How many characters of lines may wait to be written; what comes beyond is lost. */
const WAITING_LENGTH_MAX = 8 * 1024 * 1024;
const AGAIN_MS = 100;
/** At the end, to a reader that is busy. */
const LAST_TRIES = 100;
const LAST_WAIT_MS = 10;
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

/** For a service: what it prints beside its log is not worth its end. */
export function ignoreLostOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

export type Lines = { write(line: string): void };
/** `rest` has to be written again, and `waiting` after it. */
type State = {
  fd: number;
  waiting: string;
  rest: Buffer;
  isClosed: boolean;
  isWriting: boolean;
  /** The last byte that was written ended no line. */
  isTorn: boolean;
  lost: number;
  onRoom(lost: number, code: string): void;
  code: string;
};

/**
 * Lines for standard output or standard error, in order. A reader that is busy is not waited for, except a moment at the end of the
 * process. `onRoom` hears how many lines were lost, and why, once one is written again.
 */
export function linesTo(fd: 1 | 2, onRoom: State["onRoom"]): Lines {
  // Node makes a pipe, a socket or a terminal refuse (EAGAIN) what it cannot take at once, when its stream is first asked for.
  void (fd === 1 ? process.stdout : process.stderr);
  const state: State = {
    ...{ fd, waiting: "", rest: NOTHING, isClosed: false, isWriting: false, isTorn: false, lost: 0, code: "", onRoom },
  };
  process.on("exit", () => {
    for (let tries = 0; !go(state) && tries < LAST_TRIES; tries += 1)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_WAIT_MS);
  });
  return {
    write(line) {
      if (state.isClosed) return;
      if (state.waiting.length + line.length > WAITING_LENGTH_MAX) state.lost += 1;
      else state.waiting += line;
      if (!state.isWriting) goOn(state);
    },
  };
}

function goOn(state: State): void {
  state.isWriting = !go(state);
  if (state.isWriting) setTimeout(goOn, AGAIN_MS, state).unref();
}

/** Whether all that waits is written or given up: not when the reader is busy. */
function go(state: State): boolean {
  state.isWriting = true;
  for (;;) {
    if (state.rest.length === 0) takeWaiting(state);
    if (state.rest.length === 0) return true;
    try {
      const written = writeSync(state.fd, state.rest);
      if (written > 0) state.isTorn = state.rest[written - 1] !== LINE_FEED;
      state.rest = state.rest.subarray(written);
      if (state.rest.length === 0) sayWhatIsLost(state);
    } catch (error) {
      if (isBusy(error)) return false;
      giveUp(state, error as NodeJS.ErrnoException);
    }
  }
}

function takeWaiting(state: State): void {
  if (state.waiting !== "") state.rest = Buffer.from(state.isTorn ? `\n${state.waiting}` : state.waiting);
  state.waiting = "";
}

/** Into `waiting`, which the loop of `go` takes next. */
function sayWhatIsLost(state: State): void {
  const { lost } = state;
  state.lost = 0;
  if (lost > 0) state.onRoom(lost, state.code);
}

/** It is not tried again: the next line is, and by then there may be room. Nobody reads a pipe again that its reader closed. */
function giveUp(state: State, { code = "" }: NodeJS.ErrnoException): void {
  state.lost += linesIn(state.rest);
  state.rest = NOTHING;
  state.code = code;
  state.isClosed = code === "EPIPE";
  if (state.isClosed) state.waiting = "";
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (const byte of bytes) if (byte === LINE_FEED) lines += 1;
  return lines;
}

function isBusy(error: unknown): boolean {
  return ["EAGAIN", "EBUSY"].includes((error as NodeJS.ErrnoException | null)?.code ?? "");
}

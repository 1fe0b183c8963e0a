// Bodies of heavy requests on their way to the process that does them: bytes on a pipe of its own, one body after another, in the order in
// which their requests are announced over the channel. Messages of the channel would be copies.
import { Socket } from "node:net";
import type { Duplex, Writable } from "node:stream";
import { freeBytes } from "../../platform/process/free-bytes.ts";

/** The descriptor of the pipe in the process that reads. */
export const BODIES_FD = 4;

/** Announces a request and writes its body. Resolves when the bytes have left, or cannot leave any more. */
export type BodyWriter = (announce: () => void, pieces: readonly Uint8Array[]) => Promise<void>;

/** The pieces are given away: they are emptied. A piece follows another, so that no large body holds this process for long. */
export function createBodyWriter(pipe: Writable): BodyWriter {
  // Of a process that has ended; its requests are answered then.
  pipe.on("error", () => undefined);
  let last: Promise<void> = Promise.resolve();
  return (announce, pieces) => {
    last = last.then(async () => {
      announce();
      for (const piece of pieces) {
        if (piece.length > 0) await new Promise<void>((done) => pipe.write(piece, () => done()));
        freeBytes(piece);
      }
    });
    return last;
  };
}

export type BodyReader<Request> = {
  /** `request` has a body of so many bytes, which follows those of the requests before it. */
  expect(request: Request, bytes: number): void;
};

/** Hands over each request with its body when all of it is there. */
export function createBodyReader<Request>(
  onBody: (request: Request, body: Buffer) => void,
  pipe: Duplex = new Socket({ fd: BODIES_FD }),
): BodyReader<Request> {
  const expected: { request: Request; bytes: number }[] = [];
  let chunks: Buffer[] = [];
  let held = 0;
  const handOver = (): void => {
    for (let [next] = expected; next && next.bytes <= held; [next] = expected) {
      expected.shift();
      const all = Buffer.concat(chunks);
      held -= next.bytes;
      chunks = held > 0 ? [Buffer.from(all.subarray(next.bytes))] : [];
      onBody(next.request, all.subarray(0, next.bytes));
    }
  };
  pipe.on("error", () => undefined);
  pipe.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    held += chunk.length;
    handOver();
  });
  return {
    expect(request, bytes) {
      expected.push({ request, bytes });
      handOver();
    },
  };
}

/**
 * Gives the memory of bytes back at once, where it is theirs alone; they are empty then. Without it V8 collects all garbage each time
 * that 64 MB of such bytes came together, which a few large bodies are: some 100 ms of a small machine each time.
 */
export function freeBytes({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

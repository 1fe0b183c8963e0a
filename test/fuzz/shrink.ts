// Makes an input that breaks something smaller while it still breaks it, by taking pieces away, the large ones first.

/** The smallest input found within `ms` for which `breaks` holds; the one given when nothing can go. */
export async function shrink(given: Buffer, ms: number, breaks: (input: Buffer) => Promise<boolean>): Promise<Buffer> {
  const endsAt = performance.now() + ms;
  let best = given;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.length; ) {
      if (performance.now() > endsAt) return best;
      const smaller = Buffer.concat([best.subarray(0, at), best.subarray(at + size)]);
      if (await breaks(smaller)) best = smaller;
      else at += size;
    }
  }
  return best;
}

// The load generator: keep-alive connections, one request at a time on each, all counted and timed.
import { Pool } from "undici";

export type Load = { accepted: number; refused: Map<number, number>; seconds: number; latencies_ms: number[] };

/** Posts `count` bodies (made by `body(n)`) over `connections` connections to each of the servers in turn. */
export async function postMany(options: {
  base_url: string | string[];
  path: string;
  key: string | ((n: number) => string);
  count: number;
  connections: number;
  body(n: number): string | Buffer;
  status?: number;
}): Promise<Load> {
  const { base_url, path, key, count, connections, body, status = 202 } = options;
  const pools = [base_url].flat().map((url) => new Pool(url, { connections, pipelining: 1 }));
  const keyOf = typeof key === "string" ? () => key : key;
  const load: Load = { accepted: 0, refused: new Map(), seconds: 0, latencies_ms: [] };
  let next = 0;
  const startedAt = performance.now();
  async function worker(): Promise<void> {
    for (let n = next++; n < count; n = next++) {
      const at = performance.now();
      const headers = { authorization: `Bearer ${keyOf(n)}`, "content-type": "application/json" };
      const pool = pools[n % pools.length] as Pool;
      const response = await pool.request({ method: "POST", path, headers, body: body(n) });
      await response.body.dump();
      load.latencies_ms.push(performance.now() - at);
      if (response.statusCode === status) load.accepted += 1;
      else load.refused.set(response.statusCode, (load.refused.get(response.statusCode) ?? 0) + 1);
    }
  }
  await Promise.all(Array.from({ length: connections }, worker));
  load.seconds = (performance.now() - startedAt) / 1000;
  await Promise.all(pools.map((pool) => pool.close()));
  return load;
}

/** The p-th percentile (above 0, to 100) of `values`: the smallest that p percent do not exceed (nearest rank). */
export function percentile(values: number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil((p / 100) * sorted.length) - 1] ?? Number.NaN;
}

const PARAGRAPH =
  "Thank you for your order. Your invoice is attached to your account and can be downloaded at any time from there. ";

/** A send request whose message has about 4 KB: HTML and text as a product's mail has them. */
export function sendBody(from: string, to: string, n: number): string {
  return JSON.stringify({
    from: `Shop <${from}>`,
    to: [to],
    subject: `Your order ${n} is on its way`,
    html_body: `<html><body><h1>Order ${n}</h1><p>${PARAGRAPH.repeat(15)}</p></body></html>`,
    text_body: `Order ${n}\n\n${PARAGRAPH.repeat(14)}\n`,
    tags: ["order"],
    metadata: { n },
  });
}

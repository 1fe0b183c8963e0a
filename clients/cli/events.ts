// Reading events as they happen: server-sent events over one connection, again and again, each event once.
import { PosternError } from "../node/src/postern.ts";
import { CliError, STATUS } from "./exit.ts";

export type ReceivedEvent = { id: string; event: string; body: string };
export type Source = { base_url: string; api_key: string; types: string[]; after: string | null; signal: AbortSignal };

const AGAIN_MS = 1_000;

/**
 * Events from now on (or behind `after`), until `signal` aborts. Throws where the server refuses. `onTrouble` gets a sentence
 * where the connection is lost, and where events are missing.
 */
export async function* readEvents(
  { base_url, api_key, types, after, signal }: Source,
  onTrouble: (sentence: string) => void,
): AsyncGenerator<ReceivedEvent> {
  const onLost = (why: string) => onTrouble(`the connection was lost (${why}); trying again`);
  let last = after;
  while (!signal.aborted) {
    try {
      const query = types.length > 0 ? `?types=${types.join(",")}` : "";
      const response = await fetch(`${base_url.replace(/\/+$/, "")}/v1/events${query}`, {
        headers: {
          authorization: `Bearer ${api_key}`,
          accept: "text/event-stream",
          ...(last === null ? {} : { "last-event-id": last }),
        },
        signal,
      });
      if (response.status >= 400 && response.status < 500 && response.status !== 429) throw await refusal(response);
      if (response.ok && response.body) {
        for await (const received of parse(response.body)) {
          if ("gap_until" in received) {
            onTrouble(`events before ${received.gap_until} may be missing: they were not kept`);
            continue;
          }
          last = received.id;
          // Without an event it says where reading began: lost before the first one, it goes on there.
          if (received.event !== null) yield received;
        }
      } else onLost(`the server answered ${response.status}`);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof CliError || error instanceof PosternError) throw error;
      onLost((error as Error).message);
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

async function refusal(response: Response): Promise<CliError> {
  const body = (await response.json().catch(() => ({}))) as { error?: string };
  const status = response.status === 401 || response.status === 403 ? STATUS.not_allowed : STATUS.failed;
  return new CliError(body.error ?? `the server answered ${response.status}`, status);
}

type Parsed = ReceivedEvent | { id: string; event: null } | { gap_until: string };

/** https://html.spec.whatwg.org/multipage/server-sent-events.html, as far as Postern writes it: one line of data an event. */
async function* parse(stream: ReadableStream<Uint8Array>): AsyncGenerator<Parsed> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of stream as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(piece, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const fields = new Map(
        text
          .slice(0, end)
          .split("\n")
          .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
      );
      text = text.slice(end + 2);
      const [id, event, body] = [fields.get("id"), fields.get("event"), fields.get("data")];
      if (event === "gap" && body !== undefined) yield { gap_until: (JSON.parse(body) as { until: string }).until };
      else if (id && event && body !== undefined) yield { id, event, body };
      else if (id) yield { id, event: null };
    }
  }
}

// What happened to an e-mail, in order, with every answer of a server in its own words, and what comes next.
import type { Schemas } from "../api/client.ts";
import { useNow } from "../lib/now.ts";
import { wordOf } from "../lib/states.ts";
import { sayDuration, sayExactly, sayShortly } from "../lib/times.ts";
import { serverWords, type Tone } from "../lib/why.ts";

type Event = Schemas["EmailEvent"];
type Given = { email: Schemas["Email"]; events: readonly Event[] };

const TONES: Record<string, Tone> = {
  queued: "good",
  delivered: "good",
  deferred: "warn",
  ambiguous: "warn",
  bounced: "bad",
  failed: "bad",
  expired: "bad",
  complained: "bad",
  suppressed: "bad",
};
const WORDS: Record<string, string> = {
  queued: "Accepted by the API",
  scheduled: "Accepted, and scheduled",
  simulated: "Checked, not sent: a test key",
  complained: "Marked as spam by the person",
  ambiguous: "The server's answer did not arrive",
  retried: "Started again by a person or a key",
};

export function Timeline({ email, events }: Given) {
  const isOne = email.recipients.length === 1;
  const next = email.recipients
    .flatMap(({ next_attempt_at }) => (next_attempt_at === null ? [] : [next_attempt_at]))
    .sort()[0];
  return (
    <ol className="line">
      {events.map((event) => (
        <Happened key={event.id} event={event} isOne={isOne} />
      ))}
      {next !== undefined && <Next at={next} />}
    </ol>
  );
}

function Happened({ event, isOne }: { event: Event; isOne: boolean }) {
  const words = serverWords(event);
  const isServers = event.smtp_code !== null;
  return (
    <li className={TONES[event.event_type] ?? "idle"}>
      <Clock at={event.timestamp} />
      <span className="dot" />
      <div className="min-w-0">
        {WORDS[event.event_type] ?? wordOf(event.event_type)}
        {event.mx_host && ` by ${event.mx_host}`}
        {!isOne && event.recipient && ` for ${event.recipient}`} <span className="dim">{besides(event)}</span>
        {words && (isServers ? <code>{words}</code> : <div className="text-ink-2">{words}</div>)}
      </div>
    </li>
  );
}

function besides({ tls, duration_ms, attempt, mx_host }: Event): string {
  const spoke = mx_host === null ? [] : [tls === null ? "no TLS" : (tls.split(" ")[0] ?? tls)];
  const took = duration_ms === null ? [] : [duration_ms < 1_000 ? `${duration_ms} ms` : sayDuration(duration_ms)];
  const tried = attempt === null || attempt < 1 ? [] : [`attempt ${attempt}`];
  return [...spoke, ...took, ...tried].join(", ");
}

function Next({ at }: { at: string }) {
  const isDue = Date.parse(at) <= useNow();
  return (
    <li className="next">
      <Clock at={at} />
      <span className="dot" />
      <div className="dim">{isDue ? "Next attempt: now" : "Next attempt"}</div>
    </li>
  );
}

function Clock({ at }: { at: string }) {
  return (
    <time dateTime={at} title={sayExactly(at)}>
      {sayShortly(at, useNow())}
    </time>
  );
}

// Mail with a label (its folder), over SMTP to a domain with the settings that everybody starts with: no ham may be
// refused or kept in quarantine, GTUBE is refused in session, spam is at least marked. Spam that is not stands with what
// the source says of its samples. DNS is empty: what only lists and SPF could tell is not told.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withCrlf } from "../../src/mail/auth/look-ups.fixture.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { type MxStage, mxStage } from "./mx-stage.ts";
import { type Corpus, createTally } from "./tally.ts";

const DOMAIN = "spam-in.example";
const RECIPIENT = `anybody@${DOMAIN}`;
const GTUBE = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";
const PROCESSED_WITHIN_MS = 20_000;
const POLL_MS = 20;

const STUB =
  "below the threshold for marking: many samples are stubs for one rule of their source's tests (lists in the DNS, " +
  "relays, allow lists) and say nothing else; too few to tune by (the README says so)";

const NO_SMTP = "a bare CR or NUL cannot come by SMTP: refused with 554 (RFC 5321 §2.3.8, §4.1.1.4)";

type Outcome = { kind: "refused"; code: number } | { kind: "taken"; status: string; verdict: string; score: number };

export const spamAndHam: Corpus = {
  name: "spam-and-ham",
  async run(dir) {
    const tally = createTally();
    const stage = await mxStage();
    await furnish(stage);
    let scored = 0;
    for (const file of globSync("{ham,spam}/**/*", { cwd: dir, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    )) {
      const bytes = readFileSync(join(file.parentPath, file.name));
      const label = file.parentPath.slice(dir.length).includes("ham") ? "ham" : "spam";
      const outcome = await deliver(stage, bytes);
      if (bytes.includes(GTUBE)) tally.judge(`${label}/${file.name}`, { kind: "refused", code: 550 }, outcome);
      else if (label === "ham") judgeHam(tally, file.name, outcome, bytes);
      else {
        const isCaught = outcome.kind === "refused" || outcome.verdict !== "ham";
        if (isCaught) scored += 1;
        tally.judge(
          `spam/${file.name}`,
          "marked, kept or refused",
          isCaught ? "marked, kept or refused" : outcome,
          STUB,
        );
      }
    }
    tally.notes.push(`${scored} samples of spam without GTUBE are marked, kept in quarantine or refused`);
    return tally;
  },
};

function judgeHam(tally: ReturnType<typeof createTally>, name: string, outcome: Outcome, bytes: Buffer): void {
  const isDelivered = outcome.kind === "taken" && outcome.status === "delivered";
  const reason = /\r(?!\n)|\0/.test(withCrlf(bytes).toString("latin1")) ? NO_SMTP : null;
  tally.judge(`ham/${name}`, "delivered", isDelivered ? "delivered" : outcome, reason);
  if (isDelivered && outcome.verdict !== "ham") tally.notes.push(`ham/${name} is marked (score ${outcome.score})`);
}

async function furnish(stage: MxStage): Promise<void> {
  const { id } = await addVerifiedDomain(stage, stage.dns, DOMAIN, { type: "inbound" });
  const { status, body } = await stage.ask("POST", "/v1/aliases", { domain_id: id, local_part: "*", action: "store" });
  if (status !== 201) throw new Error(`the alias could not be made: ${JSON.stringify(body)}`);
}

async function deliver(stage: MxStage, bytes: Buffer): Promise<Outcome> {
  const { code, text } = await stage.send({
    bytes: withCrlf(bytes),
    recipient: RECIPIENT,
    mail_from: "a@sender.example",
  });
  const id = /taken as (\S+)/.exec(text)?.[1];
  if (!id) return { kind: "refused", code };
  const until = performance.now() + PROCESSED_WITHIN_MS;
  for (;;) {
    const { body } = await stage.ask("GET", `/v1/inbound-emails/${id}`);
    const { status, spam } = body.email as unknown as { status: string; spam: { verdict: string; score: number } };
    if (!["received", "processing"].includes(status)) return { kind: "taken", status, ...spamOf(spam) };
    if (performance.now() > until) throw new Error(`the mail ${id} is not processed`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function spamOf({ verdict, score }: { verdict: string; score: number }) {
  return { verdict, score };
}

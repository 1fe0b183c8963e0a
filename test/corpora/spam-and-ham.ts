// Mail with a label (its folder), over SMTP to a domain with the settings that everybody starts with: no ham may be
// refused, kept in quarantine or marked, GTUBE is refused in session, spam is at least marked. Spam that is not stands with what
// the source says of its samples. DNS is empty: what only lists and SPF could tell is missing.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { withCrlf } from "../../src/mail/auth/look-ups.fixture.ts";
import { GTUBE } from "../support/spam-texts.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { answerTo, caseFiles } from "./case-files.ts";
import { type MxStage, mxStage } from "./mx-stage.ts";
import type { Corpus, Tally } from "./tally.ts";

const DOMAIN = "spam-in.example";
const RECIPIENT = `anybody@${DOMAIN}`;
const PROCESSED_WITHIN_MS = 20_000;
const POLL_MS = 20;

const STUB =
  "below the threshold for marking: many samples are stubs for one rule of their source's tests (lists in the DNS, " +
  "relays, allow lists) and say nothing else; too few to tune by (the README says so)";

/** What every filter marks: a check that ours is at work, as few samples say much. */
const PLAIN_SPAM = Buffer.from(
  "From: WINNER <cash@sender.example>\r\nTo: undisclosed-recipients:;\r\nSubject: YOU WON $$$ 1,000,000 CASH PRIZE!!!\r\n" +
    "Content-Type: text/html\r\n\r\n<html><body><h1>CONGRATULATIONS!!! CLICK HERE NOW!!!</h1>" +
    '<a href="http://203.0.113.9/win.exe">http://www.bank.example/login</a> viagra casino lottery</body></html>\r\n',
);

type Outcome = { kind: "refused"; code: number } | { kind: "taken"; status: string; verdict: string; score: number };

export const spamAndHam: Corpus = {
  name: "spam-and-ham",
  slow: true,
  async run(dir, tally) {
    const files = (["ham", "spam"] as const).flatMap((label) =>
      caseFiles(join(dir, label)).map((file) => ({ label, file })),
    );
    if (files.length === 0) return;
    const stage = await mxStage();
    await furnish(stage);
    let caught = 0;
    for (const { label, file } of files) {
      await tally.attempt(`${label}/${file}`, async () => {
        const bytes = withCrlf(readFileSync(join(dir, label, file)));
        const outcome = await deliver(stage, bytes);
        const name = `${label}/${file}`;
        if (answerTo(bytes) === "554") tally.judge(name, { kind: "refused", code: 554 }, outcome);
        else if (bytes.includes(GTUBE)) tally.judge(name, { kind: "refused", code: 550 }, outcome);
        else if (label === "ham") judgeHam(tally, file, outcome);
        else if (judgeSpam(tally, file, outcome)) caught += 1;
      });
    }
    tally.notes.push(`${caught} samples of spam without GTUBE are marked, kept in quarantine or refused`);
    tally.check("a mail that every filter marks", true, isCaught(await deliver(stage, PLAIN_SPAM)));
  },
};

function judgeHam(tally: Tally, name: string, outcome: Outcome): void {
  const isHam = outcome.kind === "taken" && outcome.status === "delivered" && outcome.verdict === "ham";
  tally.judge(`ham/${name}`, "delivered unmarked", isHam ? "delivered unmarked" : outcome);
}

function judgeSpam(tally: Tally, name: string, outcome: Outcome): boolean {
  const expected = "marked, kept or refused";
  const got = isCaught(outcome) ? expected : outcome;
  const isDelivered = outcome.kind === "taken" && outcome.status === "delivered" && outcome.verdict === "ham";
  tally.judge(`spam/${name}`, expected, got, isDelivered ? STUB : null);
  return isCaught(outcome);
}

/** Deferred is not caught: the mail comes again. */
function isCaught(outcome: Outcome): boolean {
  return outcome.kind === "refused" ? outcome.code === 550 : outcome.verdict !== "ham" && outcome.verdict !== null;
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

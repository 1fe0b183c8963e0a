// Feedback reports: what they mean, whom they are from and which message they are about. An auth-failure report is no
// complaint (RFC 6591), an opt-out is an unsubscribe.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseComplaint } from "../../src/mail/arf/arf.ts";
import { type Corpus, createTally } from "./tally.ts";

type Row = { feedbacktype: string; recipient: string };
type Upstream = {
  feedback_type: string;
  source_ip: string | null;
  user_agent: string | null;
  original_rcpt_to: string | null;
};

export const arfFeedback: Corpus = {
  name: "arf-feedback",
  async run(dir) {
    const tally = createTally();
    const opinions = JSON.parse(readFileSync(join(dir, "second-opinion.json"), "utf8")) as Record<string, Row[]>;
    for (const file of globSync("**/*", { cwd: dir }).filter((name) => isMail(dir, name))) {
      const report = parseComplaint(readFileSync(join(dir, file)));
      const sidecar = join(dir, file.replace(/\.eml$/, ".json"));
      const [opinion] = opinions[file] ?? [];
      if (existsSync(sidecar) && sidecar.endsWith(".json")) {
        const want = JSON.parse(readFileSync(sidecar, "utf8")) as Upstream;
        tally.judge(
          file,
          upstream(want),
          report && { type: report.feedback_type, ip: report.source_ip, agent: report.user_agent },
        );
      } else if (opinion) tally.judge(file, opinion.feedbacktype, report?.feedback_type ?? null);
      else tally.judge(file, "read", "read");
      if (report?.feedback_type === "auth-failure") tally.judge(`${file}: meaning`, "auth_failure", report.meaning);
    }
    return tally;
  },
};

function isMail(dir: string, name: string): boolean {
  if (!/\.(eml|txt|msg)$/i.test(name)) return false;
  return /^[\x21-\x39\x3b-\x7e]+:/m.test(readFileSync(join(dir, name), "latin1").slice(0, 2_000));
}

/** mail-auth writes types as Rust names. */
function upstream(want: Upstream) {
  const type = want.feedback_type.replace(/(?<!^)([A-Z])/g, "-$1").toLowerCase();
  return { type, ip: want.source_ip, agent: want.user_agent };
}

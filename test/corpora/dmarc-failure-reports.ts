// Reports on authentication failures, with and without an ARF part: mailed to a return path and to a feedback address they
// are no bounces and no complaints, and nobody is suppressed.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withCrlf } from "./bounces.ts";
import { type ReturnedCase, returnedStage } from "./returned-stage.ts";
import { type Corpus, createTally } from "./tally.ts";

export const dmarcFailureReports: Corpus = {
  name: "dmarc-failure-reports",
  async run(dir) {
    const files = globSync("**/*.eml", { cwd: dir }).sort();
    const cases = files.flatMap((file) =>
      (["return_path", "feedback"] as const).map(
        (to): ReturnedCase => ({
          ...{ name: `${file}: ${to}`, to, recipients: [] },
          mail: withCrlf(readFileSync(join(dir, file))),
        }),
      ),
    );
    const tally = createTally();
    const stage = await returnedStage();
    for (const [name, { answer, recipients, events }] of await stage.run(cases)) {
      const states = recipients.map(({ status, warned, suppression }) => ({ status, warned, suppression }));
      const unharmed = [{ status: "delivered", warned: false, suppression: null }];
      const got = { code: answer.slice(0, 3), states, events };
      tally.judge(name, { code: "250", states: unharmed, events: [] }, got);
    }
    tally.judge("addresses suppressed that no case sent to", [], await stage.leftSuppressed());
    return tally;
  },
};

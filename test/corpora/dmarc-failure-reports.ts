// Reports on authentication failures, with and without an ARF part: mailed to a return path and to a feedback address they
// are no bounces and no complaints, and nobody is suppressed.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { answerTo, caseFiles, withCrlf } from "./case-files.ts";
import { playReturned, type ReturnedCase } from "./returned-stage.ts";
import type { Corpus } from "./tally.ts";

export const dmarcFailureReports: Corpus = {
  name: "dmarc-failure-reports",
  slow: true,
  async run(dir, tally) {
    const cases = caseFiles(dir).flatMap((file) =>
      (["return_path", "feedback"] as const).map(
        (to): ReturnedCase => ({
          ...{ name: `${file}: ${to}`, to, recipients: [] },
          mail: withCrlf(readFileSync(join(dir, file))),
        }),
      ),
    );
    await playReturned(tally, cases, ({ name, mail }, { answer, recipients, events }) => {
      const states = recipients.map(({ status, warned, suppression }) => ({ status, warned, suppression }));
      const unharmed = [{ status: "delivered", warned: false, suppression: null }];
      const got = { code: answer.slice(0, 3), states, events };
      tally.judge(name, { code: answerTo(mail), states: unharmed, events: [] }, got);
    });
  },
};

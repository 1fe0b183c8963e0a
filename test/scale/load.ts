// Mail that organizations send and get all the while, in every cell, and the verdict over it.
import { drain, judge, sumUp, type Verdict } from "../faults/drain.ts";
import { sendAll } from "../faults/load.ts";
import {
  drainMailIn,
  judgeMailIn,
  type MailIn,
  mailIn,
  type ReceiveVerdict,
  sendMailIn,
  sumUpMailIn,
} from "../faults/mail-in.ts";
import type { Recorder } from "../faults/recorder.ts";
import type { Cell, Organization } from "./cells.ts";
import type { Timeline } from "./timeline.ts";

/** Of each organization. */
const AT_ONCE = { connections: 3, pause_ms: 300 };

export type Load = {
  /** Ends it, waits until all that was accepted is done, and compares. */
  end(): Promise<{ sent: Verdict; received: ReceiveVerdict }>;
};

/** Begins; both ways, for every organization of every cell. */
export function startLoad(cells: readonly Cell[]): Load {
  let isOn = true;
  const isGoing = (): boolean => isOn;
  const all = cells.flatMap((cell) =>
    cell.organizations.map((organization) => {
      const mail = mailTo(cell, organization);
      return {
        cell,
        organization,
        mail,
        done: Promise.all([send(cell, organization, isGoing), sendMailIn(mail, isGoing)]),
      };
    }),
  );
  // What fails while other things are done is seen at the end.
  for (const { done } of all) done.catch(() => undefined);
  return {
    async end() {
      isOn = false;
      await Promise.all(all.map(({ done }) => done));
      for (const { stage } of cells) {
        await drain(stage);
        await drainMailIn(stage);
      }
      const received: ReceiveVerdict[] = [];
      for (const { cell, organization, mail } of all)
        received.push(await judgeMailIn({ ...cell.stage, settings: organization.settings }, mail));
      const sent: Verdict[] = [];
      // This one forgets what the receivers got.
      for (const { stage } of cells) sent.push(await judge(stage));
      return { sent: sumUp(sent), received: sumUpMailIn(received) };
    },
  };
}

async function send(
  { stage, base_urls, sent }: Cell,
  { name, settings, sends_from }: Organization,
  isGoing: () => boolean,
) {
  return await sendAll({
    ...AT_ONCE,
    live_key: settings.live_key,
    base_urls,
    recorder: noting(stage.recorder, sent),
    name,
    count: 1,
    isGoing,
    from: sends_from,
    recipient: (n) => `r${n}@d${n % 40}.recipients.example`,
  });
}

function mailTo({ stage, mx_ports, received }: Cell, { name, recipient }: Organization): MailIn {
  const mail = mailIn(stage, { ...AT_ONCE, name, count: 1, recipient, ports: mx_ports });
  return { ...mail, recorder: noting(mail.recorder, received) };
}

/** Once it is on disk: what is not kept was not acknowledged. */
function noting(recorder: Recorder, timeline: Timeline): Recorder {
  return {
    ...recorder,
    async keep(one) {
      await recorder.keep(one);
      timeline.note();
    },
  };
}

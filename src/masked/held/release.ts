// The link in the notice of a mail that waits in quarantine because its author is not proven, or because it could not be
// encrypted: it lets that one mail through, once. What still cannot be forwarded waits again, and its link works again. Its page
// shows a button and says nothing of the mail.
import type { Api } from "../../http/http.ts";
import { page, sendPage } from "../../http/public-page.ts";
import type { CarryWorld } from "../carry/carry.ts";
import { type LinkKind, readSealed, sealedLink } from "../carry/sealed-links.ts";
import { OVER, ofToken } from "../open-pages.ts";

export const RELEASE = { path: "/masked/release/", context: "masked-release", lasts_ms: 86_400_000 } satisfies LinkKind;
/** A new key may take its time. */
const KEY_MS = 7 * 86_400_000;

type Received = { org_id: string; id: string };

/** What receiving does with a mail in quarantine. */
export type Quarantine = {
  /** True if the mail is still in quarantine. */
  isWaiting(mail: Received): Promise<boolean>;
  /** Lets the mail be processed without the judgement that kept it; false when it is no longer in quarantine. */
  release(mail: Received): Promise<boolean>;
};

/** The link for a received mail, for a day. */
export function releaseLink(world: CarryWorld, { org_id, id }: Received): string {
  return sealedLink(world, RELEASE, { org_id, id });
}

/** The same for one that waits for a key, for a week. */
export function keyLink(world: CarryWorld, { org_id, id }: Received): string {
  return sealedLink(world, { ...RELEASE, lasts_ms: KEY_MS }, { org_id, id });
}

/** The mail that a link is for; null when its time is over. */
export function readRelease(world: Pick<CarryWorld, "seal" | "clock">, token: string): Received | null {
  return readSealed<Received>(world, RELEASE, token);
}

/** Mounts its page in the scope of the pages. */
export function mountRelease(api: Api, world: CarryWorld, quarantine: Quarantine): void {
  api.get("/masked/release/:token", ofToken, async (request, reply) => {
    const mail = readRelease(world, request.params.token);
    return mail && (await quarantine.isWaiting(mail)) ? sendPage(reply, 200, ASK) : sendPage(reply, 404, OVER);
  });
  api.post("/masked/release/:token", ofToken, async (request, reply) => {
    const mail = readRelease(world, request.params.token);
    return mail && (await quarantine.release(mail)) ? sendPage(reply, 200, DONE) : sendPage(reply, 404, OVER);
  });
}

const ASK = page(
  "Forward this mail all the same?",
  '<p>The notice says why it was kept. If it is not proven who sent it, do not follow its links or pay anything before you asked its author in another way.</p><form method="post"><button type="submit">Forward it</button></form>',
);
const DONE = page(
  "Forwarded",
  "<p>The mail is on its way to the mailboxes of your masked address. If something is still in its way, such as a key that has expired, it is kept where it was, and this link works again.</p>",
);

// The public pages behind the links in mail: a mailbox's consent, leaving a mailing list through the alias, releasing a mail. GET shows a
// button and changes nothing, because mail scanners open links; the button posts (and so does a mail program, RFC 8058). No
// address is shown.
import { refuseIfMoving } from "../accounts/accounts.ts";
import type { Api } from "../http/http.ts";
import { openPages, page, sendPage } from "../http/public-page.ts";
import type { World } from "../platform/world.ts";
import { readConfirmationToken } from "./addresses/confirmation.ts";
import { confirmDestination } from "./addresses/destinations.ts";
import type { StopAct } from "./arrive/stop-subject.ts";
import type { CarryWorld } from "./carry/carry.ts";
import { readStop, stop } from "./carry/stopping.ts";
import { leaveList, readLeave } from "./carry/unsubscribing.ts";
import { mountFailedPages } from "./held/failed-pages.ts";
import { mountHeldPages } from "./held/held-pages.ts";
import { mountRelease, type Quarantine } from "./held/release.ts";
import { organizationOfLink } from "./link-owner.ts";
import { OFF, OVER, ofToken } from "./open-pages.ts";
import type { TracePorts } from "./settle/ports.ts";

/** Mounts the pages that need no key, in a scope of their own. What their forms hold is not looked at. */
export function mountMaskedPages(
  api: Api,
  world: CarryWorld & Pick<World, "moves">,
  ports: TracePorts & { quarantine: Quarantine },
): void {
  openPages(api, world);
  api.addHook("onRequest", async ({ url }) =>
    refuseIfMoving(world, organizationOfLink(world, url.split("?")[0] ?? "")),
  );
  mountConfirmation(api, world);
  mountLeaving(api, world, ports);
  mountStopping(api, world);
  mountHeldPages(api, world, ports);
  mountFailedPages(api, world, ports);
  mountRelease(api, world, ports.quarantine);
}

function mountConfirmation(api: Api, world: Pick<CarryWorld, "db" | "clock" | "seal">): void {
  api.get("/masked/confirm/:token", ofToken, async (request, reply) => {
    const named = readConfirmationToken(world, request.params.token);
    return named ? sendPage(reply, 200, ASK) : sendPage(reply, 404, OVER);
  });
  api.post("/masked/confirm/:token", ofToken, async (request, reply) => {
    const named = readConfirmationToken(world, request.params.token);
    const confirmed = named !== null && (await confirmDestination(world, named));
    return confirmed ? sendPage(reply, 200, DONE) : sendPage(reply, 404, OVER);
  });
}

function mountLeaving(api: Api, world: CarryWorld, ports: TracePorts): void {
  api.get("/masked/unsubscribe/:token", ofToken, async (request, reply) => {
    const leave = readLeave(world, request.params.token);
    return leave ? sendPage(reply, 200, ASK_LEAVE) : sendPage(reply, 404, OVER);
  });
  api.post("/masked/unsubscribe/:token", ofToken, async (request, reply) => {
    const leave = readLeave(world, request.params.token);
    const done = leave ? await leaveList(world, ports, leave) : "gone";
    const [status, html] = { sent: [200, LEFT], gone: [404, OVER], off: [403, OFF], later: [429, LATER] }[done] as [
      number,
      string,
    ];
    return sendPage(reply, status, html);
  });
}

/** List-Unsubscribe of forwards that acts on the alias. */
function mountStopping(api: Api, world: CarryWorld): void {
  api.get("/masked/stop/:token", ofToken, async (request, reply) => {
    const wanted = readStop(world, request.params.token);
    return wanted ? sendPage(reply, 200, STOPPING[wanted.act].ask) : sendPage(reply, 404, OVER);
  });
  api.post("/masked/stop/:token", ofToken, async (request, reply) => {
    const wanted = readStop(world, request.params.token);
    const isDone = wanted !== null && (await stop(world, wanted));
    return isDone ? sendPage(reply, 200, STOPPING[wanted.act].done) : sendPage(reply, 404, OVER);
  });
}

const STOPPING: Record<StopAct, { ask: string; done: string }> = {
  disable_alias: {
    ask: page(
      "Switch this masked address off?",
      '<p>Mail to it is then not forwarded any more, whoever sends it.</p><form method="post"><button type="submit">Switch off</button></form>',
    ),
    done: page("Switched off", "<p>Mail to this masked address is not forwarded any more.</p>"),
  },
  block_sender: {
    ask: page(
      "Block this sender?",
      '<p>Their mail to your masked address is then not forwarded any more.</p><form method="post"><button type="submit">Block</button></form>',
    ),
    done: page("Blocked", "<p>Mail of this sender to your masked address is not forwarded any more.</p>"),
  },
};

const ASK = page(
  "Forward mail to your mailbox?",
  '<p>If you confirm, mail to masked addresses is forwarded to the mailbox that got this link. If you do not know about this, close the page.</p><form method="post"><button type="submit">Confirm</button></form>',
);
const DONE = page("Confirmed", "<p>Mail may now be forwarded to your mailbox.</p>");
const ASK_LEAVE = page(
  "Unsubscribe from this list?",
  '<p>The list takes unsubscribe requests by mail. We send one from your masked address; your mailbox is not shown.</p><form method="post"><button type="submit">Unsubscribe</button></form>',
);
const LEFT = page("Sent", "<p>The request to unsubscribe was sent from your masked address.</p>");
const LATER = page(
  "Not now",
  "<p>Your masked address has sent too much mail within the last hour. Try again later.</p>",
);

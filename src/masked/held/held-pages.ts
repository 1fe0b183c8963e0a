// The pages behind the links in the notice of a held reply: sending it as it is, and changing what replies may show. GET shows
// a button and changes nothing; no address is shown.
import type { Api } from "../../http/http.ts";
import { page, sendPage } from "../../http/public-page.ts";
import type { CarryWorld } from "../carry/carry.ts";
import { OFF, OVER, ofToken, SHOWS_NEW } from "../open-pages.ts";
import type { TracePorts } from "../settle/ports.ts";
import { REDACT, type Redact } from "../types.ts";
import { changeRedact, findHeldReply, findSettingAlias, sendHeld } from "./held.ts";

/** Mounts them in the scope of the pages. */
export function mountHeldPages(api: Api, world: CarryWorld, ports: TracePorts): void {
  api.get("/masked/held/:token", ofToken, async (request, reply) => {
    const held = await findHeldReply(world, request.params.token);
    return held ? sendPage(reply, 200, ASK_SEND) : sendPage(reply, 404, OVER);
  });
  api.post("/masked/held/:token", ofToken, async (request, reply) => {
    const done = await sendHeld(world, ports, request.params.token);
    if (done === "off") return sendPage(reply, 403, OFF);
    if (done === "held") return sendPage(reply, 403, SHOWS_NEW);
    return done === "sent" ? sendPage(reply, 200, SENT) : sendPage(reply, 404, OVER);
  });
  api.get("/masked/setting/:token", ofToken, async (request, reply) => {
    const alias = await findSettingAlias(world, request.params.token);
    return alias ? sendPage(reply, 200, askSetting(alias.redact)) : sendPage(reply, 404, OVER);
  });
  api.post("/masked/setting/:token", ofToken, async (request, reply) => {
    const redact = new URLSearchParams(String(request.body ?? "")).get("redact");
    const wanted = REDACT.find((one) => one === redact);
    const isOver = (await findSettingAlias(world, request.params.token)) === null;
    if (!wanted && !isOver) return sendPage(reply, 400, NOT_CHOSEN);
    const isDone = wanted !== undefined && (await changeRedact(world, request.params.token, wanted));
    return isDone ? sendPage(reply, 200, CHANGED) : sendPage(reply, 404, OVER);
  });
}

const ASK_SEND = page(
  "Send this reply as it is?",
  '<p>It was held because it shows what your masked address hides. If you send it, its recipient sees that.</p><form method="post"><button type="submit">Send as it is</button></form>',
);
const SENT = page("Sent", "<p>The reply was sent from your masked address, as it is.</p>");
const CHANGED = page("Changed", "<p>The setting holds for replies that you send from now on.</p>");
const NOT_CHOSEN = page("Nothing was changed", "<p>Choose one of the settings.</p>");

const MEANINGS: Record<Redact, string> = {
  all: "Hide my address everywhere",
  quoted: "Leave it where I write it myself, hide it in quotes and files",
  off: "Leave it in the text and in files",
};

function askSetting(now: Redact): string {
  const choices = REDACT.map((one) => {
    const checked = one === now ? " checked" : "";
    return `<p><label><input type="radio" name="redact" value="${one}"${checked}> ${MEANINGS[one]}</label></p>`;
  });
  const form = `<form method="post">${choices.join("")}<button type="submit">Save</button></form>`;
  return page("What may replies from this address show?", form);
}

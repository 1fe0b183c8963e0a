// The page behind the link in the notice of mail that failed: download it, as often as wanted, or have it sent again, once. GET
// shows the buttons and changes nothing; the page says nothing of the mail.
import type { FastifyReply } from "fastify";
import { downloadHeaders } from "../../http/download.ts";
import type { Api } from "../../http/http.ts";
import { page, sendPage } from "../../http/public-page.ts";
import { createParsePool } from "../../parsing/parse-pool.ts";
import type { CarryWorld } from "../carry/carry.ts";
import { OFF, OVER, ofToken, SHOWS_NEW } from "../open-pages.ts";
import type { BouncePorts } from "../settle/ports.ts";
import { type AgainPorts, findKept, openFailed, readFailed, type SentAgain, sendAgain } from "./failed.ts";

/** Mounts it in the scope of the pages. */
export function mountFailedPages(api: Api, world: CarryWorld, ports: BouncePorts): void {
  const again = withEncrypting(api, ports);
  api.get("/masked/failed/:token", ofToken, async (request, reply) => {
    const named = readFailed(world, request.params.token);
    return named && (await findKept(world, named)) ? sendPage(reply, 200, ASK) : sendPage(reply, 404, OVER);
  });
  api.post("/masked/failed/:token", ofToken, async (request, reply) => {
    const named = readFailed(world, request.params.token);
    if (!named) return sendPage(reply, 404, OVER);
    const act = new URLSearchParams(String(request.body ?? "")).get("act");
    if (act === "send") return sendPage(reply, ...ANSWERS[(await sendAgain(world, again, named)).done]);
    if (act !== "download") return sendPage(reply, 400, NOT_CHOSEN);
    const kept = await findKept(world, named);
    const bytes = kept && (await openFailed(world, kept.row));
    return bytes ? sendMessage(reply, named.id, bytes) : sendPage(reply, 404, OVER);
  });
}

const ENCRYPTER = { size: 1, processor_ms: 10_000, memory_mib: 256 };

/** Sending again encrypts, in a worker of its own that starts when it is needed. */
export function withEncrypting(api: Api, ports: BouncePorts): AgainPorts {
  const { encrypt, stop } = createParsePool(ENCRYPTER);
  api.addHook("onClose", () => stop());
  return { ...ports, encrypt };
}

/** A whole message as a download. */
export function sendMessage(reply: unknown, id: string, bytes: Buffer) {
  const headers = { ...downloadHeaders(`${id}.eml`, "application/octet-stream"), "content-type": "message/rfc822" };
  const asItIs = (payload: unknown) => payload as string;
  return (reply as FastifyReply).headers(headers).serializer(asItIs).send(bytes);
}

const ASK = page(
  "A mail that was not delivered",
  '<p>It is kept for seven days after it failed. Sending it again works once.</p><form method="post"><p><button type="submit" name="act" value="send">Send it again</button></p><p><button type="submit" name="act" value="download">Download it</button></p></form>',
);
const NOT_CHOSEN = page("Nothing was done", "<p>Choose one of the two.</p>");
const ANSWERS: Record<SentAgain["done"], [number, string]> = {
  sent: [200, page("Sent", "<p>The mail is on its way again.</p>")],
  gone: [404, OVER],
  off: [403, OFF],
  later: [429, page("Not now", "<p>Too much mail passed through your masked address. Try again later.</p>")],
  unsealed: [
    403,
    page(
      "Not sent",
      "<p>It could not be encrypted for the key of your mailbox, and nothing is sent unencrypted. You can still download it.</p>",
    ),
  ],
  held: [403, SHOWS_NEW],
};

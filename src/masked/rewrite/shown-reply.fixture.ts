// Does a finished reply show the mailbox? An oracle that shares no code with scrub and gate: postal-mime reads the message.
import { domainToASCII } from "node:url";
import PostalMime from "postal-mime";
import { D } from "./reply-order.fixture.ts";

/** The same mailbox at an international domain. */
export const D_IDN = `anna.real@${domainToASCII("höme.idn.example")}`;

/** True if a reader of the message, or of its bytes, finds the address, or anybody's reverse address. */
export async function shows(bytes: Buffer): Promise<boolean> {
  const mail = await PostalMime.parse(bytes, { attachmentEncoding: "arraybuffer", forceRfc822Attachments: true });
  const texts = [
    bytes.toString("latin1"),
    bytes.toString("utf8"),
    mail.subject ?? "",
    mail.text ?? "",
    mail.html ?? "",
  ];
  for (const { value } of mail.headers) texts.push(String(value));
  for (const attachment of mail.attachments) {
    const content = Buffer.from(attachment.content as ArrayBuffer);
    texts.push(attachment.filename ?? "", content.toString("utf8"), content.toString("latin1").replaceAll("\0", ""));
    if (attachment.mimeType === "message/rfc822" && (await shows(content))) return true;
  }
  return texts.some((text) => readsAddress(text) || decodedRuns(text).some(readsAddress));
}

/** What tracking links, keys and certificates hold. */
function decodedRuns(text: string): string[] {
  const runs = text.replace(/\r?\n(?:> ?)*|<br>/g, "").match(/[A-Za-z0-9+/]{16,}/g) ?? [];
  const base64 = runs.flatMap((run) =>
    [0, 1, 2, 3].map((at) => Buffer.from(run.slice(at), "base64").toString("latin1")),
  );
  const all = [...base64, ...runs.map((run) => Buffer.from(run, "hex").toString("latin1"))];
  return [...all, ...all.map((one) => one.replaceAll("\0", ""))];
}

function readsAddress(given: string): boolean {
  let text = given
    .replace(/[\u200b\u00ad]/g, "")
    .replace(/[\uff20]|=40|\\u0040/g, "@")
    .replaceAll("。", ".")
    .replace(/\+AEA-?/g, "@")
    .replace(/\\0*40 ?|\\@/g, "@")
    .replace(/\r?\n[ \t]/g, "");
  for (let layer = 0; layer < 3; layer += 1) {
    text = text
      .replace(/&(?:#64|#x40|commat);/gi, "@")
      .replace(/&ouml;|%c3%b6/gi, "ö")
      .replace(/&(?:ZeroWidthSpace|NoBreak);/g, "")
      .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
      .replace(/&amp;/g, "&")
      .replace(/%([0-7][0-9a-f])/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  const plain = (one: string) => {
    const lower = one.normalize("NFC").toLowerCase().replace("+tag@", "@");
    if (/r\.[a-z2-7]{26}@|-----begin pgp/.test(lower)) return true;
    return [D, D_IDN, "anna.real@höme.idn.example"].some((address) => lower.includes(address));
  };
  const bare = text.replace(/<!-- > -->|<b title="a>b"><\/b>/g, "");
  return [text, bare, text.replace(/<[^<>]*>/g, ""), text.replace(/[ \t]*\r?\n[> \t]*/g, "")].some(plain);
}

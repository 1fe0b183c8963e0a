// The worker thread of parse-pool.ts: takes messages, answers with what was read of each, in their order. Contents of
// attachments are handed over, not copied, where their memory is their own.
import { parentPort } from "node:worker_threads";
import { parseMessage } from "../mail/mime/parse-message.ts";
import type { ParsedMail } from "../mail/mime/parsed-mail.ts";
import { toSevenBit } from "../mail/mime/write/to-seven-bit.ts";
import { type Encrypting, encryptMail } from "../mail/pgp/encrypt-mail.ts";
import { type ReturnedMail, readReturnedMail } from "../mail/returned-mail.ts";
import { buildOpenedReply } from "../masked/rewrite/opened-reply.ts";
import type { BuiltReply, ReplyOrder } from "../masked/rewrite/reply.ts";
import { type BuiltForwards, type ForwardsOrder, writeSealedForwards } from "../masked/rewrite/write-forwards.ts";

export type ParseTask =
  | { as: "mail" }
  | { as: "returned" }
  | { as: "reply"; order: ReplyOrder }
  | { as: "forwards"; order: ForwardsOrder }
  | { as: "encrypted"; pgp: Encrypting }
  | { as: "seven_bit" };
/** `bytes` must have memory of its own. */
export type ParseJob = { task: ParseTask; bytes: Uint8Array<ArrayBuffer> };
export type ParseAnswer =
  | { mail: ParsedMail }
  | { returned: ReturnedMail }
  | { reply: BuiltReply }
  | { forwards: BuiltForwards }
  | { encrypted: Uint8Array | null }
  | { seven_bit: Uint8Array };

parentPort!.on("message", async (jobs: ParseJob[]) => {
  const handed = new Set<ArrayBuffer>();
  const answers: ParseAnswer[] = [];
  for (const { task, bytes } of jobs) answers.push(await answer(task, Buffer.from(bytes.buffer), handed));
  parentPort!.postMessage(answers, [...handed]);
});

async function answer(task: ParseTask, given: Buffer, handed: Set<ArrayBuffer>): Promise<ParseAnswer> {
  switch (task.as) {
    case "mail":
      return { mail: readMail(given, handed) };
    case "returned":
      return { returned: readReturnedMail(given) };
    case "reply":
      return { reply: await buildOpenedReply(given, task.order) };
    case "forwards":
      return { forwards: await writeSealedForwards(given, task.order) };
    case "encrypted":
      return { encrypted: await encryptMail(given, task.pgp) };
    case "seven_bit":
      return { seven_bit: toSevenBit(given) };
  }
}

function readMail(given: Buffer, handed: Set<ArrayBuffer>): ParsedMail {
  const mail = parseMessage(given);
  const attachments = mail.attachments.map((attachment) => {
    const content = ownMemory(attachment.content, given);
    handed.add(content.buffer);
    return { ...attachment, content: content as Buffer };
  });
  return { ...mail, attachments };
}

// Decoded contents fill their memory but for a little; views of the message, and small ones of a pool, are copied out.
function ownMemory(content: Buffer, message: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, length } = content;
  const isOwn = buffer !== message.buffer && byteOffset === 0 && length * 2 >= buffer.byteLength;
  return isOwn ? new Uint8Array(buffer as ArrayBuffer, 0, length) : new Uint8Array(content);
}

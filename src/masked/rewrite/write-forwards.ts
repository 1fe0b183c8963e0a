// The forwards of a mail to each mailbox of an alias, from an order that can be handed to a worker: it holds no functions.
import { type Encrypting, encryptMail } from "../../mail/pgp/encrypt-mail.ts";
import { buildForward, type ForwardParts } from "./forward.ts";
import { noticingAddresses } from "./named-addresses.ts";
import { type ContentHider, createHider } from "./sent/sent-content.ts";
import type { Token } from "./sent/tokens.ts";
import { cutTrackingPixels } from "./tracking-pixels.ts";

/** `is_given`: as the contact wrote it, so that the mailbox in it becomes a token. */
export type GivenId = { id: string; is_given: boolean };

export type ForwardOrder = Omit<ForwardParts, "in_reply_to" | "references" | "message_id" | "hider"> & {
  in_reply_to: readonly GivenId[];
  references: readonly GivenId[];
  /** With angle brackets. */
  message_id: GivenId;
  /** What it is encrypted with; null: it leaves as it is written. */
  pgp: Encrypting | null;
};

/** `tokens`: the mailboxes that are hidden in what the contact wrote; null where the author is the owner. */
export type ForwardsOrder = {
  tokens: readonly Token[] | null;
  /** Those for whom links to write a mail name. */
  linked: readonly Token[];
  key: string;
  /** True if pictures are taken out that nobody is to see. Never true for the owner's own mail. */
  cut_pixels: boolean;
  forwards: readonly ForwardOrder[];
};

/**
 * `mime` is null where nothing can be encrypted for the mailbox; `message_id` is without angle brackets; `digests` are those of what must come back as the contact sent it; `linked` of whom
 * links name, `lines` of what may be broken.
 * `addresses`: how many different ones the texts name, 0 where the author is the owner; `named`: all that they may name.
 */
export type BuiltForwards = {
  kind: "built";
  forwards: { mime: Buffer | null; message_id: string }[];
  digests: string[];
  linked: string[];
  lines: string[];
  addresses: number;
  named: string[];
};

/** Writes them, in the order of the order, and encrypts those for mailboxes with a key. Never throws for what the message holds. */
export async function writeSealedForwards(bytes: Buffer, order: ForwardsOrder): Promise<BuiltForwards> {
  const built = writeForwards(bytes, order);
  for (const [at, forward] of built.forwards.entries()) {
    const pgp = order.forwards[at]?.pgp;
    if (pgp && forward.mime) forward.mime = await encryptMail(forward.mime, pgp);
  }
  return built;
}

/** True if a mailbox of the order has a key. */
export function isToEncrypt({ forwards }: ForwardsOrder): boolean {
  return forwards.some(({ pgp }) => pgp !== null);
}

/** Writes them without encrypting any. */
export function writeForwards(
  bytes: Buffer,
  { tokens, linked, key, cut_pixels, forwards }: ForwardsOrder,
): BuiltForwards {
  const counting = tokens === null ? null : noticingAddresses(createHider(tokens, key, linked));
  const hider = counting && (cut_pixels ? withoutPixels(counting.hider) : counting.hider);
  const written = forwards.map((order) => writeOne(bytes, order, hider));
  return {
    kind: "built",
    forwards: written,
    digests: [...(hider?.digests ?? [])],
    linked: [...(hider?.linked ?? [])],
    lines: [...(hider?.lines ?? [])],
    addresses: counting?.count() ?? 0,
    named: counting?.named() ?? [],
  };
}

function withoutPixels(hider: ContentHider): ContentHider {
  return { ...hider, html: (source) => hider.html(cutTrackingPixels(source)) };
}

function writeOne(bytes: Buffer, order: ForwardOrder, hider: ContentHider | null) {
  const hidden = (text: string) => hider?.text(text).text ?? text;
  const named = (list: ForwardParts["to"]) =>
    list.map(({ name, email }) => ({ name: name === null ? null : hidden(name), email }));
  // What is the mailbox's own is known by its own id.
  const idOf = ({ id, is_given }: GivenId) => (is_given && hider ? hider.id(id).text : id);
  const message_id = idOf(order.message_id).slice(1, -1);
  const mime = buildForward(bytes, {
    ...order,
    from: named([order.from])[0] as ForwardParts["from"],
    ...{ to: named(order.to), cc: named(order.cc), reply_to: named(order.reply_to) },
    ...{ in_reply_to: order.in_reply_to.map(idOf), references: order.references.map(idOf) },
    ...{ message_id, hider },
  });
  return { mime, message_id };
}

// The cast of the tests of replies, and an order for a reply that tells everything apart.
import type { ReplyOrder } from "./reply.ts";

export const D = "anna.real@home.real.example";
export const A = "k3x@mask.example";
export const R = "r.aaaaaaaaaaaaaaaaaaaaaaaaaa@mask.example";
export const C = "shop@example.com";

export const HEAD = `From: Anna <${D}>
To: <${R}>
Subject: Re: order
Message-ID: <x@home.real.example>
Date: Fri, 20 Nov 2026 12:00:00 +0100
MIME-Version: 1.0
`;

/** The order for a reply from this mailbox. */
export function order(d = D): ReplyOrder {
  return {
    from: { name: "Anna", email: A },
    to: [{ name: null, email: C }],
    cc: [],
    date_ms: 1_795_000_000_000,
    message_id: "m1@mask.example",
    in_reply_to: ["<c1@example.com>"],
    references: ["<c0@example.com>", "<c1@example.com>"],
    hidden: [{ from: d, to: A }],
    restored: [
      { from: R, to: C },
      { from: " (shop at example.com)", to: "" },
      { from: "shop at example.com", to: C },
    ],
    redact: "all",
    unopened_files: "hold",
    own_name: "leave",
    names: [R],
    sent: { key: "00", digests: [], tokens: [] },
    token_seed: "token",
  };
}

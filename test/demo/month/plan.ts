// What a shop sends and gets in a month, made up from a seed: the same seed, the same month. Who writes to whom, when, and about
// what; never what becomes of it, which the recipients' servers decide (month.ts). Pure.
import { type Chance, chanceOf } from "../../faults/seeded.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** The last days have as many moments as a page of a list shows; those before have some. */
const RECENT_DAYS = 3;
const RECENT_HOURS = [7.2, 8.1, 8.9, 9.6, 10.4, 11.3, 12.5, 14.1, 15.2, 16.4, 18.3, 20.1];
const HOURS = [9.3, 16.7];

export type Mail = {
  from: string;
  to: string;
  subject: string;
  tags: string[];
  kind: "order" | "shipping" | "invoice" | "welcome" | "reset" | "news";
  metadata: Record<string, string>;
};
export type Question = {
  from: string;
  to: string;
  subject: string;
  text: string;
  kind: "question" | "reply" | "spam" | "invoice";
};
/** `day` counts from 0, the first. */
export type Moment = { at_ms: number; day: number; mails: Mail[]; questions: Question[]; shops: string[] };

const FIRST = [
  "Maja",
  "Tom",
  "Ines",
  "Paul",
  "Sofia",
  "Jonas",
  "Amira",
  "Lena",
  "Marek",
  "Chiara",
  "Noah",
  "Freya",
  "Elif",
  "Luc",
];
const LAST = [
  "Lind",
  "Okafor",
  "Brandt",
  "Reyes",
  "Marsh",
  "Weber",
  "Haddad",
  "Novak",
  "Rossi",
  "Berg",
  "Kaya",
  "Moreau",
];
const HOSTS = [
  "posteo.example",
  "posteo.example",
  "freemail.example",
  "inbox.example",
  "kontor.example",
  "uni.example",
];
const CUSTOMERS = 90;
/** Of a hundred addresses of the newsletter so many no longer exist, and so many are full. */
const GONE = [7, 31, 58];
const FULL = [12];
const MISTYPED = 0.04;
const ISSUES = [
  "Winter lamps are here",
  "Five chairs under 100 €",
  "Made in Porto: new ceramics",
  "Last days: 15 % off rugs",
];
const QUESTIONS = [
  ["Where is my parcel?", "I ordered last week and it has not come. Can you look?"],
  ["Wrong colour", "The lamp is green, I ordered the white one. How do I send it back?"],
  ["Invoice with our VAT number", "Could you send the invoice again with our VAT number on it?"],
  ["Do you deliver to Norway?", "And what would it cost for the oak table?"],
  ["A scratch on the table", "It came like that. I can send a picture."],
] as const;

/** The month that ends at `endMs`, its moments in order. */
export function planMonth(seed: number, endMs: number, days: number): Moment[] {
  const dice = chanceOf(seed);
  const customers = Array.from({ length: CUSTOMERS }, (_, n) => customerOf(n, dice));
  const midnight = Math.floor(endMs / DAY_MS) * DAY_MS;
  const moments: Moment[] = [];
  let order = 10_400;
  for (let day = 0; day <= days; day += 1) {
    const startMs = midnight - (days - day) * DAY_MS;
    const weekday = new Date(startMs).getUTCDay();
    const isRecent = day > days - RECENT_DAYS;
    for (const hour of isRecent ? RECENT_HOURS : HOURS) {
      const at_ms = Math.round(startMs + (hour + dice.float() * 0.6) * HOUR_MS);
      if (at_ms >= endMs) continue;
      const isWeekend = weekday === 0 || weekday === 6;
      const count = isRecent
        ? 1 + (dice.float() < 0.5 ? 1 : 0)
        : Math.round((isWeekend ? 3 : 6) + dice.float() * 4 + day / 8);
      const mails = Array.from({ length: count }, (_, n) => mailOf(dice.pick(customers), order + n, dice));
      order += count;
      if (weekday === 2 && hour === (isRecent ? RECENT_HOURS[3] : HOURS[0])) mails.push(...newsletter(customers, day));
      moments.push({
        at_ms,
        day,
        mails,
        questions: questionsOf(customers, dice),
        shops: dice.float() < 0.4 ? [dice.pick(SHOPS)] : [],
      });
    }
  }
  return moments;
}

/** Who writes to masked addresses. */
export const SHOPS = [
  "orders@bookshop.example",
  "news@gadgets.example",
  "hello@railway.example",
  "noreply@concerts.example",
];

type Customer = { name: string; email: string };

function customerOf(n: number, dice: Chance): Customer {
  const [first, last] = [dice.pick(FIRST), dice.pick(LAST)];
  const local = `${first}.${last}`.toLowerCase() + (n % 3 === 0 ? "" : n);
  const state = GONE.includes(n) ? "gone." : FULL.includes(n) ? "full." : "";
  return { name: `${first} ${last}`, email: `${state}${local}@${HOSTS[n % HOSTS.length]}` };
}

function mailOf({ name, email }: Customer, order: number, dice: Chance): Mail {
  // Now and then an address is given wrong.
  const to = `${name} <${dice.float() < MISTYPED ? `old.${email.replace("@", `${order}@`)}` : email}>`;
  const metadata = { order: `A-${order}` };
  const chance = dice.float();
  if (chance < 0.34)
    return {
      kind: "order",
      from: "Nordkiosk <orders@shop.example>",
      to,
      subject: `Your order A-${order}`,
      tags: ["order"],
      metadata,
    };
  if (chance < 0.62) {
    const shipped = `A-${order - 30}`;
    return {
      kind: "shipping",
      from: "Nordkiosk <orders@shop.example>",
      to,
      subject: `Your order ${shipped} is on its way`,
      tags: ["order", "shipping"],
      metadata: { order: shipped },
    };
  }
  if (chance < 0.8) {
    const subject = `Your invoice 2026-${order - 9_000}`;
    return { kind: "invoice", from: "Nordkiosk <billing@shop.example>", to, subject, tags: ["invoice"], metadata };
  }
  const from = "Nordkiosk accounts <accounts@shop.example>";
  if (chance < 0.9)
    return { kind: "welcome", from, to, subject: "Welcome to Nordkiosk", tags: ["account"], metadata: {} };
  return { kind: "reset", from, to, subject: "Choose a new password", tags: ["account", "security"], metadata: {} };
}

function newsletter(customers: readonly Customer[], day: number): Mail[] {
  const subject = ISSUES[Math.floor(day / 7) % ISSUES.length] as string;
  return customers.map(({ name, email }) => ({
    ...{ kind: "news", from: "Nordkiosk <news@news.shop.example>", to: `${name} <${email}>`, subject },
    ...{ tags: ["newsletter"], metadata: { issue: String(Math.floor(day / 7) + 44) } },
  }));
}

function questionsOf(customers: readonly Customer[], dice: Chance): Question[] {
  const chance = dice.float();
  const { name, email } = dice.pick(customers.filter((one) => !/^(gone|full)\./.test(one.email)));
  const from = `${name} <${email}>`;
  const to = "support@help.shop.example";
  if (chance < 0.3) {
    const [subject, text] = dice.pick(QUESTIONS);
    return [{ kind: "question", from, to, subject, text }];
  }
  if (chance < 0.36)
    return [{ kind: "reply", from, to, subject: "Re: Where is my parcel?", text: "It has come now. Thank you!" }];
  if (chance < 0.42)
    return [
      {
        kind: "invoice",
        from: "Lux Ceramics <billing@supplier.example>",
        to,
        subject: "Invoice 2026-77",
        text: "Please pay within 14 days.",
      },
    ];
  if (chance < 0.48)
    return [{ kind: "spam", from: "win@unknown.example", to, subject: "V1AGRA 100% FREE!!!", text: "" }];
  return [];
}

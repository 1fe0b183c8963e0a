// What the month's mails say, and the templates that some are made of.
import type { Mail } from "./plan.ts";

const FRAME = (inner: string) => `<table width="100%" style="background:#f4f4f2; padding:24px; font-family:sans-serif">
  <tr><td style="background:#fff; padding:24px; border-radius:8px">${inner}
    <p style="color:#777">Nordkiosk, Hafenstraße 4, Hamburg</p>
  </td></tr>
</table>`;

export const TEMPLATES = [
  {
    ...{ name: "Order confirmation", slug: "order-confirmation", subject: "Your order {{order}}" },
    html_body: FRAME("<h1>Thank you, {{name}}!</h1><p>We have your order <b>{{order}}</b> and pack it today.</p>"),
    text_body: "Thank you, {{name}}! We have your order {{order}} and pack it today.",
  },
  {
    ...{ name: "On its way", slug: "on-its-way", subject: "Your order {{order}} is on its way" },
    html_body: FRAME("<h1>On its way</h1><p>Hello {{name}}, your order <b>{{order}}</b> left our warehouse.</p>"),
    text_body: "Hello {{name}}, your order {{order}} left our warehouse.",
  },
  { name: "Password", slug: "password", subject: "Choose a new password", text_body: "Open {{link}} within an hour." },
  {
    name: "Season's greetings",
    slug: "greetings",
    subject: "Happy New Year",
    text_body: "Hello {{name}}",
    active: false,
  },
];

/** The smallest of its kind. */
export const INVOICE = Buffer.from("%PDF-1.4\n% a very small invoice\n");

/** The body of a send. */
export function bodyOf(mail: Mail): Record<string, unknown> {
  const { from, to, subject, tags, metadata, kind } = mail;
  const name = to.split(" ")[0] ?? "";
  const envelope = { from, to: [to], tags, metadata };
  const order = subject.match(/A-\d+/)?.[0];
  if (kind === "order") return { ...envelope, template: "order-confirmation", variables: { name, order } };
  if (kind === "shipping") return { ...envelope, template: "on-its-way", variables: { name, order } };
  if (kind === "reset")
    return { ...envelope, template: "password", variables: { link: "https://shop.example/p/4711" } };
  if (kind === "invoice") {
    const attachments = [{ filename: `${subject.slice(5)}.pdf`, content: INVOICE.toString("base64") }];
    return { ...envelope, subject, html_body: FRAME(`<p>Hello ${name}, here is your invoice.</p>`), attachments };
  }
  if (kind === "news") {
    const html_body = FRAME(`<h1>${subject}</h1><p>Hello ${name}, have a look.</p>`);
    return { ...envelope, subject, html_body, unsubscribe: { list: "newsletter" } };
  }
  return { ...envelope, subject, html_body: FRAME(`<h1>Welcome, ${name}!</h1><p>Good to have you here.</p>`) };
}

/** Another provider's list, as it was taken over. */
export const IMPORT = [
  "status,reason,email,created",
  ...Array.from({ length: 38 }, (_, n) => `5.1.1,550 5.1.1 no such user,former${n}@freemail.example,1790000000`),
].join("\n");

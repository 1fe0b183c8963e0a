// An application that sends with Nodemailer, switched to Postern: the mail that every framework's test sends. Played by
// test/clients/frameworks.long.test.ts; prints one line of JSON.
import nodemailer from "nodemailer";
import { posternTransport } from "../dist/nodemailer.js";

const transport = nodemailer.createTransport(posternTransport());
const PNG = Buffer.from(process.env.PNG, "base64");

const sent = await transport.sendMail({
  from: { name: "Käse & Co", address: "orders@shop.example" },
  to: ['"Anna, Größe" <anna@recipient.example>'],
  cc: "carl@recipient.example",
  bcc: "bea@recipient.example",
  replyTo: "help@shop.example",
  subject: "Grüße aus Łódź",
  text: "Schöne Grüße\n",
  html: '<p>Schöne Grüße <img src="cid:logo@shop.example"></p>',
  headers: { "X-Order": "17" },
  attachments: [
    { filename: "Größe.txt", content: "Maß 17\n" },
    { filename: "logo.png", content: PNG, cid: "logo@shop.example", contentDisposition: "inline" },
  ],
  postern: { tags: ["receipt"], metadata: { order: "17" } },
});
const one = await transport.sendMail({
  from: "orders@shop.example",
  to: "anna@recipient.example",
  cc: "carl@recipient.example",
  subject: "Envelope",
  text: "only for Dora",
  envelope: { from: "orders@shop.example", to: ["dora@recipient.example"] },
});
const refused = await transport
  .sendMail({ from: "a@unknown.example", to: "anna@recipient.example", subject: "s", text: "t" })
  .catch((error) => error);
const blind = await transport
  .sendMail({ from: "orders@shop.example", bcc: ["a@recipient.example", "b@recipient.example"], subject: "s", text: "t" })
  .catch((error) => error);
console.log(
  JSON.stringify({
    message_id: sent.messageId,
    accepted: sent.accepted,
    envelope_message_id: one.messageId,
    refused: [refused.name, refused.code],
    blind: blind.message,
  }),
);

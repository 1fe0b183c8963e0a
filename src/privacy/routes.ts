// /v1/address-data
import { Type } from "typebox";
import { type Api, answers, Closed, Id, Named, Nullable, PageQuery, pageOf, Time } from "../http/http.ts";
import { InboundEmailRow } from "../inbound/inbound.ts";
import { MaskedPerson, MaskedPersonErased } from "../masked/masked.ts";
import type { World } from "../platform/world.ts";
import { EmailEvent, RecipientView } from "../sending/sending.ts";
import { Suppression } from "../suppressions/suppressions.ts";
import { eraseAddress, exportAddress, type PrivacyPorts } from "./privacy.ts";

const EMAIL_MAX = 1_500;
const email = Type.String({ minLength: 1, maxLength: EMAIL_MAX });
const { limit, after } = PageQuery;

const SentTo = Named(
  "AddressSentEmail",
  Type.Object({
    id: Id,
    from: Type.String(),
    subject: Type.String(),
    created_at: Time,
    recipients: Type.Array(RecipientView),
    events: Type.Array(EmailEvent),
  }),
);

const Counts = Named(
  "AddressCounts",
  Type.Object({
    sent: Type.Integer(),
    received: Type.Integer(),
    suppressions: Type.Integer(),
    sent_from: Type.Integer({ description: "E-mails sent from it, or with replies to it" }),
    aliases: Type.Integer({ description: "That forward to it" }),
    rules: Type.Integer({ description: "Rules, spam lists, webhooks naming it" }),
    audit_entries: Type.Integer(),
  }),
);

const tags = ["Address data"];

/** Mounts what answers a person's request for the data of an address. */
export function mountPrivacy(api: Api, world: World, ports: PrivacyPorts): void {
  api.get(
    "/v1/address-data",
    {
      schema: {
        operationId: "exportAddressData",
        tags,
        summary: "Everything that is stored of one e-mail address",
        description:
          "For requests under data protection law; of the key's environment. Mail is listed newest first, sent and received together up to `limit`.",
        querystring: Closed({ email, limit, after }),
        response: answers({
          200: Type.Object({
            email: Type.String(),
            sent: Type.Array(SentTo),
            received: Type.Array(InboundEmailRow),
            next_after: Nullable(Id),
            suppressions: Type.Array(Suppression),
            masked: MaskedPerson,
            total: Counts,
          }),
        }),
      },
    },
    async (request) => exportAddress(world, request.account, request.query.email, pageOf(request.query)),
  );

  api.delete(
    "/v1/address-data",
    {
      schema: {
        operationId: "eraseAddressData",
        tags,
        summary: "Erase what is stored of one e-mail address",
        description:
          "In the key's environment. Mail to it alone, mail from it, its masked contacts and what webhooks posted are deleted; mail to several loses the address and its content. Suppressions stay unless asked for. Call again while `left` counts mail: what is on its way is erased when it is over.",
        querystring: Closed({
          email,
          suppressions: Type.Optional(Type.Boolean({ description: "Removes those too" })),
        }),
        response: answers({
          200: Type.Object({
            email: Type.String(),
            canceled: Type.Integer({ description: "Queued deliveries" }),
            deleted: Type.Integer({ description: "Sent e-mails" }),
            blanked: Type.Integer({ description: "Sent to several: without the address and their content now" }),
            received: Type.Integer(),
            suppressions: Type.Integer(),
            masked: MaskedPersonErased,
            left: Counts,
          }),
        }),
      },
    },
    async (request) => eraseAddress(world, ports, request.account, request.query),
  );
}

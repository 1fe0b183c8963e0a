// /v1/masked/destinations, and the contacts and the activity of a masked alias
import { Type } from "typebox";
import {
  AnswerOf,
  type Api,
  answers,
  Closed,
  Deleted,
  Environment,
  Id,
  IdParams,
  Named,
  Nullable,
  OneOf,
  PageOf,
  PageQuery,
  pageOf,
  Time,
} from "../../http/http.ts";
import type { World } from "../../platform/world.ts";
import { listActivity } from "../list-activity.ts";
import {
  ACTIVITY_OUTCOMES,
  ACTIVITY_TYPES,
  CONTACT_SOURCES,
  DESTINATION_STATUSES,
  type MaskedPorts,
} from "../types.ts";
import * as contacts from "./contacts.ts";
import * as destinations from "./destinations.ts";
import { erasePerson, exportPerson } from "./people.ts";

const EMAIL_MAX = 1_500;
const EmailQuery = Type.Optional(Type.String({ maxLength: EMAIL_MAX, description: "Exactly this address" }));

const UNREADABLE = "Empty when the service's master key was lost";

const PgpKey = Named(
  "MaskedPgpKey",
  Type.Object({
    fingerprint: Type.String({ description: UNREADABLE }),
    expires_at: Type.Unsafe<Date | string | null>({
      ...Nullable(Time),
      description: "When nothing can be encrypted for it any more; null: never",
    }),
    hide_subject: Type.Boolean({ description: "Does the subject stand within the encrypted part alone?" }),
  }),
);

export const Destination = Named(
  "MaskedDestination",
  Type.Object({
    id: Id,
    email: Type.String({ description: UNREADABLE }),
    environment: Environment,
    status: OneOf(DESTINATION_STATUSES, {
      description: "pending: its owner has not confirmed. suspended: it bounced; confirming again takes it up",
    }),
    suspended_reason: Nullable(Type.String()),
    aliases: Type.Integer({ description: "How many aliases forward to it" }),
    confirmation_sent_at: Type.Unsafe<Date | string | null>({
      ...Nullable(Time),
      description:
        "null: not asked yet, because a mailbox gets at most three confirmation mails a day; ask again by /resend",
    }),
    confirmed_at: Nullable(Time),
    pgp_key: Nullable(PgpKey),
    created_at: Time,
    updated_at: Time,
  }),
);
const OneDestination = AnswerOf("destination", Destination);

const Contact = Named(
  "MaskedContact",
  Type.Object({
    id: Id,
    alias_id: Id,
    email: Type.String({ description: UNREADABLE }),
    name: Nullable(Type.String()),
    reply_address: Type.String({
      description:
        "Mail from a confirmed destination to this address reaches the contact, sent from the alias; empty as the e-mail address is",
    }),
    blocked: Type.Boolean(),
    source: OneOf(CONTACT_SOURCES),
    received: Type.Integer(),
    sent: Type.Integer(),
    last_seen_at: Nullable(Time),
    created_at: Time,
    updated_at: Time,
  }),
);
const OneContact = AnswerOf("contact", Contact);
const ContactParams = Type.Object({
  id: Type.String({ maxLength: 1024 }),
  contact_id: Type.String({ maxLength: 1024 }),
});

const Verdict = Nullable(Type.String());
const Entry = Named(
  "MaskedActivity",
  Type.Object({
    id: Id,
    type: OneOf(ACTIVITY_TYPES),
    outcome: OneOf(ACTIVITY_OUTCOMES, {
      description:
        "sent: on its way, or arrived. deferred: answered with 450, the sender tries again; or a server deferred it, and we do. failed: refused, or given up. dropped: taken and thrown away. held: a reply that was stopped, or mail in quarantine (see /v1/inbound-emails)",
    }),
    reason: Type.Unsafe<string | null>({
      ...Nullable(Type.String()),
      description:
        "A word on why, such as spam, dmarc, rate_limited, new_contacts, destination_unconfirmed, destination_suspended, alias_disabled, contact_blocked, loop, own_destination, key_unusable (nothing can be encrypted for the mailbox), unauthorised_sender, unproven_sender, reply_disabled, encrypted, lost_file (a reply that would have arrived without a file), leak; of a bounce, its kind and code",
    }),
    detail: Type.Unsafe<string | null>({
      ...Nullable(Type.String()),
      description: "Of a reply that is held because of a leak: the place that would have shown an address",
    }),
    contact: Nullable(Type.String()),
    destination: Nullable(Type.String()),
    message_id: Nullable(Type.String()),
    size: Nullable(Type.Integer()),
    spf: Verdict,
    dkim: Verdict,
    dmarc: Verdict,
    spam_score: Nullable(Type.Number()),
    redactions: Type.Unsafe<number | null>({
      ...Nullable(Type.Integer()),
      description: "How many addresses were replaced in a reply",
    }),
    timestamp: Time,
  }),
);

/** What is kept of one person. */
export const MaskedPerson = Named(
  "ExportMaskedPersonAnswer",
  Type.Object({
    email: Type.String(),
    destination: Nullable(Destination),
    alias_ids: Type.Array(Id, { description: "The aliases that forward to the person, deleted ones too" }),
    patterns: Type.Array(Type.String(), { description: "The patterns of the person's mailbox" }),
    contacts: Type.Array(Contact),
    activity: Type.Array(Entry),
    truncated: Type.Boolean({ description: "There is more: 1,000 contacts and 1,000 entries are shown" }),
  }),
);

/** What was forgotten of one person. */
export const MaskedPersonErased = Named(
  "EraseMaskedPersonAnswer",
  Type.Object({
    contacts: Type.Integer(),
    destinations: Type.Integer(),
    aliases: Type.Integer({ description: "Deleted, because they forwarded to nobody else" }),
  }),
);

/** Mounts the endpoints of destinations, contacts and activity. */
export function mountPeople(api: Api, world: World, ports: MaskedPorts): void {
  mountDestinations(api, world, ports);
  mountDestination(api, world, ports);
  mountContacts(api, world);
  mountContact(api, world);
  mountActivity(api, world);
  mountPerson(api, world);
}

const aboutDestinations = { tags: ["Masked destinations"] };

function mountDestinations(api: Api, world: World, ports: MaskedPorts): void {
  api.get(
    "/v1/masked/destinations",
    {
      schema: {
        ...aboutDestinations,
        operationId: "listMaskedDestinations",
        summary: "List destinations, newest first",
        description: "The mailboxes that masked aliases forward to, with whether their owners have confirmed.",
        querystring: Closed({ ...PageQuery, status: Type.Optional(OneOf(DESTINATION_STATUSES)), email: EmailQuery }),
        response: answers({ 200: PageOf("destinations", Destination) }),
      },
    },
    async (request) => {
      const { limit: _limit, offset: _offset, ...filter } = request.query;
      return destinations.listDestinations(world, request.account, filter, pageOf(request.query));
    },
  );

  api.post(
    "/v1/masked/destinations",
    {
      schema: {
        ...aboutDestinations,
        operationId: "createMaskedDestination",
        summary: "Add a destination and mail it the confirmation link; 200 when it is there already",
        description:
          "One that is not confirmed within 90 days after its last confirmation mail, and that no alias forwards to, is removed: add it again then.",
        body: Closed({ email: Type.String({ maxLength: EMAIL_MAX }) }),
        response: answers({ 200: OneDestination, 201: OneDestination }),
      },
    },
    async (request, reply) => {
      const { created, destination } = await destinations.addDestination(world, ports, request.account, request.body);
      return reply.code(created ? 201 : 200).send({ destination });
    },
  );
}

function mountDestination(api: Api, world: World, ports: MaskedPorts): void {
  const schema = { ...aboutDestinations, params: IdParams };
  api.get(
    "/v1/masked/destinations/:id",
    {
      schema: {
        ...schema,
        operationId: "getMaskedDestination",
        summary: "Get a destination",
        description: "One mailbox and whether its owner has confirmed.",
        response: answers({ 200: OneDestination }, [404]),
      },
    },
    async (request) => ({
      destination: await destinations.getDestination(world, request.account, request.params.id),
    }),
  );

  api.post(
    "/v1/masked/destinations/:id/resend",
    {
      schema: {
        ...schema,
        operationId: "resendMaskedConfirmation",
        summary:
          "Mail the confirmation link again: once a minute, ten times, and three times a day to a mailbox at most",
        description: "409 for a mailbox that has confirmed already; 429 when it was asked too often.",
        response: answers({ 200: OneDestination }, [404, 409]),
      },
    },
    async (request) => ({
      destination: await destinations.resendConfirmation(world, ports, request.account, request.params.id),
    }),
  );

  api.delete(
    "/v1/masked/destinations/:id",
    {
      schema: {
        ...schema,
        operationId: "deleteMaskedDestination",
        summary: "Remove a destination from all aliases and forget it",
        description: "409 while it is the only mailbox of an alias.",
        response: answers({ 200: Deleted }, [404, 409]),
      },
    },
    async (request) => {
      await destinations.deleteDestination(world, request.account, request.params.id);
      return { deleted: true, id: request.params.id };
    },
  );
}

const aboutContacts = { tags: ["Masked contacts"] };

function mountContacts(api: Api, world: World): void {
  const schema = { ...aboutContacts, params: IdParams };
  api.get(
    "/v1/masked/aliases/:id/contacts",
    {
      schema: {
        ...schema,
        operationId: "listMaskedContacts",
        summary: "List the contacts of an alias, newest first",
        description: "Whoever wrote to the alias, and whoever was added by hand.",
        querystring: Closed({ ...PageQuery, blocked: Type.Optional(Type.Boolean()), email: EmailQuery }),
        response: answers({ 200: PageOf("contacts", Contact) }, [404]),
      },
    },
    async (request) => {
      const { limit: _limit, offset: _offset, ...filter } = request.query;
      const wanted = { ...filter, alias_id: request.params.id };
      return contacts.listContacts(world, request.account, wanted, pageOf(request.query));
    },
  );

  api.post(
    "/v1/masked/aliases/:id/contacts",
    {
      schema: {
        ...schema,
        operationId: "createMaskedContact",
        summary: "Add a contact and get its reply address; 200 when it is there already",
        description: "A mail from a confirmed mailbox to `reply_address` reaches the contact and comes from the alias.",
        body: Closed({
          email: Type.String({ maxLength: EMAIL_MAX }),
          name: Type.Optional(Nullable(Type.String({ maxLength: contacts.CONTACT_NAME_MAX }))),
        }),
        response: answers({ 200: OneContact, 201: OneContact }, [404]),
      },
    },
    async (request, reply) => {
      const { created, contact } = await contacts.addContact(world, request.account, request.params.id, request.body);
      return reply.code(created ? 201 : 200).send({ contact });
    },
  );
}

function mountContact(api: Api, world: World): void {
  const schema = { ...aboutContacts, params: ContactParams };
  api.patch(
    "/v1/masked/aliases/:id/contacts/:contact_id",
    {
      schema: {
        ...schema,
        operationId: "updateMaskedContact",
        summary: "Block, unblock or rename a contact",
        description: "What is left out stays.",
        body: Closed({
          blocked: Type.Optional(Type.Boolean({ description: "true: its mail is taken and dropped" })),
          name: Type.Optional(Nullable(Type.String({ maxLength: contacts.CONTACT_NAME_MAX }))),
        }),
        response: answers({ 200: OneContact }, [404]),
      },
    },
    async (request) => {
      const key = { alias_id: request.params.id, id: request.params.contact_id };
      return { contact: await contacts.changeContact(world, request.account, key, request.body ?? {}) };
    },
  );

  api.delete(
    "/v1/masked/aliases/:id/contacts/:contact_id",
    {
      schema: {
        ...schema,
        operationId: "deleteMaskedContact",
        summary: "Forget a contact; its reply address leads nowhere any more",
        description: "If the contact writes again, a new one with a new reply address is made.",
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => {
      const key = { alias_id: request.params.id, id: request.params.contact_id };
      await contacts.deleteContact(world, request.account, key);
      return { deleted: true, id: request.params.contact_id };
    },
  );
}

function mountActivity(api: Api, world: World): void {
  api.get(
    "/v1/masked/aliases/:id/activity",
    {
      schema: {
        tags: ["Masked aliases"],
        params: IdParams,
        operationId: "listMaskedActivity",
        summary: "What happened on an alias, newest first; no subjects, no bodies",
        description: "Forwards, replies, and what was held back, each with why.",
        querystring: Closed({
          ...PageQuery,
          type: Type.Optional(OneOf(ACTIVITY_TYPES)),
          outcome: Type.Optional(OneOf(ACTIVITY_OUTCOMES)),
        }),
        response: answers({ 200: PageOf("activity", Entry) }, [404]),
      },
    },
    async (request) => {
      const { limit: _limit, offset: _offset, ...filter } = request.query;
      const wanted = { ...filter, alias_id: request.params.id };
      return listActivity(world, request.account, wanted, pageOf(request.query));
    },
  );
}

function mountPerson(api: Api, world: World): void {
  const schema = {
    tags: ["Masked people"],
    querystring: Closed({ email: Type.String({ minLength: 1, maxLength: EMAIL_MAX }) }),
  };
  api.get(
    "/v1/masked/people",
    {
      schema: {
        ...schema,
        operationId: "exportMaskedPerson",
        summary: "Everything that is kept of one person, as a contact of aliases and as a destination",
        description:
          "For a request for information under data protection law. A person that is not known has empty lists.",
        response: answers({
          200: MaskedPerson,
        }),
      },
    },
    async (request) => exportPerson(world, request.account, request.query.email),
  );

  api.delete(
    "/v1/masked/people",
    {
      schema: {
        ...schema,
        operationId: "eraseMaskedPerson",
        summary: "Forget one person: as a contact everywhere, and as a destination",
        description:
          "The reply addresses of the person lead nowhere any more. Aliases that forward to nobody else are deleted. Activity keeps what happened, without the person. Mail: eraseAddressData.",
        response: answers({
          200: MaskedPersonErased,
        }),
      },
    },
    async (request) => erasePerson(world, request.account, request.query.email),
  );
}

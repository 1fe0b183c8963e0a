// /v1/domains/{id}/spam
import { type Static, Type } from "typebox";
import { type Api, answers, Closed, Id, IdParams, Named, Nullable, OneOf, Time } from "../../http/http.ts";
import { SENDER_CHARS_MAX } from "../../mail/spam/senders.ts";
import { DMARC_ACTIONS } from "../../mail/spam/verdict.ts";
import type { World } from "../../platform/world.ts";
import * as spam from "./spam.ts";
import { ENGINES, ON_ERROR } from "./spam-queries.ts";

const THRESHOLD_MAX = 1_000;

const Engine = Named(
  "SpamEngine",
  OneOf(ENGINES, {
    description:
      "builtin: our own signs and scores. rspamd: the server's, or the built-in engine where none is set up. Without a choice: rspamd where the server has one",
  }),
);
const OnError = Named(
  "SpamOnError",
  OneOf(ON_ERROR, {
    description:
      "When mail cannot be judged in time. accept: it is taken, and judged by the built-in engine. defer: 451, the sender tries again",
  }),
);
const Threshold = (description: string) =>
  Nullable(Type.Number({ minimum: 0, maximum: THRESHOLD_MAX, description: `${description} null: never` }));
const thresholds = {
  tag: Threshold("From this score on mail is marked: X-Spam fields on its copies, `spam.verdict` tag. 5 at first;"),
  quarantine: Threshold("Mail is kept, and nothing is done with it until it is released. 8 at first;"),
  reject: Threshold("Mail is refused in session with 550 5.7.1. 15 at first;"),
};
const DmarcAction = (asked: string) =>
  OneOf(DMARC_ACTIONS, {
    description: `With mail that fails DMARC where the author's domain asks to ${asked} it; tag at first`,
  });
const dmarcAction = { reject: DmarcAction("reject"), quarantine: DmarcAction("quarantine") };
const Senders = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: SENDER_CHARS_MAX }), { maxItems: spam.SENDERS_MAX, description });
const allow = Senders(
  "Senders (address, domain, or pattern with * and ?) whose mail is let through, unless SPF or DMARC says that it is not from them. The more exact entry wins over `block`",
);
const block = Senders(
  "Senders whose mail is refused, by From or the envelope; between equally exact entries block wins",
);

const Spam = Named(
  "DomainSpam",
  Type.Object({
    domain_id: Id,
    domain: Type.String(),
    enabled: Type.Boolean({ description: "false: nothing is judged" }),
    engine: Engine,
    engine_chosen: Type.Boolean({ description: "false: `engine` is the server's, and changes with it" }),
    thresholds: Named("SpamThresholds", Type.Object(thresholds)),
    on_error: OnError,
    dmarc_action: Named("SpamDmarcAction", Type.Object(dmarcAction)),
    allow,
    block,
    updated_at: Nullable(Time),
  }),
);

const Body = Closed({
  enabled: Type.Optional(Type.Boolean()),
  engine: Type.Optional(Nullable(OneOf(ENGINES, { description: "null: the server's again" }))),
  thresholds: Type.Optional(
    Named(
      "SpamThresholdsChange",
      Closed(
        {
          tag: Type.Optional(thresholds.tag),
          quarantine: Type.Optional(thresholds.quarantine),
          reject: Type.Optional(thresholds.reject),
        },
        { description: "In order: tag ≤ quarantine ≤ reject" },
      ),
    ),
  ),
  on_error: Type.Optional(OnError),
  dmarc_action: Type.Optional(
    Named(
      "SpamDmarcActionChange",
      Closed({ reject: Type.Optional(dmarcAction.reject), quarantine: Type.Optional(dmarcAction.quarantine) }),
    ),
  ),
  allow: Type.Optional(allow),
  block: Type.Optional(block),
});

const Params = {
  ...IdParams,
  properties: { id: Type.String({ maxLength: 1024, description: "The domain's id or its name" }) },
} as typeof IdParams;
const tags = ["Inbound"];

/** Mounts the endpoints of a domain's spam settings. */
export function mountSpam(api: Api, world: World): void {
  api.get(
    "/v1/domains/:id/spam",
    {
      schema: {
        operationId: "getDomainSpam",
        tags,
        summary: "How the domain's received mail is judged",
        description: "The defaults, as long as nothing was changed.",
        params: Params,
        response: answers({ 200: Spam }, [404]),
      },
    },
    async (request) => spam.getSettings(world, request.account.org_id, request.params.id),
  );

  api.put(
    "/v1/domains/:id/spam",
    {
      config: { live_domain_only: "change what a live domain takes for spam" },
      schema: {
        operationId: "updateDomainSpam",
        tags,
        summary: "Change how the domain's received mail is judged; what is left out stays",
        description:
          "The test text GTUBE scores 1,000. A message to several recipients whose domains disagree is taken, and " +
          "lies in quarantine for those who would have refused it.",
        params: Params,
        body: Body,
        response: answers({ 200: Spam }, [404]),
      },
    },
    async (request) => {
      const changes = (request.body ?? {}) as Static<typeof Body>;
      return spam.changeSettings(world, request.account.org_id, request.params.id, changes);
    },
  );
}

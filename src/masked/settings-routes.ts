// /v1/masked/settings
import { Type } from "typebox";
import { type Api, answers, Closed, Named, Nullable, OneOf, Time } from "../http/http.ts";
import type { World } from "../platform/world.ts";
import { changeMaskedSettings, showSettings } from "./settings.ts";
import { FORGED_MAIL, MARK_UNPROVEN } from "./settings-queries.ts";

const LIMIT_MAX = 1_000_000;
const Limit = (description: string) => Type.Integer({ minimum: 1, maximum: LIMIT_MAX, description });

const DOMAIN = "^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z][a-z0-9-]{0,62}$";

const fields = {
  replies_person_hour: Limit("Mails an hour that one mailbox sends through all its aliases together. 40 at first"),
  replies_person_day: Limit("The same for a day (UTC). 200 at first"),
  replies_hour: Limit("Mails an hour that leave through all aliases of the organization. 1,000 at first"),
  replies_day: Limit("The same for a day (UTC). 5,000 at first"),
  aliases_hour: Limit("Aliases that may be created within an hour. 500 at first"),
  aliases_day: Limit("The same for a day (UTC). 2,000 at first"),
  pattern_aliases: Limit("Aliases that all patterns of one mailbox make, without deleted ones. 1,000 at first"),
  forged_mail: OneOf(FORGED_MAIL, {
    description:
      "Mail that fails DMARC at a domain that asks for quarantine. quarantine: it is kept until it is released. warn: it is forwarded, and its From name says so",
  }),
  mark_unproven: OneOf(MARK_UNPROVEN, {
    description:
      "Forwards whose author's name begins with `[sender not proven]`, which no answer shows. asked: those that fail DMARC at a domain that asks for something. always: also at other domains, and those that neither SPF nor DKIM of the author's domain proves",
  }),
  arc_sealers: Type.Array(Type.String({ pattern: DOMAIN, maxLength: 253 }), {
    maxItems: 100,
    description:
      "Domains whose ARC seals are believed, with those under them: mail that only they sealed passes where the oldest says that DMARC passed",
  }),
};
const Settings = Named("MaskedSettings", Type.Object({ ...fields, updated_at: Nullable(Time) }));
const tags = ["Masked aliases"];

/** Mounts the settings that hold for all masked aliases of an organization. */
export function mountMaskedSettings(api: Api, world: World): void {
  api.get(
    "/v1/masked/settings",
    {
      schema: {
        operationId: "getMaskedSettings",
        tags,
        summary: "What holds for an organization's masked aliases together",
        description: "The values at first, as long as nothing was changed; `updated_at` is then null.",
        response: answers({ 200: Settings }),
      },
    },
    async (request) => showSettings(world, request.account),
  );

  api.put(
    "/v1/masked/settings",
    {
      schema: {
        operationId: "updateMaskedSettings",
        tags,
        summary: "Change these settings; what is left out stays",
        description:
          "With a live key. On the free plan limits may be lowered, not raised above what they are at first.",
        body: Type.Partial(Closed(fields), { additionalProperties: false }),
        response: answers({ 200: Settings }),
      },
    },
    async (request) => changeMaskedSettings(world, request.account, request.body ?? {}),
  );
}

// /v1/masked/settings
import { Type } from "typebox";
import { type Api, answers, Closed, Named, Nullable, Time } from "../http/http.ts";
import type { World } from "../platform/world.ts";
import { changeMaskedSettings, showSettings } from "./settings.ts";

const LIMIT_MAX = 1_000_000;
const Limit = (description: string) => Type.Integer({ minimum: 1, maximum: LIMIT_MAX, description });

const fields = {
  replies_person_hour: Limit("Mails an hour that one mailbox sends through all its aliases together. 40 at first"),
  replies_person_day: Limit("The same for a day (UTC). 200 at first"),
  replies_hour: Limit("Mails an hour that leave through all aliases of the organization. 1,000 at first"),
  replies_day: Limit("The same for a day (UTC). 5,000 at first"),
  aliases_hour: Limit("Aliases that may be created within an hour. 500 at first"),
  aliases_day: Limit("The same for a day (UTC). 2,000 at first"),
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
        summary: "The limits of an organization's masked aliases together",
        description: "The limits at first, as long as nothing was changed; `updated_at` is then null.",
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
        summary: "Change these limits; what is left out stays",
        description:
          "With a live key. On the free plan limits may be lowered, not raised above what they are at first.",
        body: Type.Partial(Closed(fields), { additionalProperties: false }),
        response: answers({ 200: Settings }),
      },
    },
    async (request) => changeMaskedSettings(world, request.account, request.body ?? {}),
  );
}

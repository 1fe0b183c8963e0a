// /v1/masked/destinations/{id}/pgp-key
import { Type } from "typebox";
import { AnswerOf, type Api, answers, Closed, IdParams } from "../../http/http.ts";
import { ARMORED_KEY_MAX, readPublicKey } from "../../mail/pgp/read-public-key.ts";
import { invalid, notFound } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { setPgpKey } from "../people-queries.ts";
import type { DestinationRecord, Who } from "../types.ts";
import { getDestination } from "./destinations.ts";
import { Destination } from "./people-routes.ts";
import { sealPgpKey } from "./pgp-keys.ts";

type PgpWorld = Pick<World, "db" | "clock" | "seal">;
const OneDestination = AnswerOf("destination", Destination);

/** Mounts the OpenPGP keys of mailboxes. */
export function mountPgpKeys(api: Api, world: World): void {
  const schema = { tags: ["Masked destinations"], params: IdParams };
  api.put(
    "/v1/masked/destinations/:id/pgp-key",
    {
      schema: {
        ...schema,
        operationId: "setMaskedPgpKey",
        summary: "Encrypt what is forwarded to a mailbox with an OpenPGP key",
        description:
          "PGP/MIME from now on, in the place of any key before. While nothing can be encrypted for the key, mail is held and the mailbox informed.",
        body: Closed({
          public_key: Type.String({
            minLength: 1,
            // Longer ones are refused with what to do about it.
            maxLength: 4 * ARMORED_KEY_MAX,
            description: "One armoured public key that can encrypt, at most 64 KiB",
          }),
          hide_subject: Type.Optional(
            Type.Boolean({ description: "true, the default: the subject is encrypted, and outside stands `...`" }),
          ),
        }),
        response: answers({ 200: OneDestination }, [404]),
      },
    },
    async (request) => ({ destination: await setKey(world, request.account, request.params.id, request.body) }),
  );

  api.delete(
    "/v1/masked/destinations/:id/pgp-key",
    {
      schema: {
        ...schema,
        operationId: "removeMaskedPgpKey",
        summary: "Forward to a mailbox without encryption again",
        description: "404 when it has no key.",
        response: answers({ 200: OneDestination }, [404]),
      },
    },
    async (request) => ({ destination: await removeKey(world, request.account, request.params.id) }),
  );
}

type Given = { public_key: string; hide_subject?: boolean };

async function setKey(world: PgpWorld, who: Who, id: string, given: Given): Promise<DestinationRecord> {
  await getDestination(world, who, id);
  const read = await readPublicKey(given.public_key, world.clock.now());
  if (!read.ok) throw invalid("public_key", `the 'public_key' field ${read.problem}`);
  const { hide_subject = true } = given;
  const change = { sealed: sealPgpKey(world, who.org_id, read.key), hide_subject, at: new Date(world.clock.now()) };
  const isSet = await world.db.asOrg(who.org_id, (tx) => setPgpKey(tx, who.org_id, id, change));
  if (!isSet) throw notFound("destination");
  return getDestination(world, who, id);
}

async function removeKey(world: PgpWorld, who: Who, id: string): Promise<DestinationRecord> {
  const { pgp_key } = await getDestination(world, who, id);
  if (pgp_key === null) throw notFound("key");
  const change = { sealed: null, hide_subject: true, at: new Date(world.clock.now()) };
  await world.db.asOrg(who.org_id, (tx) => setPgpKey(tx, who.org_id, id, change));
  return getDestination(world, who, id);
}

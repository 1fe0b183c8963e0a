// POST /v1/masked/aliases/{id}/check
import { Type } from "typebox";
import { type Api, answers, Closed, IdParams, Named, Nullable, OneOf } from "../http/http.ts";
import { createParsePool } from "../parsing/parse-pool.ts";
import type { World } from "../platform/world.ts";
import { checkReply, OUTCOMES } from "./carry/checking.ts";

/** 35 MiB as base64, with room for the rest. */
const BYTES_MAX = 48 * 1024 * 1024;
const PARSER = { size: 1, processor_ms: 10_000, memory_mib: 256 };

const Text = (description: string) => Type.String({ description });
const Where = Text("Such as `part 2 of the message`");
const Place = Named("MaskedCheckPlace", Type.Object({ where: Where, file: Nullable(Type.String()) }));
const Change = Named(
  "MaskedCheckChange",
  Type.Object({
    where: Where,
    place: Text("header, text, file, file_name or part"),
    kind: Text("address, name, reply_address, link, left_out or written_anew"),
    detail: Type.Unsafe<string | null>({
      ...Nullable(Type.String()),
      description: "The field, or the type of the part",
    }),
    count: Type.Integer(),
  }),
);

/** Mounts the check of a reply that is not sent. */
export function mountCheck(api: Api, world: World): void {
  const parser = createParsePool(PARSER);
  api.addHook("onClose", () => parser.stop());
  api.post(
    "/v1/masked/aliases/:id/check",
    {
      bodyLimit: BYTES_MAX,
      schema: {
        operationId: "checkMaskedReply",
        tags: ["Masked aliases"],
        summary: "What would leave if this mail were sent",
        description: "Nothing is sent. Not judged: proof of the author, spam, limits.",
        params: IdParams,
        body: Closed({ raw_base64: Type.String({ minLength: 1, description: "The mail" }) }),
        response: answers(
          {
            200: Named(
              "MaskedCheck",
              Type.Object({
                outcome: OneOf(OUTCOMES),
                reason: Nullable(Type.String()),
                raw_base64: Type.Unsafe<string | null>({ ...Nullable(Type.String()), description: "What would leave" }),
                changes: Type.Array(Change, { description: "Against the mail" }),
                unopened: Type.Array(Place, { description: "What was not looked into" }),
                leaks: Type.Array(Place, { description: "Why it would be held" }),
                words: Type.Array(Type.String(), { description: "What was found, masked" }),
              }),
            ),
          },
          [404],
        ),
      },
    },
    async ({ account, params, body }) => checkReply(world, parser, account, { ...params, ...body }),
  );
}

// Serves the description: /openapi.yaml and /openapi.json, compressed once, with ETags. Not here: what it says (openapi.ts).
import { createHash } from "node:crypto";
import { brotliCompressSync, gzipSync } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Document, isMap, isSeq, visit } from "yaml";
import type { Api } from "../http/http.ts";

type Coding = "br" | "gzip" | "identity";
type Form = { type: string; etag: string; bodies: Record<Coding, Buffer> };

const CODINGS: Coding[] = ["br", "gzip"];
/** What is shorter stands on one line: the description is read by people, too. */
const ONE_LINE_CHARS_MAX = 320;

/** Mounts both forms; they need no key. */
export function mountDescription(api: Api): void {
  // Monitors and tools ask for the head alone (RFC 9110 §9.3.2).
  const open = { schema: { hide: true }, exposeHeadRoute: true };
  const forms = new Map<string, Form>();
  const formOf = (path: string, make: () => Form): Form => {
    const form = forms.get(path) ?? make();
    forms.set(path, form);
    return form;
  };
  api.get("/openapi.yaml", open, (request, reply) =>
    answer(
      request,
      reply,
      formOf("yaml", () => toForm("application/yaml", toYaml(api.swagger()))),
    ),
  );
  api.get("/openapi.json", open, (request, reply) =>
    answer(
      request,
      reply,
      formOf("json", () => toForm("application/json", JSON.stringify(api.swagger()))),
    ),
  );
}

/** As YAML 1.1 too, which many readers still speak: there a bare `off` is false. */
function toYaml(description: object): string {
  const document = new Document(description, { compat: "yaml-1.1", aliasDuplicateObjects: false });
  const shorten = (node: { flow?: boolean; toJSON(): unknown }): void => {
    if (JSON.stringify(node.toJSON()).length <= ONE_LINE_CHARS_MAX) node.flow = true;
  };
  visit(document, { Node: (_key, node) => void ((isMap(node) || isSeq(node)) && shorten(node as never)) });
  return document.toString({ indent: 1, indentSeq: false, lineWidth: 0, flowCollectionPadding: false });
}

function toForm(type: string, text: string): Form {
  const identity = Buffer.from(text);
  const etag = createHash("sha256").update(identity).digest("base64url").slice(0, 27);
  return { type, etag, bodies: { identity, gzip: gzipSync(identity), br: brotliCompressSync(identity) } };
}

/** The tag names the coding as well: the bytes are others (RFC 9110 §8.8.3). */
function answer(request: FastifyRequest, reply: FastifyReply, { type, etag, bodies }: Form): FastifyReply {
  const coding = chooseCoding(String(request.headers["accept-encoding"] ?? ""));
  const tag = `"${etag}-${coding}"`;
  reply.headers({ etag: tag, vary: "accept-encoding", "cache-control": "no-cache" });
  if (isKnown(String(request.headers["if-none-match"] ?? ""), tag)) return reply.code(304).send();
  if (coding !== "identity") reply.header("content-encoding", coding);
  return reply.type(type).send(bodies[coding]);
}

/** RFC 9110 §12.5.3, of which a coding with `q=0` is what matters here. */
function chooseCoding(accepted: string): Coding {
  const offers = accepted.toLowerCase().split(",");
  const isWanted = (coding: Coding): boolean =>
    offers.some((offer) => {
      const [name = "", ...parameters] = offer.split(";").map((part) => part.trim());
      return name === coding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    });
  return CODINGS.find(isWanted) ?? "identity";
}

/** If-None-Match compares weakly (RFC 9110 §13.1.2). */
function isKnown(asked: string, tag: string): boolean {
  return asked
    .split(",")
    .map((part) => part.trim().replace(/^W\//, ""))
    .some((part) => part === tag || part === "*");
}

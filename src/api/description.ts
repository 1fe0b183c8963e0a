// Serves the description: /openapi.yaml and /openapi.json, compressed once, with ETags (compressed.ts). Not here: what it says (openapi.ts).
import { Document, isMap, isSeq, visit } from "yaml";
import type { Api } from "../http/http.ts";
import { answerForm, type Form, toForm } from "./compressed.ts";

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
    answerForm(
      request,
      reply,
      formOf("yaml", () => toForm("application/yaml", toYaml(api.swagger()))),
    ),
  );
  api.get("/openapi.json", open, (request, reply) =>
    answerForm(
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

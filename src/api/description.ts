// Serves the description: /openapi.yaml and /openapi.json, compressed once, with ETags (compressed.ts). Not here: what it says (openapi.ts).
import type { Api } from "../http/http.ts";
import { answerForm, type Form, toForm } from "./compressed.ts";

/** What is shorter stands on one line: the description is read by people, too. */
const ONE_LINE_CHARS_MAX = 320;

/** Mounts both forms; they need no key. */
export function mountDescription(api: Api): void {
  // Monitors and tools ask for the head alone (RFC 9110 §9.3.2).
  const open = { schema: { hide: true }, exposeHeadRoute: true };
  const forms = new Map<string, Form>();
  const formOf = async (path: string, make: () => Form | Promise<Form>): Promise<Form> => {
    const form = forms.get(path) ?? (await make());
    forms.set(path, form);
    return form;
  };
  api.get("/openapi.yaml", open, async (request, reply) =>
    answerForm(
      request,
      reply,
      await formOf("yaml", async () => toForm("application/yaml", await toYaml(api.swagger()))),
    ),
  );
  api.get("/openapi.json", open, async (request, reply) =>
    answerForm(request, reply, await formOf("json", () => toForm("application/json", JSON.stringify(api.swagger())))),
  );
}

/** As YAML 1.1 too, which many readers still speak: there a bare `off` is false. */
async function toYaml(description: object): Promise<string> {
  // Once in the life of a process, if at all.
  const { Document, isMap, isSeq, visit } = await import("yaml");
  const document = new Document(description, { compat: "yaml-1.1", aliasDuplicateObjects: false });
  const shorten = (node: { flow?: boolean; toJSON(): unknown }): void => {
    if (JSON.stringify(node.toJSON()).length <= ONE_LINE_CHARS_MAX) node.flow = true;
  };
  visit(document, { Node: (_key, node) => void ((isMap(node) || isSeq(node)) && shorten(node as never)) });
  return document.toString({ indent: 1, indentSeq: false, lineWidth: 0, flowCollectionPadding: false });
}

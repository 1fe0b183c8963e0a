// Saving what was written in a template. Where somebody else saved other sources meanwhile, a question comes first: nobody's text
// is replaced unseen.
import { useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { useAct } from "../../lib/act.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";

type Template = Schemas["Template"];
export type Draft = { subject: string; html_body: string; text_body: string };

export function draftOf({ subject, html_body, text_body }: Template): Draft {
  return { subject, html_body: html_body ?? "", text_body: text_body ?? "" };
}

/** An empty body counts as absent: the API refuses a template without any body. */
export function bodiesOf({ subject, html_body, text_body }: Draft) {
  return { subject, html_body: html_body === "" ? null : html_body, text_body: text_body === "" ? null : text_body };
}

export function isOther(one: Draft, other: Draft): boolean {
  return (Object.keys(one) as (keyof Draft)[]).some((part) => one[part] !== other[part]);
}

/** `newer` is what somebody else saved since the page was opened, once saving has met it. */
export function useSaving(found: Template, draft: Draft) {
  const [base, setBase] = useState(() => draftOf(found));
  const [newer, meet] = useState<Template | null>(null);
  const params = { path: { id: found.id } };
  const saving = useAct({
    run: async (isSure: boolean) => {
      const { template } = await take(v1.GET("/v1/templates/{id}", { params }));
      if (!isSure && isOther(draftOf(template), base)) return { newer: template };
      return take(v1.PUT("/v1/templates/{id}", { params, body: bodiesOf(draft) }));
    },
    refresh: [["templates"]],
    done: (out) => {
      if ("newer" in out) {
        meet(out.newer);
        return undefined;
      }
      meet(null);
      setBase(draftOf(out.template));
      return `Saved as version ${out.template.version}.`;
    },
  });
  return { saving, newer, close: () => meet(null) };
}

type Given = ReturnType<typeof useSaving> & { isChanged: boolean };

export function SaveTemplate({ saving, newer, close, isChanged }: Given) {
  return (
    <>
      <Button
        look="primary"
        disabled={!isChanged}
        busy={saving.isPending && "Saving…"}
        onClick={() => saving.mutate(false)}
      >
        Save
      </Button>
      <Confirm
        title={`Save over version ${newer?.version}?`}
        act="Save mine"
        open={newer !== null}
        busy={saving.isPending}
        close={close}
        confirm={() => saving.mutate(true)}
      >
        Somebody saved version {newer?.version} after you opened this page. The tab Difference shows what yours would
        change in it. It stays among the versions.
      </Confirm>
    </>
  );
}

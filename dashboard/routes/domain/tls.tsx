// Whether mail of the domain may leave without TLS.
import { getRouteApi } from "@tanstack/react-router";
import { type FormEvent, useId } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { useAct } from "../../lib/act.ts";
import { Button } from "../../ui/button.tsx";
import { DomainPage } from "./page.tsx";

const route = getRouteApi("/domains/$id/tls");
type Domain = Schemas["Domain"];
const POLICIES = [
  [
    "opportunistic",
    "Where the receiver offers it",
    "Postern follows DANE and MTA-STS where the receiver publishes them. Mail to servers without TLS is not encrypted.",
  ],
  [
    "require",
    "Always",
    "Mail to a server without TLS waits. It fails if the server still has no TLS at the last attempt. A single mail can ask for this with require_tls.",
  ],
] as const;

export function TlsPage() {
  const { id } = route.useParams();
  return (
    <DomainPage id={id} needs="sending">
      {(domain) => <Policy key={domain.updated_at} domain={domain} />}
    </DomainPage>
  );
}

function Policy({ domain: { id, tls_policy } }: { domain: Domain }) {
  const name = useId();
  const saving = useAct({
    run: (policy: Domain["tls_policy"]) =>
      take(v1.PUT("/v1/domains/{id}", { params: { path: { id } }, body: { tls_policy: policy } })),
    refresh: [["domain", id]],
    done: () => "The policy is saved.",
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    saving.mutate(new FormData(event.currentTarget).get(name) === "require" ? "require" : "opportunistic");
  };
  return (
    <form onSubmit={submit} className="panel pad">
      <fieldset className="grid gap-4">
        <legend className="mb-3 text-[13px] font-semibold">Mail leaves over TLS</legend>
        {POLICIES.map(([value, title, text]) => (
          <label key={value} className="flex items-start gap-3">
            <input type="radio" name={name} value={value} defaultChecked={tls_policy === value} className="mt-1" />
            <span>
              {title}
              <span className="block max-w-[68ch] text-[13px] text-ink-2">{text}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <div className="acts">
        <Button changes look="primary" type="submit" busy={saving.isPending && "Saving…"}>
          Save
        </Button>
      </div>
    </form>
  );
}

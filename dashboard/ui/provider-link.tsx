// The way to the OpenID Connect provider, where there is one. It leaves the page, and comes back to `to`.
import { useQuery } from "@tanstack/react-query";
import { waysIn } from "../api/people.ts";

type Given = { to: string; say: (name: string) => string; proves?: boolean };

export function ProviderLink({ to, say, proves = false }: Given) {
  const provider = useQuery(waysIn).data?.oidc;
  if (!provider) return null;
  const query = new URLSearchParams({ to, ...(proves ? { proves: "1" } : {}) });
  return (
    <a className="btn" href={`/dashboard/api/oidc/start?${query}`}>
      {say(provider.name)}
    </a>
  );
}

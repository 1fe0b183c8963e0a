// Which domain a page is about. It stands in the page's address.
import { useQuery } from "@tanstack/react-query";
import { domains } from "../../api/queries.ts";
import { inOneLine } from "../../lib/domain-names.ts";

type Given = { value: string | undefined; pick: (id: string) => void; receiving?: boolean };

/** `receiving`: only those that mail comes to. */
export function PickDomain({ value, pick, receiving = false }: Given) {
  const owned = useQuery(domains).data?.domains ?? [];
  const offered = owned.filter(({ type }) => !receiving || type === "inbound" || type === "both");
  if (offered.length === 0) return null;
  return (
    <div className="filters">
      <select className="input" aria-label="Domain" value={value ?? ""} onChange={(event) => pick(event.target.value)}>
        {offered.map(({ id, domain }) => (
          <option key={id} value={id}>
            {inOneLine(domain)}
          </option>
        ))}
      </select>
    </div>
  );
}

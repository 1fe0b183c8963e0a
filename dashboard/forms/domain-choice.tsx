// One of the organization's domains, as a filter.
import { useQuery } from "@tanstack/react-query";
import { domains } from "../api/queries.ts";
import { inOneLine } from "../lib/domain-names.ts";
import { Choice } from "../ui/choice.tsx";

export function DomainChoice({ value, pick }: { value: string | undefined; pick: (id?: string) => void }) {
  const owned = useQuery(domains).data?.domains ?? [];
  return (
    <Choice label="Domain" value={value} pick={pick}>
      {owned.map(({ id, domain }) => (
        <option key={id} value={id}>
          {inOneLine(domain)}
        </option>
      ))}
    </Choice>
  );
}

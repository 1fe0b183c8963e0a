// What stands above a list of operators: a search, and one state of those that there are.
import { SearchField } from "../forms/search-field.tsx";
import { wordOf } from "../lib/states.ts";
import { Choice } from "./choice.tsx";

type Filters<S extends string> = { query?: string | undefined; state?: S | undefined };
type Given<S extends string> = {
  label: string;
  states: readonly S[];
  filters: Filters<S>;
  change(changed: Filters<S>): void;
};

export function ListFilters<S extends string>({ label, states, filters, change }: Given<S>) {
  return (
    <div className="filters">
      <SearchField label={label} value={filters.query} search={(query) => change({ query })} />
      <Choice label="State" value={filters.state} pick={(state) => change({ state: state as S | undefined })}>
        {states.map((state) => (
          <option key={state} value={state}>
            {wordOf(state)}
          </option>
        ))}
      </Choice>
    </div>
  );
}

// The pages of operators, beside each other.
import { Link } from "@tanstack/react-router";
import { TabBar } from "./tab-bar.tsx";

const PAGES = [
  ["/operator/organizations", "Organizations"],
  ["/operator/queue", "Queue"],
  ["/operator/sources", "Sources"],
  ["/operator/relays", "Relays"],
  ["/operator/mail", "Mail"],
  ["/operator/health", "Health"],
] as const;

export function OperatorNav() {
  return (
    <TabBar label="Operator">
      {PAGES.map(([to, name]) => (
        <Link key={to} to={to} search={{}} activeOptions={{ includeSearch: false }}>
          {name}
        </Link>
      ))}
    </TabBar>
  );
}

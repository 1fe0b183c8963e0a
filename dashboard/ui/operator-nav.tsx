// The pages of operators, beside each other.
import { Link } from "@tanstack/react-router";

const PAGES = [
  ["/operator/organizations", "Organizations"],
  ["/operator/queue", "Queue"],
  ["/operator/health", "Health"],
] as const;

export function OperatorNav() {
  return (
    <nav className="tabs" aria-label="Operator">
      {PAGES.map(([to, name]) => (
        <Link key={to} to={to} search={{}} activeOptions={{ includeSearch: false }}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

// The pages of masked addresses, beside each other.
import { Link } from "@tanstack/react-router";

const PAGES = [
  ["/masked", "Aliases"],
  ["/masked/destinations", "Destinations"],
  ["/masked/settings", "Settings"],
] as const;

export function MaskedNav() {
  return (
    <nav className="tabs" aria-label="Masked addresses">
      {PAGES.map(([to, name]) => (
        <Link key={to} to={to} search={{}} activeOptions={{ exact: true, includeSearch: false }}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

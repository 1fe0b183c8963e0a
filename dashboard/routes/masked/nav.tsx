// The pages of masked addresses, beside each other.
import { Link } from "@tanstack/react-router";
import { TabBar } from "../../ui/tab-bar.tsx";

const PAGES = [
  ["/masked", "Aliases"],
  ["/masked/destinations", "Destinations"],
  ["/masked/failed", "Failed mail"],
  ["/masked/settings", "Settings"],
] as const;

export function MaskedNav() {
  return (
    <TabBar label="Masked addresses">
      {PAGES.map(([to, name]) => (
        <Link key={to} to={to} search={{}} activeOptions={{ exact: true, includeSearch: false }}>
          {name}
        </Link>
      ))}
    </TabBar>
  );
}

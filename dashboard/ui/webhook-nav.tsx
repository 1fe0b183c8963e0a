// The pages of webhooks, beside each other.
import { Link } from "@tanstack/react-router";

const PAGES = [
  ["/webhooks", "Endpoints"],
  ["/webhooks/deliveries", "Deliveries"],
  ["/webhooks/signature", "Check a signature"],
] as const;

export function WebhookNav() {
  return (
    <nav className="tabs" aria-label="Webhooks">
      {PAGES.map(([to, name]) => (
        <Link key={to} to={to} search={{}} activeOptions={{ exact: true, includeSearch: false }}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

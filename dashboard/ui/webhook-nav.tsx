// The pages of webhooks, beside each other.
import { Link } from "@tanstack/react-router";
import { TabBar } from "./tab-bar.tsx";

const PAGES = [
  ["/webhooks", "Endpoints"],
  ["/webhooks/deliveries", "Deliveries"],
  ["/webhooks/signature", "Check a signature"],
] as const;

export function WebhookNav() {
  return (
    <TabBar label="Webhooks">
      {PAGES.map(([to, name]) => (
        <Link key={to} to={to} search={{}} activeOptions={{ exact: true, includeSearch: false }}>
          {name}
        </Link>
      ))}
    </TabBar>
  );
}

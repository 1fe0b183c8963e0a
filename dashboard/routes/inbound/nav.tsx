// The pages of received mail, beside each other.
import { Link } from "@tanstack/react-router";
import { TabBar } from "../../ui/tab-bar.tsx";

const PAGES = [
  ["/inbound", "Mail"],
  ["/inbound/rules", "Rules"],
  ["/inbound/aliases", "Aliases"],
  ["/inbound/spam", "Spam"],
  ["/inbound/simulate", "Simulate"],
] as const;

export function InboundNav() {
  return (
    <TabBar label="Received mail">
      {PAGES.map(([to, name]) => (
        <Link key={to} to={to} search={{}} activeOptions={{ exact: true, includeSearch: false }}>
          {name}
        </Link>
      ))}
    </TabBar>
  );
}

export const inboundCrumb = (
  <Link to="/inbound" search={{}} className="crumb">
    Inbound
  </Link>
);

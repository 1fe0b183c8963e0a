// The head of the settings: which of them is shown.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { PageHead } from "./page.tsx";
import { TabBar } from "./tab-bar.tsx";

const TABS = [
  { to: "/settings/organization", name: "Organization" },
  { to: "/settings/people", name: "People" },
  { to: "/settings/security", name: "Security" },
  { to: "/keys", name: "API keys" },
  { to: "/settings/audit-log", name: "Audit log" },
  { to: "/settings/data", name: "Data" },
] as const;

export function SettingsHead({ title, acts }: { title: string; acts?: ReactNode }) {
  return (
    <>
      <PageHead title={title} acts={acts} />
      <TabBar label="Settings">
        {TABS.map(({ to, name }) => (
          <Link key={to} to={to}>
            {name}
          </Link>
        ))}
      </TabBar>
    </>
  );
}

// The organization: its plan, its state, and how much of the month's quota is used.
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../api/client.ts";
import { usage } from "../api/people.ts";
import { type Own, useOwn } from "../lib/own.ts";
import { SettingsHead } from "../ui/settings-head.tsx";
import { Loaded } from "../ui/states.tsx";
import { Tag } from "../ui/tag.tsx";
import { When } from "../ui/when.tsx";
import { ReviewPanel } from "./review-panel.tsx";

type Organization = Own["organization"];

export function OrganizationPage() {
  const { organization } = useOwn();
  const used = useQuery(usage);
  return (
    <>
      <SettingsHead title="Organization" />
      <div className="stack">
        {organization.state === "pending_review" && <ReviewPanel />}
        {organization.state === "suspended" && <Suspended />}
        {organization.state === "moving" && <Moving />}
        <section className="panel pad">
          <h2>Organization</h2>
          <Facts organization={organization} />
        </section>
        <section className="panel">
          <div className="pad">
            <h2>This month</h2>
            <Loaded of={used} rows={3}>
              {(found) => <Quota used={found} />}
            </Loaded>
          </div>
        </section>
      </div>
    </>
  );
}

const STATES = {
  pending_review: { tone: "warn", word: "In review" },
  active: { tone: "good", word: "Active" },
  suspended: { tone: "bad", word: "Suspended" },
  moving: { tone: "warn", word: "Moving" },
} as const;

function Moving() {
  return (
    <div className="panel why warn">
      <span />
      <div className="body">
        <h2>This organization is being moved to another server</h2>
        <p>
          Nothing can be changed meanwhile, and no mail is lost: it waits. Afterwards you sign in at the other server.
        </p>
      </div>
    </div>
  );
}

function Suspended() {
  return (
    <div className="panel why bad">
      <span />
      <div className="body">
        <h2>This organization is suspended</h2>
        <p>Nothing is sent, and queued mail waits. Ask the operator of this installation.</p>
      </div>
    </div>
  );
}

function Facts({ organization: { id, name, plan, state, role } }: { organization: Organization }) {
  return (
    <dl className="facts">
      <dt>Name</dt>
      <dd>{name}</dd>
      <dt>Plan</dt>
      <dd>{plan.charAt(0).toUpperCase() + plan.slice(1)}</dd>
      <dt>State</dt>
      <dd>
        <Tag tone={STATES[state].tone}>{STATES[state].word}</Tag>
      </dd>
      <dt>Your role</dt>
      <dd>{role}</dd>
      <dt>Id</dt>
      <dd>
        <code>{id}</code>
      </dd>
    </dl>
  );
}

function Quota({ used }: { used: Schemas["Usage"] }) {
  const { quota_used, quota_limit, quota_remaining, requests_per_second, period_ends_at } = used;
  const part = quota_limit === 0 ? 1 : Math.min(1, quota_used / quota_limit);
  const figure = (number: number) => number.toLocaleString("en-GB");
  return (
    <>
      <div className="flex items-baseline gap-2 num">
        <b className="text-[21px] font-semibold tracking-tight">{figure(quota_used)}</b>
        <span className="dim">of {figure(quota_limit)} recipients of live mail</span>
      </div>
      <div aria-hidden="true" className={part >= 0.9 ? "bar-of bad" : "bar-of"}>
        <i style={{ width: `${Math.max(part * 100, quota_used > 0 ? 0.5 : 0)}%` }} />
      </div>
      <p className="dim text-[12.5px]">
        {figure(quota_remaining)} left until <When at={period_ends_at} as="both" />. The API takes{" "}
        {figure(requests_per_second)} requests a second.
      </p>
    </>
  );
}

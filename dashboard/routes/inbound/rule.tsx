// One routing rule, new or stored: its conditions as a tree, what is done with the mail, and a trial over the newest mails before it is saved.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { inboundRule } from "../../api/inbound-queries.ts";
import { RuleForm } from "../../forms/inbound/rule-form.tsx";
import { RuleTrial } from "../../forms/inbound/rule-trial.tsx";
import { type GroupDraft, newGroup, toDraft } from "../../lib/rule-tree.ts";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { inboundCrumb } from "./nav.tsx";

const newRoute = getRouteApi("/inbound/rules/new");
const route = getRouteApi("/inbound/rules/$id");

export function NewRule() {
  const { domain_id } = newRoute.useSearch();
  const [tree, set] = useState<GroupDraft>(() => newGroup("all"));
  if (domain_id === undefined)
    return (
      <Empty
        title="For which domain?"
        acts={
          <Link to="/inbound/rules" search={{}} className="btn">
            To the rules
          </Link>
        }
      />
    );
  return (
    <Page title="New rule">
      <RuleForm tree={tree} set={set} domainId={domain_id} />
      <RuleTrial tree={tree} domainId={domain_id} />
    </Page>
  );
}

export function OneRule() {
  const { id } = route.useParams();
  const query = useQuery(inboundRule(id));
  return query.data ? (
    <Stored key={id} rule={query.data.rule} />
  ) : (
    <Page title="Rule">
      <div className="panel">
        <Loaded of={query}>{() => null}</Loaded>
      </div>
    </Page>
  );
}

type Rule = NonNullable<Parameters<typeof RuleForm>[0]["rule"]>;

function Stored({ rule }: { rule: Rule }) {
  const [tree, set] = useState<GroupDraft>(() => toDraft(rule.match));
  return (
    <Page title={rule.name}>
      <RuleForm tree={tree} set={set} domainId={rule.domain_id} rule={rule} />
      <RuleTrial tree={tree} domainId={rule.domain_id} />
    </Page>
  );
}

function Page({ title, children }: { title: string; children: ReactNode }) {
  const rules = (
    <>
      {inboundCrumb}
      <span className="dim" aria-hidden="true">
        /
      </span>
      <Link to="/inbound/rules" search={{}} className="crumb">
        Rules
      </Link>
    </>
  );
  return (
    <>
      <PageHead title={title} crumb={rules} />
      <div className="stack">{children}</div>
    </>
  );
}

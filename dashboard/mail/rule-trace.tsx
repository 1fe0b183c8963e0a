// Which rules held for a mail, and why: each condition with what it found.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client.ts";
import { inboundRule, ruleTrace } from "../api/inbound-queries.ts";
import { sayError } from "../api/say-error.ts";
import { COMPARATOR_WORDS, FIELD_WORDS } from "../lib/rule-tree.ts";
import { Loaded } from "../ui/states.tsx";

export function RuleTraces({ mail: { id, rule_ids } }: { mail: Schemas["InboundEmail"] }) {
  return (
    <section className="panel pad">
      <h2>Rules that matched</h2>
      <div className="grid gap-4">
        {rule_ids.map((rule) => (
          <One key={rule} ruleId={rule} mailId={id} />
        ))}
      </div>
    </section>
  );
}

function One({ ruleId, mailId }: { ruleId: string; mailId: string }) {
  const rule = useQuery(inboundRule(ruleId));
  const trace = useQuery(ruleTrace(ruleId, mailId));
  if (rule.error) return <p className="text-ink-2">A rule that is not there any more. {sayError(rule.error).text}</p>;
  return (
    <div>
      {rule.data && (
        <Link to="/inbound/rules/$id" params={{ id: ruleId }} className="row-link">
          {rule.data.rule.name}
        </Link>
      )}
      <Loaded of={trace} rows={2}>
        {({ results }) => (results[0] ? <Steps steps={results[0].steps} /> : null)}
      </Loaded>
    </div>
  );
}

export function Steps({ steps }: { steps: Schemas["InboundRuleStep"][] }) {
  return (
    <ul className="mt-1 grid gap-1 text-[13px]">
      {steps.map(({ path, field, comparator, found, matched }) => (
        <li key={path} className="flex gap-2">
          <span className={matched ? "text-good" : "text-ink-3"}>{matched ? "Holds" : "Does not match"}</span>
          <span className="min-w-0 text-ink-2">
            {FIELD_WORDS[field] ?? field} {COMPARATOR_WORDS[comparator] ?? comparator}:{" "}
            <code className="break-words">{found.length === 0 ? "nothing found" : found.map(String).join(", ")}</code>
          </span>
        </li>
      ))}
    </ul>
  );
}

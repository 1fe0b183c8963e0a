// A trial of conditions over the newest mails of the domain: nothing is saved, nothing is changed.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { newestOf } from "../../api/inbound-queries.ts";
import { type GroupDraft, toMatch } from "../../lib/rule-tree.ts";
import { Steps } from "../../mail/rule-trace.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty, Failed } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { conditionProblem } from "./rule-form.tsx";

/** As many as the API tries at once. */
const TRIED_MAX = 100;

export function RuleTrial({ tree, domainId }: { tree: GroupDraft; domainId: string }) {
  const trying = useMutation({
    mutationFn: () =>
      take(
        v1.POST("/v1/inbound-rules/test", { body: { match: toMatch(tree), domain_id: domainId, limit: TRIED_MAX } }),
      ),
  });
  const problem = conditionProblem(trying.error);
  return (
    <section className="panel" aria-labelledby="trial">
      <div className="flex flex-wrap items-center gap-2 px-[18px] py-3">
        <h2 id="trial">Trial</h2>
        <span className="dim text-[12.5px]">with the newest {TRIED_MAX} mails; nothing is changed</span>
        <span className="grow" />
        <Button busy={trying.isPending && "Trying…"} onClick={() => trying.mutate()}>
          Try it out
        </Button>
      </div>
      {problem !== undefined && <p className="px-[18px] pb-3 text-bad">{problem}</p>}
      {trying.error !== null && problem === undefined && <Failed error={trying.error} />}
      {trying.data && <Results answer={trying.data} domainId={domainId} />}
    </section>
  );
}

function Results({ answer, domainId }: { answer: Schemas["TestInboundRuleAnswer"]; domainId: string }) {
  const mails = useQuery(newestOf(domainId, TRIED_MAX)).data?.emails ?? [];
  if (answer.tested === 0) return <Empty title="The domain has no mail to try it with" />;
  return (
    <>
      <p className="border-t border-line px-[18px] py-2" role="status">
        It matches {answer.matched} of {answer.tested}.
      </p>
      <ul>
        {answer.results.map(({ email_id, matched, steps }) => {
          const mail = mails.find(({ id }) => id === email_id);
          return (
            <li key={email_id} className="border-t border-line px-[18px] py-2">
              <details>
                <summary className="flex flex-wrap items-center gap-2">
                  <Tag tone={matched ? "good" : "idle"}>{matched ? "Matches" : "No"}</Tag>
                  <span className="min-w-0 truncate">{mail?.subject || "no subject"}</span>
                  <span className="dim min-w-0 truncate">{mail?.from_address}</span>
                </summary>
                <Steps steps={steps} />
                <Link to="/inbound/$id" params={{ id: email_id }} className="crumb text-[12.5px]">
                  Open the mail
                </Link>
              </details>
            </li>
          );
        })}
      </ul>
    </>
  );
}

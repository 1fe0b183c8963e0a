// Who sent a received mail, as far as SPF, DKIM and DMARC say.
import { wordOf } from "../lib/states.ts";
import { explainVerdicts, type Judged } from "../lib/verdicts.ts";
import { Tag } from "../ui/tag.tsx";

export function Verdicts({ of }: { of: Judged }) {
  return (
    <section className="panel pad">
      <h2>Who sent it</h2>
      <dl className="grid gap-3 text-[13px]">
        {explainVerdicts(of).map(({ name, result, tone, text }) => (
          <div key={name}>
            <dt className="mb-1 flex items-center justify-between">
              {name} <Tag tone={tone}>{wordOf(result)}</Tag>
            </dt>
            <dd className="text-ink-2">{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

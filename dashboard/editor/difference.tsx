// Two texts, line by line: what went and what came. Long stretches without a change are folded.
import { useQuery } from "@tanstack/react-query";
import { foldLines, isChanged, type Line, toLines } from "../lib/difference.ts";
import { Loaded } from "../ui/states.tsx";

type Given = { before: string; after: string; label: string };

export function Difference({ before, after, label }: Given) {
  const query = useQuery({
    queryKey: ["difference", before, after],
    queryFn: async () => (await import("diff")).diffLines(before, after),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  return (
    <Loaded of={query} rows={3}>
      {(changes) => {
        const lines = toLines(changes);
        return isChanged(lines) ? <Lines lines={lines} label={label} /> : <p className="dim">No difference.</p>;
      }}
    </Loaded>
  );
}

function Lines({ lines, label }: { lines: Line[]; label: string }) {
  return (
    <section className="difference" aria-label={label}>
      {foldLines(lines).map(({ place, line }) =>
        line === null ? (
          <div key={place} className="fold">
            …
          </div>
        ) : (
          <div key={place} className={line.sign === "+" ? "came" : line.sign === "-" ? "went" : ""}>
            <span aria-hidden="true">{line.sign}</span>
            {line.sign !== " " && <span className="sr-only">{line.sign === "+" ? "Added: " : "Removed: "}</span>}
            {line.text}
          </div>
        ),
      )}
    </section>
  );
}

// Two texts, line by line: what went and what came. Long stretches without a change are folded.
import { useQuery } from "@tanstack/react-query";
import { Loaded } from "../ui/states.tsx";

type Given = { before: string; after: string; label: string };
type Line = { sign: " " | "+" | "-"; text: string };
const AROUND = 3;

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
        const lines = changes.flatMap(({ added, removed, value }) =>
          value
            .replace(/\n$/, "")
            .split("\n")
            .map((text): Line => ({ sign: added ? "+" : removed ? "-" : " ", text })),
        );
        if (lines.every(({ sign }) => sign === " ")) return <p className="dim">No difference.</p>;
        return <Lines lines={lines} label={label} />;
      }}
    </Loaded>
  );
}

function Lines({ lines, label }: { lines: Line[]; label: string }) {
  const isNear = (place: number) =>
    lines.slice(Math.max(0, place - AROUND), place + AROUND + 1).some(({ sign }) => sign !== " ");
  const shown = lines.map((line, place) => ({ ...line, place, isNear: isNear(place) }));
  return (
    <section className="difference" aria-label={label}>
      {shown.map(({ sign, text, place, isNear: isShown }) => {
        if (!isShown)
          return shown[place - 1]?.isNear === false ? null : (
            <div key={place} className="fold">
              …
            </div>
          );
        return (
          <div key={place} className={sign === "+" ? "came" : sign === "-" ? "went" : ""}>
            <span aria-hidden="true">{sign}</span>
            {sign !== " " && <span className="sr-only">{sign === "+" ? "Added: " : "Removed: "}</span>}
            {text}
          </div>
        );
      })}
    </section>
  );
}

// A chart over time. Its figures stand in a table beside it: the picture is for the shape. The library comes when one is shown.
import { useEffect, useRef } from "react";

export type Series = {
  name: string;
  values: (number | null)[];
  tone: "accent" | "good" | "warn" | "bad" | "idle";
  dashed?: boolean;
};
type Given = {
  label: string;
  /** Milliseconds since 1970, rising. */
  times: number[];
  series: Series[];
  /** Values are parts of 1. */
  isShare?: boolean;
};
const HEIGHT = 240;

export function Chart({ label, times, series, isShare = false }: Given) {
  const place = useRef<HTMLDivElement>(null);
  const content = JSON.stringify({ times, series, isShare });
  useEffect(() => {
    let undo = () => {};
    let isGone = false;
    const draw = async () => {
      const { drawChart } = await import("./draw.ts");
      if (!isGone && place.current !== null) undo = drawChart(place.current, JSON.parse(content), HEIGHT);
    };
    draw().catch(() => undefined);
    return () => {
      isGone = true;
      undo();
    };
  }, [content]);
  return (
    <figure className="chart">
      <div ref={place} role="img" aria-label={label} style={{ height: HEIGHT }} />
      <figcaption>
        {series.map(({ name, tone, dashed }) => (
          <span key={name}>
            <i className={dashed ? "dashed" : ""} style={{ borderColor: `var(--${tone})` }} />
            {name}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

// Draws with uPlot, in the page's own colours; draws again when the width or the theme changes.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Series } from "./chart.tsx";

type Drawn = { times: number[]; series: Series[]; isShare: boolean };
const AXIS_FONT = "11.5px ui-sans-serif, system-ui, sans-serif";
const DAY_S = 86_400;
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const compact = new Intl.NumberFormat("en", { notation: "compact" });

/** The returned function takes it away. */
export function drawChart(place: HTMLElement, drawn: Drawn, height: number): () => void {
  let plot: uPlot | null = null;
  const draw = () => {
    plot?.destroy();
    plot = new uPlot(optionsOf(place, drawn, height), dataOf(drawn), place);
  };
  draw();
  const width = new ResizeObserver(() => {
    if (plot !== null && place.clientWidth !== plot.width) plot.setSize({ width: place.clientWidth, height });
  });
  width.observe(place);
  const theme = new MutationObserver(draw);
  theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => {
    width.disconnect();
    theme.disconnect();
    plot?.destroy();
  };
}

function dataOf({ times, series }: Drawn): uPlot.AlignedData {
  return [times.map((ms) => ms / 1000), ...series.map(({ values }) => values)];
}

function optionsOf(place: HTMLElement, { series, isShare }: Drawn, height: number): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const axis = { stroke: colour("ink-3"), font: AXIS_FONT, grid: { show: false }, ticks: { show: false } };
  const say = (value: number) => (isShare ? `${Math.round(value * 100)} %` : compact.format(value));
  return {
    ...{ width: place.clientWidth, height, padding: [10, 12, 0, 0] },
    // The days of the API are days of UTC.
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { y: { range: (_plot, _least, most) => [0, isShare ? 1 : Math.max(4, (most ?? 0) * 1.1)] } },
    axes: [
      {
        ...axis,
        space: 70,
        size: 32,
        values: (_plot, splits, _axis, _space, stepS) => splits.map((at) => sayTime(at, stepS)),
      },
      {
        ...axis,
        size: 52,
        grid: { show: true, stroke: colour("line"), width: 1 },
        values: (_plot, values) => values.map((value) => (value % 1 !== 0 && !isShare ? "" : say(value))),
      },
    ],
    series: [
      {},
      ...series.map(({ name, tone, dashed }) => ({
        label: name,
        stroke: colour(tone),
        width: 2,
        ...(dashed ? { dash: [5, 4] } : {}),
        points: { show: false },
      })),
    ],
    hooks: { setCursor: [(plot) => showValues(plot, say)] },
  };
}

/** `4 Nov`, or `14:00` where the marks are closer than a day. */
function sayTime(seconds: number, stepS: number): string {
  const time = new Date(seconds * 1000);
  const isMidnight = seconds % DAY_S === 0;
  return stepS < DAY_S && !isMidnight ? time.toISOString().slice(11, 16) : day.format(time);
}

/** What stands at the pointer: the time, and each value with its name. */
function showValues(plot: uPlot, say: (value: number) => string): void {
  const { idx } = plot.cursor;
  const shown = plot.over.querySelector<HTMLElement>(".values") ?? plot.over.appendChild(document.createElement("div"));
  shown.className = "values";
  shown.hidden = idx === null || idx === undefined;
  if (idx === null || idx === undefined) return;
  const at = new Date((plot.data[0][idx] ?? 0) * 1000).toISOString();
  const time = at.endsWith("T00:00:00.000Z") ? at.slice(0, 10) : `${at.slice(0, 16).replace("T", " ")} UTC`;
  const values = plot.series.slice(1).map(({ label }, place) => {
    const value = plot.data[place + 1]?.[idx];
    return `${label}: ${value === null || value === undefined ? "–" : say(value)}`;
  });
  shown.textContent = [time, ...values].join("\n");
  const left = plot.cursor.left ?? 0;
  shown.style.left = left > plot.over.clientWidth / 2 ? "" : `${left + 12}px`;
  shown.style.right = left > plot.over.clientWidth / 2 ? `${plot.over.clientWidth - left + 12}px` : "";
}

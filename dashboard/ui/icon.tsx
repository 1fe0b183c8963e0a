// The few signs of the navigation, drawn in one weight.
const PATHS = {
  start: "M2.5 7 8 2.5 13.5 7v6.5h-11z",
  emails: "M2 3.5h12v9H2zM2 4l6 5 6-5",
  inbound: "M2 9 4 3h8l2 6v4H2zM2 9h4l1 2h2l1-2h4",
  masked:
    "M1.5 5c2-1.2 4.300-1.200 6.500 0 2.200-1.200 4.500-1.200 6.500 0 0 4-1.500 6-3.500 6-1.400 0-2.200-1.500-3-1.500S6.400 11 5 11c-2 0-3.500-2-3.500-6zM4.500 7.500h1.500M10 7.500h1.500",
  domains: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM2 8h12M8 2c2 2 2.5 4 2.5 6S10 12 8 14M8 2C6 4 5.5 6 5.5 8S6 12 8 14",
  templates: "M2.5 2.500h11v11h-11zM2.5 6h11M6.5 6v7.5",
  suppressions: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM3.8 12.200l8.4-8.4",
  webhooks: "M6.5 6.500a2.3 2.3 0 1 1 3 1L7.5 11M8 12.500a2.2 2.2 0 1 1-1.5-2M9.5 10.500h2",
  keys: "M9.5 6.500a3.5 3.5 0 1 0-3 3.400L8 8.500h1.500V7zM9 9l4.5 4.5",
  settings:
    "M2.5 5h5M11.5 5h2M2.500 11h2M8.500 11h5M9.500 3.200a1.800 1.800 0 1 0 0 3.600 1.800 1.800 0 0 0 0-3.600zM6.500 9.200a1.800 1.800 0 1 0 0 3.600 1.800 1.800 0 0 0 0-3.600z",
  operator: "M8 1.800 13 4v4c0 3-2.200 5.300-5 6.200C5.200 13.300 3 11 3 8V4zM5.800 8l1.600 1.600L10.400 6.500",
  menu: "M2.5 4.500h11M2.5 8h11M2.5 11.500h11",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1.500V3M8 13v1.500M1.5 8H3M13 8h1.500M3.4 3.400l1 1M11.600 11.600l1 1M12.600 3.400l-1 1M4.4 11.600l-1 1",
} as const;

export type IconName = keyof typeof PATHS;

/** Decoration: the word beside it is its name. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.3"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

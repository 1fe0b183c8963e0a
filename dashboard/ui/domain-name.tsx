// A domain as people read it. Where it is international, its ASCII form stands with it: names may look alike.
import { toUnicode } from "../lib/domain-names.ts";

/** For a row of a list: the ASCII form is a line below, so that a long name does not push it out. */
export function DomainName({ name }: { name: string }) {
  const shown = toUnicode(name);
  if (shown === name) return name;
  return (
    <span className="block py-1.5">
      <bdi dir="ltr" className="block truncate">
        {shown}
      </bdi>
      <span className="dim block truncate text-[12.5px]">{name}</span>
    </span>
  );
}

/** The form that DNS has, beside a heading; nothing where the heading is in it anyway. */
export function AsciiName({ name }: { name: string }) {
  return toUnicode(name) === name ? null : <span className="dim min-w-0 text-[12.5px] wrap-anywhere">{name}</span>;
}

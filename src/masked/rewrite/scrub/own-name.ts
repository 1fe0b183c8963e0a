// The name that the author of a reply goes by at home: it tells as much as the address. Beside an address that was hidden it
// becomes the alias's name; everywhere else it may be what the contact sent, and changing that would answer a guess.

const BESIDE_MAX = 12;
/** What programs write between a name and the address behind it: brackets, quotes, blanks, links. */
const BETWEEN = `(?:["'”’\\s<(\\[>|:]|&lt;|&quot;|&nbsp;|&#160;|mailto:|<[^<>]{0,400}>){0,${BESIDE_MAX}}`;
/** And between an address and the name behind it. */
const BEHIND = `(?:["'\\s>(]|&gt;|&nbsp;|\\?[^\\s"'<>]{0,200}|<[^<>]{0,400}>){1,${BESIDE_MAX}}`;

/** A name that can be looked for; null for one that says nothing, or nothing but the alias. */
export function telling(name: string | null, alias: string | null): string | null {
  const plain = (name ?? "")
    .replace(/\s+/g, " ")
    .replace(/^["']|["']$/g, "")
    .trim();
  const isWord = /[\p{L}]{2}/u.test(plain) && !plain.includes("@") && plain.length >= 3 && plain.length <= 100;
  return isWord && plain.toLowerCase() !== (alias ?? "").trim().toLowerCase() ? plain : null;
}

/** A pattern of the name, its words in both orders, across blanks, line ends, marks of quotes and tags (Word sets some in each name). */
export function nameSource(name: string): string {
  const words = name
    .split(/[\s,]+/)
    .filter((word) => word !== "")
    .map((word) => RegExp.escape(word));
  const gap = "(?:[\\s>|]|&nbsp;|&#160;|<[^<>]{0,400}>){1,8}";
  const turned = words.length < 2 ? [] : [`${words.at(-1)},${gap}${words.slice(0, -1).join(gap)}`];
  return `(?<![\\p{L}\\p{N}])(?:${[words.join(gap), ...turned].join("|")})(?![\\p{L}\\p{N}])`;
}

/** Every place of the name. */
export function replaceName(text: string, author: string, to: string): { text: string; count: number } {
  let count = 0;
  const replaced = text.replace(new RegExp(nameSource(author), "giu"), (found) => {
    count += 1;
    return to + tagsIn(found, author);
  });
  return { text: replaced, count };
}

/** The tags within a name, which are closed or opened outside of it. */
function tagsIn(found: string, author: string): string {
  return author.includes("<") ? "" : (found.match(/<[^<>]*>/g) ?? []).join("");
}

/** The name beside addresses that `mark` stands before. */
export function replaceNameBeside(
  text: string,
  { author, name, mark, own }: { author: string; name: string; mark: string; own: { email: string } },
): { text: string; count: number } {
  if (!text.includes(mark)) return { text, count: 0 };
  let count = 0;
  const put = (whole: string, kept: string, isBefore: boolean) => {
    count += 1;
    const found = isBefore ? whole.slice(0, -kept.length) : whole.slice(kept.length);
    const written = name + tagsIn(found, author);
    return isBefore ? written + kept : kept + written;
  };
  const before = new RegExp(`${nameSource(author)}(${BETWEEN}${RegExp.escape(mark)})`, "giu");
  const behind = new RegExp(`(${RegExp.escape(`${mark}${own.email}`)}${BEHIND})${nameSource(author)}`, "giu");
  const first = text.replace(before, (whole, kept: string) => put(whole, kept, true));
  return { text: first.replace(behind, (whole, kept: string) => put(whole, kept, false)), count };
}

// KumoMTA's bounce rules (TOML: a class and the regular expressions of replies that mean it), and a reply that such an
// expression matches. Only what these files have of TOML: tables, keys, arrays of strings in all four forms, comments.

export type Rule = { group: string; pattern: string };

/** A comment; a string of one of the four kinds that is no key; the head of a table; a key. */
const TOKEN =
  /#[^\n]*|"""\n?((?:\\.|(?!""")[^\\])*)"""|'''\n?((?:(?!''').)*)'''|"((?:\\.|[^"\\\n])*)"(?!\s*=)|'([^'\n]*)'(?!\s*=)|^[ \t]*\[\[?[\w."' -]*\]\]?[ \t]*$|["']?([\w.-]+)["']?\s*=/gms;

/** Every string of every array, with the key that it stands under. */
export function readRules(toml: string): Rule[] {
  const rules: Rule[] = [];
  let group = "";
  for (const [token, long, longLiteral, short, literal, key] of toml.replaceAll("\r\n", "\n").matchAll(TOKEN)) {
    if (key !== undefined) group = key;
    else if (token.trimStart().startsWith("[")) group = "";
    const basic = long ?? short;
    const pattern = basic === undefined ? (longLiteral ?? literal) : unescaped(basic);
    if (pattern && group !== "") rules.push({ group, pattern });
  }
  return rules;
}

const ESCAPES = new Map(Object.entries({ b: "\b", t: "\t", n: "\n", f: "\f", r: "\r", e: "\x1b" }));

function unescaped(text: string): string {
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|\n\s*|(.))/g, (_, short, long, other) => {
    if (other !== undefined) return ESCAPES.get(other) ?? other;
    const code = short ?? long;
    return code === undefined ? "" : String.fromCodePoint(Number.parseInt(code, 16));
  });
}

/** The pattern with its alternatives and repeats in their plainest form, whose code and enhanced code are of one class; null when it does not match that. */
export function plainest(pattern: string): string | null {
  // Rust's flags: case never matters here, and (?P<name>…) is JavaScript's (?<name>…).
  const ours = pattern
    .replace(/\(\?[a-zA-Z]*(?:-[a-zA-Z]+)?\)/g, "")
    .replace(/\(\?[a-zA-Z-]+:/g, "(?:")
    .replaceAll("(?P<", "(?<");
  const plain = flattened(ours);
  const samples = [plain.replace(/^000 ([45])/, "$150 $1"), plain].flatMap((one) => [
    one.replace(/^([45])(\d\d) [45]\./, "$1$2 $1."),
    one,
  ]);
  try {
    const expression = new RegExp(ours, "i");
    return samples.find((sample) => sample.trim() !== "" && expression.test(sample)) ?? null;
  } catch {
    return null;
  }
}

/** Escaped brackets and bars, which are text, stand aside as control characters meanwhile. */
const ASIDE = ["(", ")", "[", "]", "|", "{", "}", "+", "*", "?", ".", "^", "$", "\\"];

function flattened(pattern: string): string {
  let text = pattern.replace(/\\([()[\]|{}+*?.^$\\])/g, (_, one) => String.fromCharCode(1 + ASIDE.indexOf(one)));
  text = text.replace(/\[\^[^\]]*\](?:\{[^}]*\}|[+*?]\??)?/g, "x").replace(/^\^|\$$/g, "");
  for (let round = 0; round < 10 && /\([^()]*\)/.test(text); round += 1) {
    text = text.replace(/\((?:\?(?::|<\w+>))?([^()|]*)(?:\|[^()]*)*\)[?*+]?/g, "$1");
  }
  return text
    .replace(/\\d(?:\{\d+(?:,\d*)?\}|[+*])?/g, (digits) => "0".repeat(Number(/\{(\d+)/.exec(digits)?.[1] ?? 1)))
    .replace(/\[([^\]^])[^\]]*\](?:\{[^}]*\}|[+*?]\??)?/g, "$1")
    .replace(/\.[*+]\??/g, " ")
    .replace(/\\s[*+]?/g, " ")
    .replace(/\\[Sw][*+]?\??/g, "x")
    .replace(/\\b/g, "")
    .replace(/(\w)\?/g, "$1")
    .replace(/\\(.)/g, "$1")
    .replace(/[\x01-\x0e]/g, (one) => ASIDE[one.charCodeAt(0) - 1] ?? "");
}

// The `.cmy` scripts of chasquid's tests, read: who connects where, what is sent, what class of answer is expected. The
// raw bytes are Python expressions of literals, `+`, `*` and parentheses, and nothing else is understood of Python.

export type Step =
  | { kind: "connect"; client: string; tls: boolean; port: number }
  | { kind: "close"; client: string }
  | { kind: "send"; client: string; bytes: Buffer }
  /** `classes`: first digits of the answers that are right. */
  | { kind: "expect"; client: string; classes: string[]; line: string };

const LINE = /^(\w+) (tcp_connect|tls_connect|close|->|~>|<-|<~|<\.\.\.)(?: (.*))?$/;

/** The steps of a script, or which line of it is not understood. */
export function readScript(text: string): Step[] | string {
  try {
    return text
      .split("\n")
      .filter((line) => line.trim() !== "" && !line.startsWith("#"))
      .map(readLine);
  } catch (error) {
    return (error as Error).message;
  }
}

function readLine(line: string): Step {
  const [, client = "", verb = "", rest = ""] = LINE.exec(line.replace(/\r$/, "")) ?? [];
  switch (verb) {
    case "tcp_connect":
    case "tls_connect":
      return { kind: "connect", client, tls: verb === "tls_connect", port: Number(rest.split(":").at(-1)) };
    case "close":
      return { kind: "close", client };
    case "->":
      return { kind: "send", client, bytes: Buffer.from(`${rest}\r\n`) };
    case "~>":
      return { kind: "send", client, bytes: evaluate(rest) };
    case "<-":
    case "<~":
    case "<...":
      return { kind: "expect", client, classes: classesOf(rest), line };
    default:
      throw new Error(`a line of the script is not understood: ${line}`);
  }
}

/** `250`, `550 5.1.1 …`, `^(451|5..)`, `[45]..`: the digits that begin an alternative. */
function classesOf(pattern: string): string[] {
  const alternatives = pattern.includes("|") ? pattern.split("|") : [pattern];
  const classes = alternatives.flatMap((one) => {
    const [, digit, digits = digit ?? ""] = /^[\s^(]*(?:([2345])[\d.]|\[([2345]+)\])/.exec(one) ?? [];
    return [...digits];
  });
  return [...new Set(classes)];
}

type Value = Buffer | number;

const TOKEN = /b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*"|\d+|[()+*]/g;

/** `'x\r\n'`, `b"a" * 1024 + '\n'`, `('a' * 10 + '\r\n') * 3`. */
export function evaluate(expression: string): Buffer {
  const tokens = expression.match(TOKEN) ?? [];
  if (expression.replace(TOKEN, "").trim() !== "") throw new Error(`not understood: ${expression}`);
  let at = 0;
  const sum = (): Value => {
    let value = product();
    while (tokens[at] === "+") {
      at += 1;
      value = add(value, product());
    }
    return value;
  };
  const product = (): Value => {
    let value = one();
    while (tokens[at] === "*") {
      at += 1;
      value = times(value, one());
    }
    return value;
  };
  const one = (): Value => {
    const token = tokens[at] ?? "";
    at += 1;
    if (token === "(") {
      const value = sum();
      at += 1;
      return value;
    }
    return /^\d/.test(token) ? Number(token) : literal(token);
  };
  const value = sum();
  if (at !== tokens.length || typeof value === "number") throw new Error(`not understood: ${expression}`);
  return value;
}

function add(a: Value, b: Value): Value {
  if (typeof a === "number" && typeof b === "number") return a + b;
  if (typeof a === "number" || typeof b === "number") throw new Error("a number is added to a text");
  return Buffer.concat([a, b]);
}

function times(a: Value, b: Value): Value {
  if (typeof a === "number") return typeof b === "number" ? a * b : times(b, a);
  if (typeof b !== "number") throw new Error("a text is multiplied by a text");
  return Buffer.from(a.toString("latin1").repeat(b), "latin1");
}

const ESCAPES: Record<string, string> = { n: "\n", r: "\r", t: "\t", "0": "\0", "\\": "\\", "'": "'", '"': '"' };

function literal(token: string): Buffer {
  const text = token.replace(/^b?.(.*).$/s, "$1");
  const latin1 = Buffer.from(text).toString("latin1");
  const plain = latin1.replace(/\\(?:x([0-9a-fA-F]{2})|(.))/gs, (_, hex, other) =>
    hex === undefined ? (ESCAPES[other] ?? `\\${other}`) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(plain, "latin1");
}

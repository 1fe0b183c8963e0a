// A version's three sources, parsed and rendered together: subject and text as they are, HTML with escaped variables.

import { validateHeaderText } from "../mail/mime/write/validate-headers.ts";
import { threadMs } from "../platform/process/thread-ms.ts";
import { invalid, Refusal } from "../platform/refusal.ts";
import { isLonger } from "../text/is-longer.ts";
import { SOURCE_BYTES_MAX, type Template } from "./language/nodes.ts";
import { parseTemplate } from "./language/parse.ts";
import { renderTemplate } from "./language/render.ts";
import type { ParsedSources, Part, Sources } from "./types.ts";
import { type CheckedVariable, defaultsOf } from "./variables.ts";

export const SUBJECT_LENGTH_MAX = 2_000;
const SUBJECT_OCTETS_MAX = 4_000;

/** 400 `template_error` with field, line and column for the first source that is not in the language. */
export function parseSources(sources: Sources): ParsedSources {
  if (sources.html_body === null && sources.text_body === null) {
    throw invalid("html_body", "the 'html_body' field is required (or 'text_body')");
  }
  if (/[\r\n]/.test(sources.subject)) throw invalid("subject", "the 'subject' field must be a single line");
  return {
    subject: parseSource("subject", sources.subject),
    html_body: sources.html_body === null ? null : parseSource("html_body", sources.html_body),
    text_body: sources.text_body === null ? null : parseSource("text_body", sources.text_body),
  };
}

function parseSource(field: Part, source: string): Template {
  if (Buffer.byteLength(source) > SOURCE_BYTES_MAX) {
    throw invalid(field, `the '${field}' field must have at most ${SOURCE_BYTES_MAX / 1024} KiB`);
  }
  if (!source.isWellFormed()) throw invalid(field, `the '${field}' field is not valid Unicode`);
  const parsed = parseTemplate(source);
  if (parsed.ok) return parsed.template;
  const { message, line, column } = parsed;
  throw templateError(field, message, { line, column });
}

/** Renders all parts. 400 `template_error` naming the part when a limit is passed or a value cannot be printed. */
export function renderSources(
  parsed: ParsedSources,
  variables: readonly CheckedVariable[],
  values: Readonly<Record<string, unknown>>,
): Sources {
  const defaults = defaultsOf(variables);
  const render = (field: Part, template: Template): string => {
    const options = {
      escape: field === "html_body" ? ("html" as const) : ("none" as const),
      processorMs: threadMs,
      defaults,
    };
    const rendered = renderTemplate(template, values, options);
    if (rendered.ok) return rendered.text;
    const { message, reason, line, column } = rendered;
    throw templateError(field, message, { reason, line, column });
  };
  return {
    subject: checkSubject(render("subject", parsed.subject)),
    html_body: parsed.html_body && render("html_body", parsed.html_body),
    text_body: parsed.text_body && render("text_body", parsed.text_body),
  };
}

// A line break would end the header: `\r\nBcc: …` in a variable is an old trick. The rule is the one of sending, so that a
// preview shows what can be sent.
function checkSubject(subject: string): string {
  const checked = validateHeaderText(subject, SUBJECT_OCTETS_MAX);
  if (!checked.ok) {
    throw templateError("subject", `with these variables it ${checked.reason}`, { reason: "not_a_header" });
  }
  if (isLonger(subject, SUBJECT_LENGTH_MAX)) {
    throw templateError("subject", `with these variables it has more than ${SUBJECT_LENGTH_MAX} characters`, {
      reason: "not_a_header",
    });
  }
  return subject;
}

function templateError(field: Part, message: string, body: Record<string, unknown>): Refusal {
  const place = "line" in body ? `, line ${body.line}, column ${body.column}` : "";
  return new Refusal("template_error", `the '${field}' of the template${place}: ${message}`, { field, body });
}

// Names of attachments that are safe to write into a message, a header of a download and a folder.
// It does not choose types and does not encode: RFC 2231 is in part-headers.ts.

/** Longest name we write, in UTF-16 units, as file systems of desktops count them. */
export const filenameCharsMax = 200;
const extensionCharsMax = 20;

// Controls (C0, DEL, C1), line separators, lone surrogates, format characters: bidirectional overrides make `exe.pdf`
// out of `fdp.exe`. The joiners stay: emoji and Indic words need them.
const invisible = /(?![\u200c\u200d])\p{Cf}|[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/gu;
// What Windows refuses in a name, beyond the separators.
const reserved = /[<>:"|?*]/g;

/**
 * Makes a name safe: only what follows the last `/` or `\`, no controls and no invisible or direction-changing
 * characters, at most 200 UTF-16 units with the extension kept, never empty, never `.` or `..`.
 */
export function safeFilename(given: string): string {
  const last = given.slice(Math.max(given.lastIndexOf("/"), given.lastIndexOf("\\")) + 1);
  const visible = last
    .slice(0, filenameCharsMax * 20)
    .replace(invisible, "")
    .replace(reserved, "_");
  const trimmed = trimEnds(visible);
  if (trimmed === "") return "attachment";
  return trimmed.length <= filenameCharsMax ? trimmed : shorten(trimmed);
}

// Spaces at both ends and dots at the end: Windows drops them, so `a.exe. ` would become `a.exe`.
function trimEnds(name: string): string {
  let end = name.length;
  while (end > 0 && /[\s.]/u.test(name[end - 1]!)) end--;
  return name.slice(0, end).trimStart();
}

function shorten(name: string): string {
  const dot = name.lastIndexOf(".");
  const extension = dot > 0 && name.length - dot <= extensionCharsMax ? name.slice(dot) : "";
  let end = filenameCharsMax - extension.length;
  // Not between the two halves of a surrogate pair.
  if (/[\ud800-\udbff]/.test(name[end - 1]!)) end--;
  return (trimEnds(name.slice(0, end)) || "attachment") + extension;
}

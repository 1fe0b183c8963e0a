// FNV-1a, 32 bits: a place for a name that every process finds alike. Not for secrets, nor against anybody who chooses names.

/** The hash of the text's UTF-16 units (for ASCII the published one), from 0 up to 2³² - 1. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash;
}

// Names in each language: the description has snake_case fields, camelCase operation ids and PascalCase models.

/** `send_batch` → `sendBatch`. */
export function camelCase(name: string): string {
  return name.replace(/_+([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase());
}

/** `send_batch` → `SendBatch`. */
export function pascalCase(name: string): string {
  const camel = camelCase(name);
  return camel.charAt(0).toUpperCase() + camel.slice(1);
}

/** `reportId` → `report_id`. */
export function snakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replaceAll("-", "_")
    .toLowerCase();
}

/** Lines of at most `width` characters for a comment. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).filter((one) => one !== "")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return line === "" ? lines : [...lines, line];
}
